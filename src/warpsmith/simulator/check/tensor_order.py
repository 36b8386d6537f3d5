"""Who touched columns of tensor memory last, and whether that is ordered before the next access (PTX ISA 9.7.18.6.3).

Two accesses of different threads need a chain of synchronisation between them (else `tmem-alias`), and along it a
`tcgen05.fence::before_thread_sync` behind the first and a `fence::after_thread_sync` before the second (else
`missing-tcgen05-fence`). A commit is such a fence for the operations it covers. Whether the chain exists is asked of the
clocks (`check.clocks`): the later thread must know the time of the earlier one's fence, and must have known it when it
executed its own. What counts is the order of execution: arrivals, waits and strong accesses may be relaxed (`clocks.EXECUTED`).

A warp counts as one: what one of its lanes knows or has done is taken for all. Products and copies that one warp issues follow
each other in hardware and are not judged against each other. Those of different warps need not be complete: the later must be
issued behind the earlier, with both fences ("asynchronous tcgen05 instructions ordered across threads also form a pipeline").
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.tensor_memory import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from warpsmith.base.source import Place
    from warpsmith.simulator.check.races import RaceWatch
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.tensor_memory import Cells

    Mask = NDArray[np.bool_]

__all__ = ["TensorOrder"]

_FENCE, _ALIAS = "missing-tcgen05-fence", "tmem-alias"


class _Access(NamedTuple):
    """An access by a warp, or (`column` given) by a product or copy that its thread has issued."""

    row: int
    warp: int
    time: int
    """Of the clocks, when it was issued."""
    commit: int
    """Of products and copies the number of the commit that covers them."""
    column: int | None
    written: bool
    text: str
    place: Place | None
    threads: str


class _Seen(NamedTuple):
    """What a warp knew when it executed `fence::after_thread_sync` last, by row."""

    vectors: dict[int, NDArray[np.uint32]]


@final
class TensorOrder:
    """Judges the accesses of a launch."""

    def __init__(self, races: RaceWatch, warps: int) -> None:
        self.races, self.clocks, self.warps = races, races.clocks, warps
        self.accesses: list[_Access | None] = [None]
        self.last: dict[int, NDArray[np.int32]] = {}
        """Row -> number of the last access to `[who, 16 lanes, column]`: 0 a write, then reads by warp, then others."""
        self.fences: dict[tuple[int, int], list[int]] = {}
        """(row, warp) -> times of its `fence::before_thread_sync`."""
        self.seen: dict[tuple[int, int], _Seen] = {}

    def forget(self, row: int, first: int = 0, stop: int = COLUMNS) -> None:
        """Forget who touched columns of a CTA: they have been allocated anew, or the CTA is another one."""
        if (last := self.last.get(row)) is not None:
            last[:, :, first:stop] = 0
        if stop - first == COLUMNS:
            self.last.pop(row, None)
            for known in (self.fences, self.seen):
                for key in [k for k in known if k[0] == row]:
                    del known[key]

    def fence(self, x: Lanes, *, before: bool) -> None:
        """Note a fence of the active lanes."""
        active = x.active()
        for c, w in np.argwhere(x.warps(active).any(-1)).tolist():
            key = (x.c0 + c, x.t0 // 32 + w)
            if before:
                self.fences.setdefault(key, []).append(self.clocks.now)
                continue
            threads = x.t0 + 32 * w + np.flatnonzero(active[c, 32 * w : 32 * w + 32])
            slots = np.unique(self.clocks.base[key[0], threads]).tolist()
            vectors: dict[int, NDArray[np.uint32]] = {key[0]: self.clocks.known[slots, self.clocks.executed].max(axis=0)}
            for slot in slots:
                for row, vector in self.clocks.foreign.get(slot, {}).items():
                    old = vectors.get(row)
                    executed = vector[self.clocks.executed]
                    vectors[row] = executed.copy() if old is None else np.maximum(old, executed)
            self.seen[key] = _Seen(vectors)
        if before:
            self.clocks.now += 1

    def touched(self, x: Lanes, cells: Cells, who: tuple[int, int, int], lanes: Mask, threads: str, number: int | None) -> None:
        """Judge and note an access to cells by a thread `who` (row, thread, warp); `number`: of a product or copy."""
        row, _, warp = who
        asynchronous = number is not None
        for other in self._before(cells):
            alike = (other.column is not None) == asynchronous
            if alike and (other.row, other.warp) == (row, warp):
                continue
            self._judge(x, cells, who, other, lanes, pipelined=alike and asynchronous)
        column = self.races.columns.group("tcgen05", warp) if asynchronous else None
        mine = _Access(row, warp, self.clocks.now, number or 0, column, cells.written, x.op.text, x.place, threads)
        self.accesses.append(mine)
        last = self._last(cells.row)
        view = last[:, cells.low // 16 : -(-cells.high // 16), cells.first : cells.stop]
        if cells.written:
            view[...] = 0
        view[0 if cells.written else 1 + self.warps if asynchronous else 1 + warp] = len(self.accesses) - 1

    def _last(self, row: int) -> NDArray[np.int32]:
        if row not in self.last:
            self.last[row] = np.zeros((2 + self.warps, 8, COLUMNS), np.int32)
        return self.last[row]

    def _before(self, cells: Cells) -> Iterator[_Access]:
        """Yield the accesses that an access to cells must be ordered behind."""
        view = self._last(cells.row)[:, cells.low // 16 : -(-cells.high // 16), cells.first : cells.stop]
        for number in np.unique(view if cells.written else view[0]).tolist():
            if (found := self.accesses[number]) is not None:
                yield found

    def _judge(
        self, x: Lanes, cells: Cells, who: tuple[int, int, int], other: _Access, lanes: Mask, *, pipelined: bool
    ) -> None:  # fmt: skip
        """Report an access that is not ordered behind another; `pipelined`: it need not wait until the other is complete."""
        row, thread, warp = who
        mine = self._known(row, thread, other.row)
        seen = self.seen.get((row, warp))
        theirs = None if seen is None else seen.vectors.get(other.row)
        by_commit = other.column is not None and not (pipelined and _commit_of(mine, other) < other.commit)
        known, needed = (_commit_of(mine, other), other.commit) if by_commit else (_time_of(mine, other), other.time)
        verb = "writes" if cells.written else "reads"
        did = "has written" if other.written else "has read"
        what = f"`{x.op.text}` {verb} columns {cells.first} to {cells.stop - 1} of tensor memory, which `{other.text}` {did}"
        related = [Related(f"`{other.text}` by {other.threads}", other.place)]
        if known < needed:
            repair = "Put a barrier between the two: of the CTA, or an mbarrier that a commit or the threads arrive at."
            x.finding(_ALIAS, f"{what}; nothing orders the two", lanes=lanes, related=related, repair=repair)
            return
        if not by_commit:
            times = self.fences.get((other.row, other.warp), [])
            at = bisect_left(times, other.time)
            if at == len(times) or times[at] > known:
                text = f"{what}; no tcgen05.fence::before_thread_sync stands behind that access, before the barrier"
                repair = "Put tcgen05.fence::before_thread_sync behind the access (its wait), before the arrival."
                x.finding(_FENCE, text, lanes=lanes, severity="portability", related=related, repair=repair)
                return
            needed = times[at]
        if (_commit_of if by_commit else _time_of)(theirs, other) < needed:
            text = f"{what}; no tcgen05.fence::after_thread_sync stands between the wait for the other and this access"
            repair = "Put tcgen05.fence::after_thread_sync behind the wait."
            x.finding(_FENCE, text, lanes=lanes, severity="portability", related=related, repair=repair)

    def knows(self, row: int, thread: int, other: tuple[int, int]) -> int:
        """Return the time up to which a thread knows what a warp `(row, warp)` has done; of its own warp it knows all."""
        if other == (row, thread // 32):
            return self.clocks.now
        vector = self._known(row, thread, other[0])
        return 0 if vector is None else int(vector[32 * other[1] : 32 * other[1] + 32].max())

    def _known(self, row: int, thread: int, other: int) -> NDArray[np.uint32] | None:
        """Return what a thread knows of the execution of a row."""
        slot = int(self.clocks.base[row, thread])
        if other == row:
            return self.clocks.known[slot, self.clocks.executed]
        foreign = self.clocks.foreign.get(slot, {}).get(other)
        return None if foreign is None else foreign[self.clocks.executed]


def _commit_of(vector: NDArray[np.uint32] | None, other: _Access) -> int:
    """Return the commit up to which a vector knows of the products and copies of the warp that made an access."""
    return 0 if vector is None or other.column is None else int(vector[other.column])


def _time_of(vector: NDArray[np.uint32] | None, other: _Access) -> int:
    """Return the time up to which a vector knows of the warp that made an access."""
    return 0 if vector is None else int(vector[32 * other.warp : 32 * other.warp + 32].max())
