"""Some mutants of the Blackwell kernel for pairs of CTAs; tests/slow/simulator/test_pair_mutants.py tries all of the table."""

from __future__ import annotations

import pytest

from pair_mutants import Row, all_mutants, finds, rows


def test_the_table_has_every_mutant() -> None:
    assert sorted(r.name for r in rows()) == sorted(all_mutants())


def test_what_shows_nothing_has_a_reason() -> None:
    assert [r.name for r in rows() if r.kind == "silent" or (r.kind == "equivalent" and len(r.place) < 20)] == []


@pytest.mark.parametrize("row", [r for r in rows() if r.quick], ids=lambda r: r.name)
def test_the_fault_is_named(row: Row) -> None:
    assert (row.kind, row.place) in finds(row).findings
