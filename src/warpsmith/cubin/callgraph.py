"""Tables of 32-bit words: `.nv.callgraph` (caller, callee), `.nv.prototype` (symbol, prototype) and `.nv.rel.action`."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MARKS", "WordTable"]

MARKS = {0xFFFFFFFF: "end of static calls", 0xFFFFFFFE: "indirect call", 0xFFFFFFFD: "address taken", 0xFFFFFFFC: "end"}
"""Callees with a meaning of their own; every call graph begins with symbol 0 beside each of them."""


@final
class WordTable:
    """Rows of a fixed number of 32-bit words, in order. Words of a call graph are symbol numbers, or one of `MARKS`."""

    __slots__ = ("rows", "width")

    def __init__(self, rows: list[tuple[int, ...]], width: int) -> None:
        self.rows, self.width = rows, width

    @classmethod
    def decode(cls, data: bytes, width: int) -> WordTable:
        """Read a table, whose length is a whole number of rows."""
        return cls(list(struct.iter_unpack(f"<{width}I", data)), width)

    def encode(self) -> bytes:
        """Return the table's bytes."""
        words = [w for row in self.rows for w in row]
        return struct.pack(f"<{len(words)}I", *words)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return iter(self.rows)
