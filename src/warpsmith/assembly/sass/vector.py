"""Columns of words with numpy: the fast side of `columns.py`, and the one module of the lower rooms that imports numpy.

A word's form depends on its opcode's mask and predicates alone. Both are found for all words at once and looked up in a hash
table of numpy arrays, which holds the whole key: two keys with one hash are told apart. What finds no place near its hash
stands in a dictionary. Threads may share a finder.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from warpsmith.assembly.sass.row import width_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.sass.decode import Decoder, Form, Shape
    from warpsmith.assembly.sass.row import Bits, Row, Selector

__all__ = ["FormFinder", "VectorGroup", "finder_of", "gather", "group_words", "join"]

Halves: TypeAlias = NDArray[np.uint64]
_U = np.uint64
_STEADY = _U(1 << 45)
_REUSE = _U(7 << 58)
_BLOCK = 1 << 16
"""Words looked at at a time: their halves and keys stay in the cache."""
_PROBES = 8
_MOST = 1 << 20
"""Keys that are remembered; then all are forgotten."""
_ODD = (_U(0x9E3779B97F4A7C15), _U(0xC2B2AE3D27D4EB4F), _U(0x165667B19E3779F9))
_ONES = (1 << 64) - 1


def gather(low: Halves, high: Halves, bits: Bits) -> Halves:
    """Return the runs of words as numbers of at most 64 bits, like `row.gather`."""
    if width_of(bits) > 64:
        raise ValueError(f"{width_of(bits)} bits do not fit a column of 64")
    out: Halves | None = None
    shift = 0
    for start, width in _runs(bits):
        half, at = (low, start) if start < 64 else (high, start - 64)
        part = half >> _U(at) if at else half
        if at + width < 64:
            part = part & _U((1 << width) - 1)
        out = part if out is None else out | part << _U(shift)
        shift += width
    return np.zeros_like(low) if out is None else out


def _runs(bits: Bits) -> list[tuple[int, int]]:
    """Cut runs at the border of the halves."""
    out: list[tuple[int, int]] = []
    for start, width in bits:
        if start < 64 < start + width:
            out += [(start, 64 - start), (64, start + width - 64)]
        else:
            out.append((start, width))
    return out


def join(row: Row, parts: Sequence[Bits], columns: Sequence[Halves]) -> tuple[Halves, Halves]:
    """Return the halves of the words of a row whose parts have these columns; raise `ValueError` for a value too wide."""
    halves = [np.full(len(columns[0]), row.value & _ONES, _U), np.full(len(columns[0]), row.value >> 64, _U)]
    for bits, column in zip(parts, columns, strict=True):
        width = width_of(bits)
        if column.dtype != _U or (width < 64 and len(column) and int(column.max()) >> width):
            raise ValueError(f"a value does not fit the {width} bits {bits} of {row.name}")
        shift = 0
        for start, count in _runs(bits):
            part = column >> _U(shift) & _U((1 << count) - 1)
            half = halves[start >= 64]
            np.bitwise_or(half, part << _U(start % 64), out=half)
            shift += count
    return halves[0], halves[1]


@final
class VectorGroup:
    """`columns.Columns` as numpy arrays."""

    __slots__ = ("_finder", "_numbers", "high", "indexes", "low", "row")

    def __init__(self, row: Row | None, indexes: Any, low: Halves, high: Halves, finder: FormFinder, numbers: Any) -> None:
        self.row = row
        self.indexes: Any = indexes
        self.low: Any = low
        self.high: Any = high
        self._finder = finder
        self._numbers = numbers

    @property
    def forms(self) -> list[Form]:
        """The form of each word; empty for unknown words."""
        forms = self._finder.forms
        return [f for n in self._numbers[self.indexes].tolist() if (f := forms[n]) is not None]

    def column(self, bits: Bits) -> Any:
        """Return the value of some bits, 64 at most, in each word."""
        return gather(self.low, self.high, bits)

    def fields(self) -> list[Any]:
        """Return a column for each field of the row, in the order of `row.fields`."""
        return [self.column(f.bits) for f in self.row.fields] if self.row else []


@final
class FormFinder:
    """The forms of words of one decoder. `forms[n]` is the form of number n, `rows[n]` the number of its row; 0 is unknown."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.forms: list[Form | None] = [None]
        self.rows: list[Row | None] = [None]
        self.row_of_form = np.zeros(1, np.int32)
        """Number of a form -> number of its row in `rows`."""
        self._numbers: dict[int, int] = {id(None): 0}
        self._row_numbers: dict[int, int] = {id(None): 0}
        self._masks = np.zeros((2, 4096), _U)
        self._flags: dict[int, Shape] = {}
        self._seen = np.zeros(4096, bool)
        self._flagged = np.zeros(4096, bool)
        self._lock = Lock()
        self._clear(1 << 15)

    def _clear(self, size: int) -> None:
        self._keys = np.zeros((3, size), _U)
        self._found = np.full(size, -1, np.int32)
        self._count = 0
        self._crowded: dict[tuple[int, int, int], int] = {}
        """Keys that share their hash with too many others, and their forms."""

    def numbers(self, low: Halves, high: Halves) -> NDArray[np.int32]:
        """Return the number of each word's form."""
        out = np.empty(len(low), np.int32)
        for at in range(0, len(low), _BLOCK):
            with self._lock:
                out[at : at + _BLOCK] = self._block(low[at : at + _BLOCK], high[at : at + _BLOCK])
        return out

    def _block(self, low: Halves, high: Halves) -> NDArray[np.int32]:
        opcode = (low & _U(0xFFF)).astype(np.int64)
        if not self._seen[opcode].all():
            for one in np.unique(opcode[~self._seen[opcode]]).tolist():
                self._learn(one)
        high = np.where(high & _STEADY, high, high & ~_REUSE)
        keys = (low & self._masks[0][opcode], high & self._masks[1][opcode], self._predicates(low, high, opcode))
        return self._look_up(keys, low, high)

    def _learn(self, opcode: int) -> None:
        shape = self.decoder.shape(opcode)
        mask = shape.mask | 0xFFF
        self._masks[:, opcode] = mask & _ONES, mask >> 64
        self._seen[opcode] = True
        if shape.flags:
            self._flagged[opcode] = True
            self._flags[opcode] = shape

    def _predicates(self, low: Halves, high: Halves, opcode: NDArray[np.int64]) -> Halves:
        """Return one number for the values of all predicates that a word's opcode looks at."""
        out = np.zeros(len(low), _U)
        where = np.flatnonzero(self._flagged[opcode])
        if not len(where):
            return out
        codes = opcode[where].astype(np.uint16)
        where = where[np.argsort(codes, kind="stable")]
        counts = np.bincount(codes, minlength=4096)
        ends = np.cumsum(counts)
        for one in np.flatnonzero(counts).tolist():
            here = where[ends[one] - counts[one] : ends[one]]
            a, b, total = low[here], high[here], np.zeros(len(here), _U)
            for _, memory in self._flags[one].flags:
                total = total * _U(len(memory.selector.predicates) + 1) + _values(a, b, memory.selector)
            out[here] = total
        return out

    def _look_up(self, keys: tuple[Halves, Halves, Halves], low: Halves, high: Halves) -> NDArray[np.int32]:
        while True:
            out = np.full(len(low), -1, np.int32)
            rest: Any = slice(None)
            mixed = keys[0] * _ODD[0] ^ (keys[1] + keys[2] * _ODD[2]) * _ODD[1]
            mixed ^= mixed >> _U(29)
            start = (mixed * _ODD[0] >> _U(40)).astype(np.int64)
            part, at = keys, start
            for probe in range(_PROBES):
                place = at + probe & len(self._found) - 1
                found = self._found[place]
                same = found >= 0
                for mine, kept in zip(part, self._keys, strict=True):
                    same &= kept[place] == mine
                if same.all():
                    out[rest] = found
                    return out
                out[rest] = np.where(same, found, -1)
                rest = np.flatnonzero(out < 0)
                part, at = (part[0][~same], part[1][~same], part[2][~same]), at[~same]
            if self._crowded:
                kept = [self._crowded.get(key, -1) for key in zip(*(k[rest].tolist() for k in keys), strict=True)]
                out[rest] = kept
                rest = rest[np.array(kept, np.int32) < 0]
                if not len(rest):
                    return out
            self._add([k[rest] for k in keys], start[rest], low[rest], high[rest])

    def _add(self, keys: Sequence[Halves], start: NDArray[np.int64], low: Halves, high: Halves) -> None:
        """Put the forms of words into the hash table; it is emptied and grows when it is more than half full."""
        words = zip(start.tolist(), low.tolist(), high.tolist(), strict=True)
        size = len(self._found)
        for key, (at, a, b) in dict(zip(zip(*(k.tolist() for k in keys), strict=True), words, strict=True)).items():
            if 2 * self._count >= size:
                self._clear(min(2 * size, 2 * _MOST))
                return
            self._count += 1
            number = self._number(self.decoder.form(a | b << 64))
            places = [at + probe & size - 1 for probe in range(_PROBES)]
            place = next((p for p in places if self._found[p] < 0), None)
            if place is None:
                self._crowded[key] = number
            else:
                self._keys[:, place] = key
                self._found[place] = number

    def _number(self, form: Form | None) -> int:
        number = self._numbers.get(id(form))
        if number is None:
            row = form.row if form else None
            number = self._numbers[id(form)] = len(self.forms)
            self.forms.append(form)
            if id(row) not in self._row_numbers:
                self._row_numbers[id(row)] = len(self.rows)
                self.rows.append(row)
            self.row_of_form = np.append(self.row_of_form, np.int32(self._row_numbers[id(row)]))
        return number


