"""Who touched each byte last: the shadow state of a space, exact to the byte.

A space is cut into cells of one size, the smallest access met so far (16 bytes at first): accesses are aligned to their
size, so that a cell is always touched as a whole and no byte is taken for its neighbour. When a smaller access comes, all
cells are split.

Each cell holds *entries*, 64 bits each, 0 for none:

    63:39  time (`check.clocks`)         17:16  strength: 0 weak, strong at 1 cta, 2 cluster, 3 gpu or sys scope
    38:18  agent: row · columns + column  15:0   site: number of the instruction

One entry for the last write, and `readers` entries for reads. In shared memory those are: the last read of each warp of the
CTA, then of other CTAs, then of asynchronous operations. In global memory: the last read, and the last read before it by
another CTA.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.memory import Space

    Entries = NDArray[np.uint64]

__all__ = ["AGENT", "AGENTS", "SITE", "SITES", "STRENGTH", "TIME", "Shadow", "agents_of", "entry", "note_last_two", "times_of"]

TIME, AGENT, STRENGTH, SITE = 39, 18, 16, 0
"""Lowest bits of the fields of an entry."""
AGENTS, SITES = 1 << (TIME - AGENT), 1 << STRENGTH
_LARGEST = 16


def entry(time: int, agent: Any, strength: int, site: int) -> Any:
    """Return an entry; `agent` may be an array of int64."""
    low = np.uint64((time << TIME) | (strength << STRENGTH) | site)
    return np.asarray(agent).astype(np.uint64) << np.uint64(AGENT) | low


def times_of(entries: Entries) -> NDArray[np.int64]:
    """Return the times of entries."""
    return (entries >> np.uint64(TIME)).astype(np.int64)


def agents_of(entries: Entries) -> NDArray[np.int64]:
    """Return the agents of entries."""
    return (entries >> np.uint64(AGENT)).astype(np.int64) & (AGENTS - 1)


@final
class Shadow:
    """The entries of a space, `writes` `[cells]` and `reads` `[cells, readers]`."""

    def __init__(self, space: Space, readers: int, cell: int) -> None:
        self.space, self.readers = space, readers
        self.used = False
        self._make(cell)

    def _make(self, cell: int) -> None:
        self.cell, self.shift = cell, cell.bit_length() - 1
        self.size = self.space.data.size
        self.writes: Entries = np.zeros(self.size >> self.shift, np.uint64)
        self.reads: Entries = np.zeros((self.size >> self.shift, self.readers), np.uint64)

    def cells(self, index: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        """Return the cells of n-byte accesses (at most 16) at flat indices: of the same shape, or `[…, cells of each]`."""
        if n < self.cell:
            self._split(n)
        if self.size != self.space.data.size:
            self._grow()
        if n == self.cell:
            return index >> self.shift
        return (index >> self.shift)[..., None] + np.arange(n >> self.shift)

    def span(self, start: int, stop: int) -> slice:
        """Return the cells of bytes `start:stop`."""
        for edge in (start, stop):
            while edge & (self.cell - 1):
                self._split(self.cell // 2)
        if self.size != self.space.data.size:
            self._grow()
        return slice(start >> self.shift, stop >> self.shift)

    def _split(self, cell: int) -> None:
        writes, reads, times = self.writes, self.reads, self.cell // cell
        self._make(cell)
        if self.used:
            self.writes[: writes.size * times] = np.repeat(writes, times)
            self.reads[: len(reads) * times] = np.repeat(reads, times, axis=0)

    def _grow(self) -> None:
        writes, reads = self.writes, self.reads
        self._make(self.cell)
        self.writes[: writes.size], self.reads[: len(reads)] = writes, reads


def note_last_two(shadow: Shadow, cells: NDArray[np.int64], entries: Any, columns: int) -> None:
    """Keep the last read of each cell, and the last one before it by another CTA."""
    flat, at = shadow.reads.reshape(-1), 2 * cells
    last = flat.take(at, mode="clip")
    entries = np.broadcast_to(entries, cells.shape)
    other = (last != 0) & (agents_of(last) // columns != agents_of(entries) // columns)
    if other.any():
        flat[at[other] + 1] = last[other]
    flat[at] = entries
