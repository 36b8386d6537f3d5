"""Look for words that the disassembler prints and a table does not know: mixed bits of every opcode, words near known ones."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from warpsmith.assembly.sass.probe.subject import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from warpsmith.assembly.sass.probe.oracle import Oracle
    from warpsmith.assembly.sass.row import Row
    from warpsmith.assembly.sass.table import Table

__all__ = ["scan"]

_KEPT = 8
"""Words of one class that are returned, as seeds."""
_OPERANDS = 7 << 9 | 1 << 91
"""Bits that mostly say which operand is an immediate, a constant, a uniform register."""
_REGISTERS = (16, 24, 32, 64)
"""Lowest bits of the bytes that mostly name registers."""


def scan(oracle: Oracle, table: Table, count: int, *, kin: Iterable[Table] = (), seed: int = 0) -> dict[str, list[int]]:
    """Return class -> some words that the disassembler prints and no form of the table covers.

    `count` words are tried of each value of bits 0–11, with bit 91, which tells forms apart, both ways; as many of each
    exception of each row, which belongs to another form; and words near the default of each row, of this table and of `kin`,
    with every bit flipped and every sort of operands.
    """
    draw = Random(seed)
    drawn = [*_exceptions(table, count, draw), *_of_opcodes(count, draw), *_near(_distinct([table, *kin]), count, draw)]
    words = [w for w in dict.fromkeys(drawn) if table.row_of(w) is None]
    found: dict[str, list[int]] = {}
    printed = [w for w, text in zip(words, oracle.texts(words), strict=True) if text is not None]
    for word, answer in zip(printed, oracle.classes(printed), strict=True):
        if answer is not None and len(kept := found.setdefault(answer[0], [])) < _KEPT:
            kept.append(word)
    return dict(sorted(found.items()))


def _of_opcodes(count: int, draw: Random) -> list[int]:
    """Return words of every opcode: mixed bits, some with few modifiers set, some with registers that are all ones."""
    out: list[int] = []
    for opcode in range(4096):
        for number in range(count):
            bits = draw.getrandbits(105)
            if number & 2:
                for _ in range(draw.choice((1, 2, 3))):
                    bits &= draw.getrandbits(105) | (1 << 72) - 1
            if number & 4:
                bits |= sum(0xFF << low for low in _REGISTERS if draw.getrandbits(1))
            out.append(plain(bits & ~(0xFFF | 1 << 91) | opcode | (number & 1) << 91))
    return out


def _exceptions(table: Table, count: int, draw: Random) -> list[int]:
    """Return words that have the key of a row and a value that it excludes; others of their bits are as in its default."""
    out: list[int] = []
    for row in table.rows:
        default = int(row.notes["default"], 0)
        for mask, value in row.nots:
            for number in range(count):
                bits = draw.getrandbits(105) if number & 1 else default ^ draw.getrandbits(105) & draw.getrandbits(105)
                word = bits & ~(row.mask | mask) | row.value | value
                out.append(plain(word))
    return out


def _distinct(tables: Iterable[Table]) -> list[Row]:
    """Return the rows of tables, those that tables share once."""
    return list({(row.name, row.mask, row.value): row for table in tables for row in table.rows}.values())


def _near(rows: Iterable[Row], count: int, draw: Random) -> list[int]:
    """Return words near the defaults of rows."""
    out: list[int] = []
    for row in rows:
        default = int(row.notes["default"], 0)
        out += [plain(default ^ 1 << bit) for bit in range(105)]
        for operands in range(16):
            word = default & ~_OPERANDS | (operands & 7) << 9 | (operands >> 3) << 91
            for number in range(max(1, count // 8)):
                bits = draw.getrandbits(105) & draw.getrandbits(105) & draw.getrandbits(105) if number else 0
                out.append(plain(word ^ bits & ~(_OPERANDS | 0xFFF)))
    return out
