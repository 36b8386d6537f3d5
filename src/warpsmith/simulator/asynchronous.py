"""Operations in flight: copies, matrix products, remote arrivals. They take effect when the schedule completes them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.base.source import Place
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.memory import Space

__all__ = ["AsyncOperation", "AsyncQueue", "Extent"]


@final
@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes of a space: flat indices `start` to `stop` (exclusive)."""

    space: Space
    start: int
    stop: int


@final
@dataclass(slots=True, eq=False)
class AsyncOperation:
    """One operation in flight. `complete(machine)` reads its sources and writes its results, all at once."""

    kind: str
    """For reports, e.g. `cp.async.bulk.tensor`."""
    complete: Callable[[Machine], None]
    row: int
    """Resident row of the issuing CTA."""
    place: Place | None = None
    threads: str = ""
    reads: list[Extent] = field(default_factory=list)
    writes: list[Extent] = field(default_factory=list)
    queue: Hashable = None
    """Operations of one queue complete in the order of issue; None: in any order."""
    eligible: Callable[[], bool] | None = None
    """When given, the operation can complete only once it says True."""
    done: bool = False
    cta: int = -1
    """The CTA that held `row` at the issue (linear in the grid)."""
    bounds: list[tuple[Space, int, int]] = field(default_factory=list)
    """Per space touched: where the first of its extents starts and the last one stops; filled by `issue`."""
    serial: int = -1
    """Order of issue over the whole launch; filled by `issue`."""


def _bounds(extents: list[Extent]) -> list[tuple[Space, int, int]]:
    spaces = {id(e.space): e.space for e in extents}
    return [
        (s, min(e.start for e in extents if e.space is s), max(e.stop for e in extents if e.space is s))
        for s in spaces.values()
    ]


class Ranges(NamedTuple):
    """Extents of one space as arrays sorted by start; ends never fall."""

    start: NDArray[np.int64]
    stop: NDArray[np.int64]

    @classmethod
    def of(cls, extents: list[Extent], space: Space) -> Ranges:
        """Return the extents of a space."""
        pairs = np.array(sorted((e.start, e.stop) for e in extents if e.space is space), np.int64).reshape(-1, 2)
        return cls(pairs[:, 0], np.maximum.accumulate(pairs[:, 1]))

    def overlapping(self, others: list[Ranges]) -> list[tuple[int, int]]:
        """Return the extents that share a byte with one of `others`."""
        hit = np.zeros(len(self.start), np.bool_)
        for o in others:
            if len(o.start):
                first = np.minimum(np.searchsorted(o.stop, self.start, side="right"), len(o.start) - 1)
                hit |= (o.start[first] < self.stop) & (self.start < o.stop[first])
        return list(zip(self.start[hit].tolist(), self.stop[hit].tolist(), strict=True))


@final
class AsyncQueue:
    """The operations in flight, in the order of issue."""

    def __init__(self) -> None:
        self.pending: list[AsyncOperation] = []
        self.issued = 0
        self.completed = 0

    def issue(self, op: AsyncOperation) -> None:
        """Put `op` in flight."""
        op.bounds = _bounds([*op.reads, *op.writes])
        op.serial = self.issued
        self.issued += 1
        self.pending.append(op)
        for extent in op.reads:
            extent.space.mark_pending(extent.start, extent.stop, write=False)
        for extent in op.writes:
            extent.space.mark_pending(extent.start, extent.stop, write=True)

    def candidates(self) -> list[AsyncOperation]:
        """Return the operations that may complete next, oldest first: the heads of queues, where eligible."""
        heads: set[Hashable] = set()
        out: list[AsyncOperation] = []
        for op in self.pending:
            if op.queue is not None:
                if op.queue in heads:
                    continue
                heads.add(op.queue)
            if op.eligible is None or op.eligible():
                out.append(op)
        return out

    def oldest(self) -> AsyncOperation | None:
        """Return the first of `candidates`, or None."""
        heads: set[Hashable] = set()
        for op in self.pending:
            if op.queue is not None:
                if op.queue in heads:
                    continue
                heads.add(op.queue)
            if op.eligible is None or op.eligible():
                return op
        return None

    def complete(self, op: AsyncOperation, machine: Machine) -> None:
        """Carry `op` out: unmark its bytes, then read, write and signal."""
        self.pending.remove(op)
        self._unmark(op)
        op.done = True
        self.completed += 1
        machine.counters.async_operations[op.kind] += 1
        shared = any(e.space is machine.shared for e in (*op.reads, *op.writes))
        holder = int(machine.row_cta[op.row])
        if not shared or holder in (-1, op.cta) or op.cta == -1:  # else the memory belongs to another CTA by now
            op.complete(machine)
        machine.progress()

    def _unmark(self, op: AsyncOperation) -> None:
        for write, extents in ((False, op.reads), (True, op.writes)):
            for e in extents:
                e.space.unmark_pending(e.start, e.stop, write=write)
        for space, low, high in op.bounds:
            mine = [Ranges.of(e, space) for e in (op.reads, op.writes)]
            for other in self.pending:  # bytes that another operation in flight also touches stay marked
                for s, a, b in other.bounds:
                    if a < high and low < b and s is space:
                        break
                else:
                    continue
                for write, extents in ((False, other.reads), (True, other.writes)):
                    theirs = Ranges.of(extents, space)
                    for start, stop in theirs.overlapping(mine):
                        space.mark_pending(start, stop, write=write)

    def touching(self, space: Space, start: int, stop: int, *, write_only: bool) -> list[AsyncOperation]:
        """Return the operations in flight that write (or also read) a byte of `start:stop` of `space`."""
        out: list[AsyncOperation] = []
        for op in self.pending:
            if not any(s is space and a < stop and start < b for s, a, b in op.bounds):
                continue
            extents = op.writes if write_only else [*op.writes, *op.reads]
            if any(e.space is space and e.start < stop and start < e.stop for e in extents):
                out.append(op)
        return out
