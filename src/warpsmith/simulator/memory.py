"""The state spaces: bytes, their shadow, and where addresses fall (PTX ISA 5.1, 6.4.1.1 for the generic windows).

A space is one flat array of bytes. Per-CTA and per-thread spaces hold one row after the other; a flat index is the row's
start plus the address. Every byte has a shadow byte of flags; an access takes data and shadow by the same indices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.host_memory import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "CONST_WINDOW",
    "GLOBAL_BASE",
    "LOCAL_WINDOW",
    "OUTSIDE",
    "PARAM_WINDOW",
    "PENDING_READ",
    "PENDING_WRITE",
    "SHARED_START",
    "SHARED_WINDOW",
    "UNDEFINED",
    "Allocation",
    "GlobalMemory",
    "RowMemory",
    "Space",
]

UNDEFINED, PENDING_WRITE, PENDING_READ, OUTSIDE = 1, 2, 4, 8
"""Flags of a shadow byte: never written; an asynchronous write, an asynchronous read is in flight; in no allocation."""

GLOBAL_BASE = 0x7000_0000_0000
SHARED_START = 1024
"""First address of `shared::cta`, as on hardware since sm_90 (the system keeps the first KiB)."""
SHARED_WINDOW, LOCAL_WINDOW, CONST_WINDOW, PARAM_WINDOW = 1 << 40, 2 << 40, 3 << 40, 4 << 40

_WORDS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
"""Bytes of an element → the dtype it moves as. complex128 is the 16-byte item of numpy; no arithmetic touches it."""
SAFE = 32
"""Bytes at the end of every row that lanes outside the mask access."""


@final
class Allocation:
    """A named piece of a space, for messages: bytes `start` to `start + size` of a row."""

    __slots__ = ("name", "size", "start")

    def __init__(self, name: str, start: int, size: int) -> None:
        self.name, self.start, self.size = name, start, size


class Space:
    """Bytes with their shadow. `row` is the stride of per-CTA or per-thread rows; the whole for one row."""

    def __init__(self, name: str, size: int, row: int | None = None) -> None:
        self.name = name
        self.row = row or size
        self.allocations: list[Allocation] = []
        self.reads: NDArray[np.uint8] | None = None
        """Where wanted: 1 for every byte that was read."""
        require(name, size)
        self._adopt(np.zeros(size, np.uint8), np.zeros(size, np.uint8))

    def _adopt(self, data: NDArray[np.uint8], shadow: NDArray[np.uint8]) -> None:
        self.data, self.shadow = data, shadow
        self.views: dict[int, NDArray[Any]] = {n: data.view(t) for n, t in _WORDS.items()}
        self.shadows: dict[int, NDArray[Any]] = {n: shadow.view(t) for n, t in _WORDS.items()}
        self.span = 1 << (self.row - 1).bit_length()
        self.reject = {n: ~(self.span - 1) | (n - 1) for n in (*_WORDS, 32)}
        """An address may be accessed as n bytes only if it has none of these bits."""

    def note_read(self, index: Any, n: int) -> None:
        """Note that n bytes (any number) from a flat byte index (or from each of an array) are read, where `reads` is kept."""
        if self.reads is None:
            return
        if isinstance(index, int):
            self.reads[index : index + n] = 1
            return
        low = n | int(np.bitwise_or.reduce(index, axis=None))
        width = min(low & -low, 16)
        words, ones = self.reads.view(_WORDS[width]), np.ones(width, np.uint8).view(_WORDS[width])[0]
        for k in range(0, n, width):
            words[(index + k) >> (width.bit_length() - 1)] = ones

    def read(self, index: NDArray[np.int64], n: int) -> NDArray[Any]:
        """Return the items of n bytes (1, 2, 4, 8, 16) at flat byte indices that are multiples of n."""
        self.note_read(index, n)
        return self.views[n].take(index >> (n.bit_length() - 1), mode="clip")

    def flags(self, index: NDArray[np.int64], n: int) -> NDArray[Any]:
        """Return the shadow of the same items."""
        return self.shadows[n].take(index >> (n.bit_length() - 1), mode="clip")

    def write(self, index: NDArray[np.int64], n: int, values: NDArray[Any]) -> None:
        """Store items of n bytes; of lanes with one index the last stays."""
        self.views[n][index >> (n.bit_length() - 1)] = values

    def mark_pending(self, start: int, stop: int, *, write: bool) -> None:
        """Mark bytes as written (or read) by an operation in flight."""
        self.shadow[start:stop] |= PENDING_WRITE if write else PENDING_READ

    def unmark_pending(self, start: int, stop: int, *, write: bool) -> None:
        """Undo `mark_pending`; bytes written are defined from now on."""
        self.shadow[start:stop] &= 0xFF ^ ((PENDING_WRITE | UNDEFINED) if write else PENDING_READ)

    def allocation_near(self, address: int) -> tuple[Allocation | None, int]:
        """Return the allocation that contains `address` or lies nearest, and the distance beyond it (0 inside)."""
        best: Allocation | None = None
        distance = 1 << 62
        for a in self.allocations:
            d = (
                0
                if a.start <= address < a.start + a.size
                else (a.start - address if address < a.start else address - a.start - a.size + 1)
            )
            if d < distance:
                best, distance = a, d
        return best, distance


@final
class GlobalMemory(Space):
    """Global memory: one arena. Allocations are 256-byte aligned and separated by guard gaps of at least 256 bytes."""

    def __init__(self) -> None:
        super().__init__("global", 4096)
        self.shadow[:-SAFE] = OUTSIDE
        self.heap_calls = 0
        """Calls of `malloc` and `free` that did something."""
        self.top = 256
        """First byte behind the allocations."""

    def allocate(self, name: str, size: int, *, defined: bool = True, align: int = 256) -> int:
        """Return the byte index (address less `GLOBAL_BASE`) of a new piece of `size` zero bytes; `align`: a power of two."""
        align = max(align, 256)
        start = (self.top + align - 1) // align * align
        self.top = (start + size + 256 + 255) // 256 * 256
        if self.top + SAFE > self.data.size:
            self._grow(max(2 * self.data.size, (self.top + 8191) // 4096 * 4096))
        self.shadow[start : start + size] = 0 if defined else UNDEFINED
        self.allocations.append(Allocation(name, start, size))
        return start

    def restore(self, data: NDArray[np.uint8], shadow: NDArray[np.uint8], top: int, allocations: list[Allocation]) -> None:
        """Become what another global memory was."""
        self.row, self.top, self.allocations = data.size, top, allocations
        self._adopt(data, shadow)

    def reserve(self, size: int) -> None:
        """Make room for further allocations of `size` bytes in all, so that the arena grows once."""
        need = self.top + size + 8192
        if need > self.data.size:
            self._grow((need + 4095) // 4096 * 4096)

    def _grow(self, size: int) -> None:
        require(self.name, size)
        data, shadow = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
        old = self.data.size - SAFE
        data[:old] = self.data[:old]
        shadow[:old] = self.shadow[:old]
        shadow[old : size - SAFE] = OUTSIDE
        if self.reads is not None:
            self.reads = np.concatenate([self.reads, np.zeros(size - self.reads.size, np.uint8)])
        self.row = size
        self._adopt(data, shadow)


@final
class RowMemory(Space):
    """One row of bytes per CTA (shared) or per thread (local): `rows` rows of which `start:start+size` are allocated.

    A row is a power of two, so that one bit test bounds an address.
    """

    def __init__(self, name: str, rows: int, start: int, size: int, *, defined: bool = False) -> None:
        row = 1 << max(6, (start + size + SAFE - 1).bit_length())
        self.start, self.size, self.defined = start, size, defined
        self._lent: tuple[int, int] | None = None
        super().__init__(name, rows * row, row)
        self.rows = rows
        self.reset(0, rows)

    def reset(self, first: int, stop: int) -> None:
        """Make rows `first:stop` fresh: zero bytes, undefined unless the space is born defined."""
        data = self.data.reshape(self.rows, self.row)[first:stop]
        shadow = self.shadow.reshape(self.rows, self.row)[first:stop]
        data[:, self.start : self.start + self.size] = 0
        shadow[:, :-SAFE] = OUTSIDE
        shadow[:, self.start : self.start + self.size] = 0 if self.defined else UNDEFINED
        if self._lent:
            start, size = self._lent
            data[:, start : start + size] = 0
            shadow[:, start : start + size] = 0

    def lend(self, start: int, size: int) -> None:
        """Make bytes in front of the program's own memory accessible, in every row: zero and defined."""
        self._lent = (start, size)
        self.reset(0, self.rows)
