"""Every synchronisation of the Blackwell kernel for pairs of CTAs, taken away or changed, is named by its kind and line.

The table is tests/data/mutants/blackwell_pair.txt. `python tests/slow/simulator/test_pair_mutants.py` prints it anew: the
reasons of equivalent mutants are kept, and what shows nothing without a reason is `silent`. Review the difference. With
`--missing` it prints the mutants that the table lacks.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from pair_mutants import ORDERS, Row, all_mutants, correct, finds, rows, run
from tree_mutants import Mutant, verdict


@pytest.mark.parametrize("row", rows(), ids=lambda r: r.name)
def test_the_fault_is_named(row: Row) -> None:
    found = finds(row)
    if row.kind == "equivalent":
        assert found.findings == ()
        assert not found.differs
    elif row.kind == "wrong result":
        assert found.differs
    else:
        assert (row.kind, row.place) in found.findings


def line(name: str, mutant: Mutant, old: Row | None) -> str:
    """Return a mutant's line as it is found now."""
    star = "*" if old is not None and old.quick else ""
    proved = old is not None and old.kind == "equivalent"
    found = verdict(mutant, run, correct, ORDERS[:1] if proved else ORDERS)
    if found.findings:
        kept = old is not None and (old.kind, old.place) in found.findings
        kind, place = (old.kind, old.place) if old is not None and kept else found.findings[0]
        return f"{star}{name} | {kind} | {place} | {found.schedule}"
    if found.differs:
        return f"{star}{name} | wrong result | the outputs differ | {found.schedule}"
    return f"{star}{name} | equivalent | {old.place} | fair" if old is not None and proved else f"{name} | silent | ? | fair"


def main() -> None:
    """Print the table anew, or with `--missing` what it lacks."""
    known = {r.name: r for r in rows()}
    for name, mutant in all_mutants().items():
        if "--missing" not in sys.argv or name not in known:
            print(line(name, mutant, known.get(name)), flush=True)


if __name__ == "__main__":
    main()
