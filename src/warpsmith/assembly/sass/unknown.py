"""Say which bits of a word a table does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpsmith.assembly.sass.row import Row
    from warpsmith.assembly.sass.table import Table

__all__ = ["explain"]


def explain(table: Table, word: int) -> str:
    """Return why no form covers the word: the opcode, or the bits in which the nearest form differs."""
    rows = table.by_opcode.get(word & 0xFFF, ())
    if not rows:
        return f"opcode {word & 0xFFF:#x} (bits 0-11)"
    row = min(rows, key=lambda r: ((word ^ r.value) & r.mask).bit_count())
    strange = (word ^ row.value) & row.mask
    if strange:
        return f"bits {_list(strange)} for {row.name}"
    if any(word & m == v for m, v in row.nots):
        return f"a combination that {row.name} excludes"
    clash = next((m for m, v in row.refused if word & m == v), 0)
    if clash:
        return f"bits {_list(clash)} for {row.name}: modifiers that do not go together"
    return f"bits {_list(_missing(row, word))} for {row.name}"


def _missing(row: Row, word: int) -> int:
    """Return the selector bits whose value a table of the form lacks."""
    out = 0
    for piece in row.pieces:
        if tuple(row.selectors[i].of(word) for i in piece.selectors) not in piece.table:
            for i in piece.selectors:
                for low, width in row.selectors[i].bits:
                    out |= ((1 << width) - 1) << low
    return out


def _list(mask: int) -> str:
    parts: list[str] = []
    bit = 0
    while mask >> bit:
        if mask >> bit & 1:
            end = bit
            while mask >> (end + 1) & 1:
                end += 1
            parts.append(f"{bit}-{end}" if end > bit else str(bit))
            bit = end
        bit += 1
    return ", ".join(parts)
