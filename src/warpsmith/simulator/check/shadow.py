"""Who touched each byte last: the shadow state of a space, exact to the byte.

A space is cut into cells of one size (`check.cells`): accesses are aligned to their size, so that a cell is always written
as a whole and no byte is taken for its neighbour. When a smaller access comes, all cells are split; but reads of a part of a
cell of shared memory are noted as of the whole, for no write tells its bytes apart.

Each cell has one entry (`check.entries`) for the last write, and `readers` entries for reads. In shared memory those are:
the last read of each warp of the CTA, then of each warp of the cluster's other CTAs, then of asynchronous operations;
where several lanes of a warp have read, `lanes` keeps them all. In global memory: the last read, and the last read before
it by another CTA.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.check.entries import agents_of
from warpsmith.simulator.check.product_log import ProductLog

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.check.entries import Entries
    from warpsmith.simulator.check.lane_reads import LaneReads
    from warpsmith.simulator.memory import Space

__all__ = ["Shadow", "note_last_two"]


@final
class Shadow:
    """The entries of a space, `writes` `[cells]` and `reads` `[cells, readers]`."""

    def __init__(self, space: Space, readers: int, cell: int, lanes: LaneReads | None = None) -> None:
        self.space, self.readers, self.lanes = space, readers, lanes
        self.products = None if lanes is None else ProductLog(lanes)
        """Reads that have not found their way into `reads` yet."""
        self.twin: Shadow | None = None
        """A shadow that is split with this one."""
        self.used = False
        self._partly = False
        """Lanes were noted as readers of cells of which they have read a part."""
        self._make(cell)

    def _make(self, cell: int) -> None:
        self.cell, self.shift = cell, cell.bit_length() - 1
        self.size = self.space.data.size
        self.writes: Entries = np.zeros(self.size >> self.shift, np.uint64)
        self.settled_reads: Entries = np.zeros((self.size >> self.shift, self.readers), np.uint64)
        """Those that are not in the log of products any more."""

    @property
    def reads(self) -> Entries:
        """The entries of reads, `[cells, readers]`."""
        if self.products:
            self.products.settle(self.settled_reads)
        return self.settled_reads

    def reads_at(self, cells: Any) -> Entries:
        """Return the reads of cells (an index), as `reads[cells]`."""
        return self._of(cells)[cells]

    def reads_of(self, cells: NDArray[np.int64]) -> Entries:
        """Return an array that holds what `reads` does of some cells."""
        if self.products and cells.size:
            self.products.settle(self.settled_reads, int(cells.min()), int(cells.max()) + 1)
        return self.settled_reads

    def _of(self, cells: Any) -> Entries:
        """Return an array whose `cells` (an index) are those of `reads`."""
        if self.products and isinstance(cells, slice):
            self.products.settle(self.settled_reads, cells.start, cells.stop)
            return self.settled_reads
        return self.reads

    def cells(self, index: NDArray[np.int64], n: int, *, reading: bool = False) -> NDArray[np.int64]:
        """Return the cells of n-byte accesses (at most 16) at flat indices: of the same shape, or `[…, cells of each]`."""
        if n < self.cell:
            if reading and self.lanes is not None:
                self._partly = True
                return index >> self.shift
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
        if self._partly:  # a write smaller than all that were foreseen
            assert self.lanes is not None
            self.lanes.lose(self.readers)
            self.reads[:] = 0
            self._partly = False
        writes, reads, times = self.writes, self.reads, self.cell // cell
        self._make(cell)
        if self.used:
            self.writes[: writes.size * times] = np.repeat(writes, times)
            self.reads[: len(reads) * times] = np.repeat(reads, times, axis=0)
        if self.lanes is not None:
            self.lanes.resize(len(self.reads), self.readers, times)
        if self.twin is not None:
            self.twin._split(cell)

    def _grow(self) -> None:
        writes, reads = self.writes, self.reads
        self._make(self.cell)
        self.writes[: writes.size], self.reads[: len(reads)] = writes, reads

    def clear_reads(self, cells: Any) -> None:
        """Forget who has read cells (an index)."""
        self._of(cells)[cells] = 0
        if self.lanes is not None:
            self.lanes.forget(cells, self.readers)

    def many(self, cells: Any) -> Entries | None:
        """Return the reads of cells (an index) by all lanes of warps of which several have read; None where there are none."""
        return None if self.lanes is None else self.lanes.of_cells(self._of(cells), cells, self.readers)


def note_last_two(shadow: Shadow, cells: NDArray[np.int64], entries: Any, columns: int, *, ctas: int) -> None:
    """Keep the last read of each cell, and the last one before it by another CTA; the reads are those of so many CTAs."""
    flat, at = shadow.reads.reshape(-1), 2 * cells
    last = flat.take(at, mode="clip")
    entries = np.broadcast_to(entries, cells.shape)
    other = (last != 0) & (agents_of(last) // columns != agents_of(entries) // columns)
    if other.any():
        flat[at[other] + 1] = last[other]
    flat[at] = entries
    if ctas == 1:
        return
    kept = flat.take(at, mode="clip")
    if (lost := kept != entries).any():  # of several readers of a cell one is the last
        lost &= agents_of(kept) // columns != agents_of(entries) // columns
        flat[at[lost] + 1] = entries[lost]
