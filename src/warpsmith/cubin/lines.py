"""Source lines of a function: rows of a line table, by offset in the function's code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.cubin.debug_line import line_rows
from warpsmith.cubin.elf import SectionType
from warpsmith.cubin.relocations import RelocationTable

if TYPE_CHECKING:
    from warpsmith.cubin.model import Cubin
    from warpsmith.cubin.section import Section

__all__ = ["Line", "function_lines"]


@final
@dataclass(frozen=True, slots=True)
class Line:
    """From byte `offset` of the code on: `file`, `line`."""

    offset: int
    file: str
    line: int


def function_lines(cubin: Cubin, text: Section, table: str) -> list[Line]:
    """Return the rows of a line table that concern `text`, by offset; none where the cubin has no such table."""
    section = cubin.sections.find(table)
    if section is None:
        return []
    number = cubin.sections.index(text)
    starts: dict[int, int] = {}
    for relocations in cubin.sections.of_type(SectionType.REL, SectionType.RELA):
        if relocations.info != cubin.sections.index(section):
            continue
        for r in relocations.holds(RelocationTable):
            symbol = cubin.symbols[r.symbol]
            if symbol.section == number:
                inner = int.from_bytes(section.data[r.offset : r.offset + 8], "little") if r.addend is None else r.addend
                starts[r.offset] = symbol.value + inner
    rows = (row for row in line_rows(section.data, table) if row.place in starts)
    return sorted((Line(starts[row.place] + row.offset, row.file, row.line) for row in rows), key=lambda r: r.offset)