def _values(low: Halves, high: Halves, s: Selector) -> Halves:
    """Return the values of a selector, like `Selector.of`."""
    value = gather(low, high, s.bits)
    out = np.zeros(len(low), _U)
    for index in range(len(s.predicates) - 1, -1, -1):
        name, args = s.predicates[index]
        if name == "eq":
            holds = value == _U(args[0])
        else:
            holds = (value != 0) & (value & (value - _U(1)) == 0) & ~np.isin(value, np.array(args, _U))
        out[holds] = index + 1
    return out if s.predicates else value


def finder_of(decoder: Decoder) -> FormFinder:
    """Return the finder of a decoder, made once."""
    if not isinstance(decoder.kept, FormFinder):
        decoder.kept = FormFinder(decoder)
    return decoder.kept


def group_words(code: bytes | bytearray | memoryview, decoder: Decoder) -> list[VectorGroup]:
    """Group the instructions of code by row, in order of first appearance."""
    words = np.frombuffer(code, "<u8").reshape(-1, 2)
    finder = finder_of(decoder)
    low, high = np.ascontiguousarray(words[:, 0], _U), np.ascontiguousarray(words[:, 1], _U)
    numbers = finder.numbers(low, high)
    rows = finder.row_of_form[numbers].astype(np.uint16 if len(finder.rows) < 1 << 16 else np.int64)
    order = np.argsort(rows, kind="stable")
    low, high, counts = low[order], high[order], np.bincount(rows, minlength=len(finder.rows))
    ends = np.cumsum(counts)
    groups: list[VectorGroup] = []
    for row in np.flatnonzero(counts).tolist():
        here = slice(int(ends[row] - counts[row]), int(ends[row]))
        groups.append(VectorGroup(finder.rows[row], order[here], low[here], high[here], finder, numbers))
    return sorted(groups, key=lambda g: int(g.indexes[0]))
