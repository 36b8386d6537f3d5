"""Fields of a whole section at once: words grouped by row of the table, one column for each field.

`group_words` works with the standard library alone, and with numpy (`vector.py`) where that is loaded or worth loading; both
give groups of one interface. `join` is the way back, from columns to words.
"""

from __future__ import annotations

import sys
from array import array
from importlib.util import find_spec
from operator import itemgetter
from struct import iter_unpack
from typing import TYPE_CHECKING, Protocol, final

from warpsmith.assembly.sass.row import Bits, gather, runs_of, scatter, width_of
from warpsmith.base.optional import adapter, is_loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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
_UNITS = {8: "B", 16: "H", 32: "I"}
"""Width of a field -> the array's name for numbers of that width."""


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

    __slots__ = ("_bytes", "_decoder", "high", "indexes", "low", "row")

    def __init__(self, row: Row | None, indexes: list[int], low: list[int], high: list[int], decoder: Decoder) -> None:
        self.row = row
        self.indexes = indexes
        self.low = _chosen(low, indexes)
        self.high = _chosen(high, indexes)
        self._decoder = decoder
        self._bytes: dict[bool, bytes] = {}

    @property
    def forms(self) -> list[Form]:
        """The form of each word; empty for unknown words."""
        form = self._decoder.form
        return [f for low, high in zip(self.low, self.high, strict=True) if (f := form(low | high << 64))]

    def column(self, bits: Bits) -> list[int]:
        """Return the value of some bits in each word of the group."""
        if len(bits) == 1:
            start, width = bits[0]
            if start + width <= 64 or start >= 64:
                return self._run(self.low if start < 64 else self.high, start % 64, width, start >= 64)
        return [gather(low | high << 64, bits) for low, high in zip(self.low, self.high, strict=True)]

    def _run(self, words: list[int], start: int, width: int, above: bool) -> list[int]:
        """Return bits of one half: those of whole bytes without arithmetic."""
        code = _UNITS.get(width)
        if code is None or start % width:
            mask = (1 << width) - 1
            return [w >> start & mask for w in words]
        data = self._bytes.get(above)
        if data is None:
            data = self._bytes[above] = _packed("Q", words).tobytes()
        units = data if width == 8 else _packed(code, data)
        return list(units[start // width :: 64 // width])

    def fields(self) -> list[Sequence[int]]:
        """Return a column for each field of the row, in the order of `row.fields`."""
        return [self.column(f.bits) for f in self.row.fields] if self.row else []


def _chosen(items: list[int], indexes: list[int]) -> list[int]:
    return list(itemgetter(*indexes)(items)) if len(indexes) > 1 else [items[indexes[0]]]


def _packed(code: str, items: Iterable[int] | bytes) -> array[int]:
    """Return numbers of the machine from little-endian bytes, or numbers that become such bytes."""
    out = array(code, items)
    if sys.byteorder == "big":
        out.byteswap()
    return out


def group_words(code: bytes | bytearray | memoryview, decoder: Decoder, *, vector: bool | None = None) -> Sequence[Columns]:
    """Group the instructions of code, a multiple of 16 bytes, by row, in order of first appearance.

    `vector` says whether numpy does it; left out, it does where it is loaded, or installed and worth loading.
    """
    if vector is None:
        vector = is_loaded("vector") or (len(code) >= 16 * _MANY and find_spec("numpy") is not None)
    if vector:
        return adapter("vector").group_words(code, decoder)
    data = bytes(code)
    halves = _packed("Q", data)
    low, high = halves[::2].tolist(), halves[1::2].tolist()
    rows: dict[int, Row | None] = {}
    found: dict[int, list[int]] = {}

    def row_of(at: int) -> int:
        form = decoder.form(low[at] | high[at] << 64)
        number = id(form.row if form else None)
        if number not in rows:
            rows[number], found[number] = form.row if form else None, []
        return number

    keys = _keys(data, decoder)
    flagged: dict[int, list[int]] = {}
    into: dict[tuple[bytes], list[int]] = {}
    for key, at in dict(zip(iter_unpack("16s", keys), range(len(low)), strict=True)).items():
        into[key] = flagged.setdefault(at, []) if decoder.shape(low[at] & 0xFFF).choosing else found[row_of(at)]
    for index, key in enumerate(iter_unpack("16s", keys)):
        into[key].append(index)
    for indexes in flagged.values():
        _divide(indexes, decoder.shape(low[indexes[0]] & 0xFFF).choosing, low, high, row_of, found)
    groups = [Group(rows[number], sorted(indexes), low, high, decoder) for number, indexes in found.items()]
    return sorted(groups, key=lambda g: g.indexes[0])


def _keys(data: bytes, decoder: Decoder) -> bytes:
    """Return what decides, predicates on fields aside, on the form of each word: the bits that its opcode's forms look at."""
    beginnings = _packed("H", data)[::8]
    masks: dict[int, bytes] = {}
    for bits in set(beginnings):
        mask = decoder.shape(bits & 0xFFF).mask | 0xFFF
        # bit 109 says whether the reuse bits are reuse
        masks[bits] = (mask | _STEADY << 64 if mask >> 64 & _REUSE else mask).to_bytes(16, "little")
    wanted = b"".join(map(masks.__getitem__, beginnings))
    return (int.from_bytes(data, "little") & int.from_bytes(wanted, "little")).to_bytes(len(data), "little")


def _divide(
    indexes: list[int],
    flags: _Flags,
    low: list[int],
    high: list[int],
    row_of: Callable[[int], int],
    found: dict[int, list[int]],
) -> None:
    """Divide words with equal keys by row; words of equal predicates have the same."""
    columns: list[list[int]] = []
    for mask, memory in flags:
        if mask >> 64:
            columns.append([memory[(low[i] | high[i] << 64) & mask] for i in indexes])
        else:
            columns.append([memory[low[i] & mask] for i in indexes])
    values: list[object] = list(zip(*columns, strict=True)) if len(columns) > 1 else [*columns[0]]
    row = {value: row_of(at) for value, at in dict(zip(values, indexes, strict=True)).items()}
    if len(set(row.values())) == 1:
        found[row[values[0]]] += indexes
        return
    for value, index in zip(values, indexes, strict=True):
        found[row[value]].append(index)


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
