"""Operations in flight: copies, matrix products, remote arrivals. They take effect when the schedule completes them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
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
    issued: int = 0
    """The time of issue; filled by `Lanes.issue`."""
    batch: Hashable = None
    """Equal for what one execution of one instruction issued, for many threads at once; filled by `Lanes.issue`."""
    together: Callable[[Machine, list[AsyncOperation]], None] | None = None
    """When given, carries out a whole batch (all of the same function) as `complete` would one after the other."""
    payload: Any = None
    """What `together` needs."""
    exact: Callable[[int, int], bool] | None = None
    """When given, says whether bytes `start:stop` within the extents read are read indeed."""
    signals: tuple[int, ...] = ()
    """Rows of other CTAs in which it will signal a barrier."""
    followed: bool = False
    """Its bytes are noted in the shadow of the checker (`check.transit`)."""


def _bounds(extents: list[Extent]) -> list[tuple[Space, int, int]]:
    if len(extents) == 1:
        return [(extents[0].space, extents[0].start, extents[0].stop)]
    spaces = {id(e.space): e.space for e in extents}
    return [
        (s, min(e.start for e in extents if e.space is s), max(e.stop for e in extents if e.space is s))
        for s in spaces.values()
    ]


@final
class Ranges:
    """Extents of one space, to ask whether others share a byte with them."""

    __slots__ = ("starts", "stops")

    def __init__(self, extents: list[Extent]) -> None:
        pairs = sorted([(e.start, e.stop) for e in extents])
        self.starts = [p[0] for p in pairs]
        self.stops = list(accumulate([p[1] for p in pairs], max))
        """The furthest stop so far."""

    def meet(self, start: int, stop: int) -> bool:
        """Say whether `start:stop` shares a byte with an extent."""
        before = bisect_left(self.starts, stop)
        return before > 0 and self.stops[before - 1] > start


@final
class AsyncQueue:
    """The operations in flight, in the order of issue."""

    def __init__(self) -> None:
        self.pending: list[AsyncOperation] = []
        self.issued = 0
        self.completed = 0
        self.batches = 0
        """Times that operations were completed, whole batches at once."""

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

    def oldest(self) -> list[AsyncOperation]:
        """Return the first of `candidates` and those of its batch; empty when there are none."""
        candidates = self.candidates()
        if len(candidates) < 2:
            return candidates
        first = candidates[0]
        return [op for op in candidates if op.batch == first.batch] if first.batch is not None else [first]

    def complete(self, op: AsyncOperation, machine: Machine) -> None:
        """Carry `op` out: unmark its bytes, then read, write and signal."""
        self.complete_batch([op], machine)

    def complete_batch(self, batch: list[AsyncOperation], machine: Machine) -> None:
        """Carry out operations of one batch, in the order of issue."""
        members = {id(op) for op in batch}
        self.pending = [op for op in self.pending if id(op) not in members]
        self._unmark(batch)
        due: list[AsyncOperation] = []
        for op in batch:
            op.done = True
            machine.recorder.completed(op)
            shared = any(e.space is machine.shared for e in (*op.reads, *op.writes))
            holder = int(machine.row_cta[op.row])
            if not shared or holder in (-1, op.cta) or op.cta == -1:  # else the memory belongs to another CTA by now
                due.append(op)
        self.completed += len(batch)
        self.batches += 1
        machine.counters.async_operations[batch[0].kind] += len(batch)
        together = batch[0].together
        if together is not None:
            together(machine, due)
        else:
            for op in due:
                op.complete(machine)
        if machine.writers is not None:
            for op in due:
                machine.writers.completed(op, machine)
        if machine.races is not None:
            for e in (e for op in due if not op.followed for e in op.writes):
                machine.races.forget(e.space, e.start, e.stop)
        machine.progress()

    def _unmark(self, batch: list[AsyncOperation]) -> None:
        touched: dict[Space, list[Extent]] = {}
        for op in batch:
            for write, extents in ((False, op.reads), (True, op.writes)):
                for e in extents:
                    e.space.unmark_pending(e.start, e.stop, write=write)
                    touched.setdefault(e.space, []).append(e)
        mine = {space: Ranges(extents) for space, extents in touched.items()}
        for other in self.pending:  # bytes that another operation in flight also touches stay marked
            for s, a, b in other.bounds:
                if s in mine and mine[s].meet(a, b):
                    break
            else:
                continue
            for write, extents in ((False, other.reads), (True, other.writes)):
                for e in extents:
                    if e.space in mine and mine[e.space].meet(e.start, e.stop):
                        e.space.mark_pending(e.start, e.stop, write=write)

    def touching(self, space: Space, start: int, stop: int, *, write_only: bool) -> list[AsyncOperation]:
        """Return the operations in flight that write (or also read) a byte of `start:stop` of `space`."""
        out: list[AsyncOperation] = []
        for op in self.pending:
            if not any(s is space and a < stop and start < b for s, a, b in op.bounds):
                continue
            written = any(e.space is space and e.start < stop and start < e.stop for e in op.writes)
            read = not write_only and any(e.space is space and e.start < stop and start < e.stop for e in op.reads)
            if written or (read and (op.exact is None or op.exact(start, stop))):
                out.append(op)
        return out
