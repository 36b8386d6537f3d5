"""Look for words that the disassembler prints and a table does not know: mixed bits under every opcode."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from warpsmith.assembly.sass.probe.subject import plain

if TYPE_CHECKING:
    from warpsmith.assembly.sass.probe.oracle import Oracle
    from warpsmith.assembly.sass.table import Table

__all__ = ["scan"]

_KEPT = 8
"""Words of one class that are returned, as seeds."""


def scan(oracle: Oracle, table: Table, count: int, *, seed: int = 0) -> dict[str, list[int]]:
    """Return class -> some words that the disassembler prints and no form of the table covers.

    `count` words are tried of each value of bits 0–11, with bit 91, which tells forms apart, both ways; and as many of each
    exception of each row, which belongs to another form.
    """
    draw = Random(seed)
    words = [w for w in _exceptions(table, count, draw) if table.row_of(w) is None]
    for opcode in range(4096):
        for number in range(count):
            bits = draw.getrandbits(105)
            if number & 2:
                for _ in range(draw.choice((1, 2, 3))):
                    bits &= draw.getrandbits(105) | (1 << 72) - 1
            word = plain(bits & ~(0xFFF | 1 << 91) | opcode | (number & 1) << 91)
            if table.row_of(word) is None:
                words.append(word)
    found: dict[str, list[int]] = {}
    printed = [w for w, text in zip(words, oracle.texts(words), strict=True) if text is not None]
    for word, answer in zip(printed, oracle.classes(printed), strict=True):
        if answer is not None and len(kept := found.setdefault(answer[0], [])) < _KEPT:
            kept.append(word)
    return dict(sorted(found.items()))


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
