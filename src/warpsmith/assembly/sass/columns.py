"""Fields of a whole section at once: words grouped by row of the table, one column for each field.

`group_words` works with the standard library alone, and with numpy (`vector.py`) where that is loaded or worth loading; both
give groups of one interface. `join` is the way back, from columns to words.
"""

from __future__ import annotations

import sys
from array import array
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol, final

from warpsmith.assembly.sass.row import Bits, gather, runs_of, scatter, width_of
from warpsmith.base.optional import adapter, is_loaded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warpsmith.assembly.sass.decode import Decoder, Form
    from warpsmith.assembly.sass.row import Row, SelectorMemory

    _Flags = tuple[tuple[int, SelectorMemory], ...]

__all__ = ["CONTROL", "Columns", "Group", "group_words", "join", "parts_of"]

CONTROL: Bits = ((105, 23),)
"""The control bits and the three bits above them."""

_STEADY = 1 << 45
"""Bit 109, in the high half: the reuse bits are reuse."""
_REUSE = 7 << 58
_MANY = 100_000
"""So many words are worth loading numpy for."""


class Columns(Protocol):
    """The instructions of one row of the table. Columns are lists of integers, or numpy arrays of 64 bits."""

    @property
    def row(self) -> Row | None:
        """None for words that the table does not know."""
        ...

    @property
    def indexes(self) -> Sequence[int]:
        """Numbers of the instructions, from the start of the code, rising."""
        ...

    @property
    def low(self) -> Sequence[int]:
        """Bits 0–63 of each word."""
        ...

    @property
    def high(self) -> Sequence[int]:
        """Bits 64–127."""
        ...

    @property
    def forms(self) -> list[Form]:
        """The form of each word: the row with its texts chosen; empty for unknown words."""
        ...

    def column(self, bits: Bits) -> Sequence[int]:
        """Return the value of some bits, 64 at most, in each word."""
        ...

    def fields(self) -> list[Sequence[int]]:
        """Return a column for each field of the row, in the order of `row.fields`."""
        ...


@final
class Group:
    """`Columns` as lists."""

    __slots__ = ("_parts", "high", "indexes", "low", "row")

    def __init__(self, parts: Sequence[tuple[Form | None, list[int]]], low: list[int], high: list[int]) -> None:
        form = parts[0][0]
        self.row: Row | None = form.row if form else None
        self._parts = parts
        self.indexes = sorted(i for _, indexes in parts for i in indexes)
        self.low = [low[i] for i in self.indexes]
        self.high = [high[i] for i in self.indexes]

    @property
    def forms(self) -> list[Form]:
        """The form of each word; empty for unknown words."""
        found = {i: form for form, indexes in self._parts if form for i in indexes}
        return [found[i] for i in self.indexes] if found else []

    def column(self, bits: Bits) -> list[int]:
        """Return the value of some bits in each word of the group."""
        if len(bits) == 1:
            start, width = bits[0]
            mask = (1 << width) - 1
            if start + width <= 64:
                return [w >> start & mask for w in self.low]
            if start >= 64:
                start -= 64
                return [w >> start & mask for w in self.high]
        return [gather(low | high << 64, bits) for low, high in zip(self.low, self.high, strict=True)]

    def fields(self) -> list[Sequence[int]]:
        """Return a column for each field of the row, in the order of `row.fields`."""
        return [self.column(f.bits) for f in self.row.fields] if self.row else []


def group_words(code: bytes | bytearray | memoryview, decoder: Decoder, *, vector: bool | None = None) -> Sequence[Columns]:
    """Group the instructions of code, a multiple of 16 bytes, by row, in order of first appearance.

    `vector` says whether numpy does it; left out, it does where it is loaded, or installed and worth loading.
    """
    if vector is None:
        vector = is_loaded("vector") or (len(code) >= 16 * _MANY and find_spec("numpy") is not None)
    if vector:
        return adapter("vector").group_words(code, decoder)
    halves = array("Q", bytes(code))
    if sys.byteorder == "big":
        halves.byteswap()
    low, high = halves[::2].tolist(), halves[1::2].tolist()
    parts: dict[int, list[tuple[Form | None, list[int]]]] = {}
    for alike in _alike(decoder, low, high):
        form = decoder.form(low[alike[0]] | high[alike[0]] << 64)
        parts.setdefault(id(form.row if form else None), []).append((form, alike))
    groups = [Group(part, low, high) for part in parts.values()]
    return sorted(groups, key=lambda g: g.indexes[0])


def _alike(decoder: Decoder, low: list[int], high: list[int]) -> Iterable[list[int]]:
    """Divide words into those of one form each (a form may have several parts)."""
    views: dict[int, tuple[int, int, int, _Flags]] = {}
    out: dict[object, list[int]] = {}
    for index, (a, b) in enumerate(zip(low, high, strict=True)):
        view = views.get(a & 0xFFF)
        if view is None:
            view = views[a & 0xFFF] = _view(decoder, a & 0xFFF)
        below, above, idle, flags = view
        key: object = (a & below, b & (above if b & _STEADY else idle))
        if flags:
            word = a | b << 64
            key = (key, *[memory[word & mask] for mask, memory in flags])
        found = out.get(key)
        if found is None:
            out[key] = [index]
        else:
            found.append(index)
    return out.values()


def _view(decoder: Decoder, opcode: int) -> tuple[int, int, int, _Flags]:
    """Return what decides on the form of an opcode's words: bits of the low half, the high half, without reuse; predicates."""
    shape = decoder.shape(opcode)
    above = shape.mask >> 64
    return shape.mask & (1 << 64) - 1 | 0xFFF, above, above & ~_REUSE, shape.flags


def parts_of(row: Row) -> tuple[Bits, ...]:
    """Return the bits that are not the row's key, each once: fields, selectors, ignored bits, `CONTROL`.

    What of a selector lies among the reuse bits is part of `CONTROL`; selectors that only look at a field have no part.
    """
    parts = [f.bits for f in row.fields]
    parts += [tuple(run for run in s.bits if run[0] < 105) for s in row.selectors if not s.predicates]
    half = (1 << 64) - 1
    parts += [runs_of(row.ignored & half), runs_of(row.ignored & ~half)]
    return (*(p for p in parts if p), CONTROL)


def join(row: Row, columns: Sequence[Sequence[int]], *, vector: bool = False) -> tuple[Sequence[int], Sequence[int]]:
    """Return low and high halves of the words of a row whose parts (`parts_of`) have these columns.

    Raises `ValueError` for a value that does not fit its part, or columns of different length. With `vector` the columns are
    numpy arrays of unsigned 64-bit numbers.
    """
    parts = parts_of(row)
    if len(parts) != len(columns):
        raise ValueError(f"{row.name} has {len(parts)} parts, {len(columns)} columns were given")
    if vector:
        return adapter("vector").join(row, parts, columns)
    words = [row.value] * len(columns[0])
    for bits, column in zip(parts, columns, strict=True):
        limit = 1 << width_of(bits)
        if any(not 0 <= value < limit for value in column):
            raise ValueError(f"a value does not fit the {width_of(bits)} bits {bits} of {row.name}")
        words = [word | scatter(value, bits) for word, value in zip(words, column, strict=True)]
    return [w & (1 << 64) - 1 for w in words], [w >> 64 for w in words]
