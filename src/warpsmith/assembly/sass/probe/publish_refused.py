"""Derive the file of refused combinations of an architecture, and measure what is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.probe.joint import find_refused
from warpsmith.assembly.sass.probe.oracle import Oracle
from warpsmith.assembly.sass.refused import refused_text
from warpsmith.assembly.sass.table import FOLDER, load_table
from warpsmith.assembly.sass.table_text import key_text
from warpsmith.base.whole_file import write_whole

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Refusals", "publish_refused"]

_BATCH = 80
_HEADER = """\
# Modifiers of {arch} that nvdisasm {version} refuses together though not alone; found by {words:,} words.
# Columns, separated by tabs; the grammar is explained in src/warpsmith/assembly/sass/refused.py:
#   class  key  combinations
"""


@final
@dataclass(slots=True)
class Refusals:
    """What was found: forms with combinations, and how many fresh mixed words we still print and the disassembler refuses."""

    forms: int = 0
    combinations: int = 0
    tried: int = 0
    wrong: int = 0
    worst: tuple[str, ...] = ()
    """Forms with words that are still printed wrongly, as `class key: wrong of tried`."""


def publish_refused(
    arch: str, out: Path, *, tables: Path = FOLDER, tell: Callable[[int, int], None] = lambda _a, _b: None
) -> Refusals:
    """Write `out/<table>.tsv`; `tell(done, all)` is called as the work goes on."""
    table = load_table(arch, tables)
    rows = [replace(r, refused=()) for r in table.rows]
    oracle = Oracle(table.arch)
    total = Refusals()
    lines: list[str] = []
    worst: list[str] = []
    for start in range(0, len(rows), _BATCH):
        for found in find_refused(rows[start : start + _BATCH], oracle):
            total.tried += found.tried
            total.wrong += found.wrong
            if found.wrong:
                worst.append(f"{found.row.name} {key_text(found.row)}: {found.wrong} of {found.tried}")
            if found.refused:
                total.forms += 1
                total.combinations += len(found.refused)
                lines.append(refused_text(found.row.name, key_text(found.row), found.refused))
        tell(min(start + _BATCH, len(rows)), len(rows))
    head = _HEADER.format(arch=table.arch, version=oracle.version, words=oracle.words)
    write_whole(out / f"{table.arch}.tsv", (head + "".join(f"{line}\n" for line in sorted(lines))).encode())
    total.worst = tuple(worst)
    return total
