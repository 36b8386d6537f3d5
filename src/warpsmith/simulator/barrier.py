"""CTA barriers (PTX ISA 9.7.15.1): sixteen per CTA, named by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.outcome import DONE, Outcome, Wait

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.base.source import Place
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine

__all__ = ["COUNT", "Barriers", "Generation"]

COUNT = 16
_REPAIR = "give every bar.sync and bar.arrive of one use of a barrier the same thread count, a multiple of 32"


@final
class Barriers:
    """The barriers of the resident CTAs. A warp has arrived when all of its live threads have."""

    def __init__(self, machine: Machine) -> None:
        rows, warps = machine.rows, machine.threads // 32
        self.machine = machine
        self.arrived = np.zeros((rows, COUNT, warps), np.uint32)
        """Lanes of each warp that arrived at the current generation."""
        self.again = np.zeros((rows, COUNT, warps), np.uint32)
        """Lanes among them that arrived a further time, by bar.arrive: the barrier counts arrivals, not who arrives."""
        self.more = np.zeros((rows, COUNT), np.int64)
        """Whole warps among those further arrivals."""
        self.expected = np.zeros((rows, COUNT), np.int64)
        """Threads awaited; 0 before the first arrival, -1 for all of the CTA."""
        self.generation = np.zeros((rows, COUNT), np.int64)
        self.votes = np.zeros((rows, COUNT), np.int64)
        """Threads of the current generation whose predicate held (bar.red)."""
        self.result = np.zeros((rows, COUNT, 2), np.int64)
        """(threads with the predicate, threads) of the last complete generation."""
        self.waited = np.zeros((rows, COUNT), np.bool_)
        """Whether anybody of the CTA has ever waited there."""
        self.last: dict[tuple[int, int], tuple[str, Place | None]] = {}
        """(row, barrier) → who arrived last, where."""
        self.seen: dict[tuple[int, int], dict[tuple[str, Place | None], int]] = {}
        """(row, barrier) → by instruction, the warps that have ever arrived there, as a bit set."""

    def reset(self, rows: NDArray[np.int64]) -> None:
        """Make the barriers of rows fresh."""
        self.arrived[rows] = 0
        self.again[rows] = 0
        self.more[rows] = 0
        self.expected[rows] = 0
        self.votes[rows] = 0
        self.waited[rows] = False

    def all_at_once(self, x: Lanes, number: Any, count: Any) -> bool:
        """Complete a barrier at which all threads of its CTAs arrive now, and nobody has before; False: not so simple."""
        m = self.machine
        if x.t0 != 0 or x.t1 != m.threads or number.strides != (0, 0):
            return False
        if count is not None and (count.strides != (0, 0) or int(count[0, 0]) != m.threads):
            return False
        at, rows = int(number[0, 0]), slice(x.c0, x.c1)
        if at >= COUNT or self.expected[rows, at].any():
            return False
        self.generation[rows, at] += 1
        self.waited[rows, at] = True
        if m.order is not None:
            m.order.barrier_at_once(x)
        m.progress()
        return True

    def arrive(
        self,
        x: Lanes,
        number: int,
        count: int | None,
        votes: NDArray[np.bool_] | None,
        active: NDArray[np.bool_],
        *,
        waits: bool = True,
    ) -> None:
        """Let lanes arrive at barrier `number`, awaiting `count` threads (None: all of the CTA); `waits`: they wait there."""
        rows = slice(x.c0, x.c1)
        warps = slice(x.t0 // 32, x.t1 // 32)
        here = active.any(axis=1)
        lanes = np.packbits(x.warps(active), axis=-1, bitorder="little").view(np.uint32)[..., 0]
        wanted = -1 if count is None else count
        known = self.expected[rows, number]
        if ((known != 0) & (known != wanted) & here).any():
            self._mismatch(x, number, wanted, known, here)
        self.expected[rows, number] = np.where(here, wanted, known)
        self.waited[rows, number] |= here & waits
        self._further(lanes & self.arrived[rows, number, warps], number, rows, warps)
        self.arrived[rows, number, warps] |= lanes
        if count is not None and (x.t1 - x.t0 > 32 or (known != 0).any()):
            self._surplus(x, number, count, here)
        if votes is not None:
            self.votes[rows, number] += (votes & active).sum(axis=1)
        if self.machine.order is not None:
            self.machine.order.barrier_arrive(x, number, active, waits=waits)
        self.complete(number, rows)

    def _further(self, lanes: NDArray[np.uint32], number: int, rows: slice, warps: slice) -> None:
        """Count lanes that arrive once more before the barrier completes; a warp counts when its live lanes are all there."""
        if not lanes.any():
            return
        here = self.again[rows, number, warps] | lanes
        live = _packed(self.machine.live[rows])[:, warps]
        whole = ((here & live) == live) & (here != 0)
        self.more[rows, number] += whole.sum(axis=1)
        self.again[rows, number, warps] = np.where(whole, 0, here)

    def complete(self, number: int, rows: slice) -> None:
        """Let the barriers `number` of `rows` that have all their arrivals go on to the next generation."""
        m = self.machine
        live = _packed(m.live[rows])
        arrived = self.arrived[rows, number]
        here = ((arrived & live) == live) & (arrived != 0)
        threads = 32 * (here.sum(axis=1) + self.more[rows, number])
        expected = self.expected[rows, number]
        everyone = 32 * (live != 0).sum(axis=1)
        full = (expected != 0) & (threads >= np.where(expected < 0, everyone, expected)) & (threads > 0)
        if not full.any():
            return
        at = np.flatnonzero(full) + rows.start
        self.result[at, number, 0] = self.votes[at, number]
        self.result[at, number, 1] = np.bitwise_count(self.arrived[at, number]).sum(axis=1)
        self.arrived[at, number] = 0
        self.again[at, number] = 0
        self.more[at, number] = 0
        self.expected[at, number] = 0
        self.votes[at, number] = 0
        self.generation[at, number] += 1
        if m.order is not None:
            m.order.barrier_complete(number, at)
        m.progress()

    def after_exit(self, rows: slice) -> None:
        """Complete barriers that only waited for threads which have ended."""
        for number in np.flatnonzero(self.expected[rows].any(axis=0)).tolist():
            self.complete(number, rows)

    def _mismatch(self, x: Lanes, number: int, wanted: int, known: NDArray[np.int64], here: Any) -> None:
        bad = (known != 0) & (known != wanted) & here
        other = int(known[bad][0])
        say = [f"{n} threads" if n > 0 else "all threads of the CTA" for n in (wanted, other)]
        message = f"barrier {number} is used for {say[0]}, while others wait on it for {say[1]}"
        x.finding("named-barrier", message, lanes=np.broadcast_to(bad[:, None], x.shape), repair=_REPAIR)

    def _surplus(self, x: Lanes, number: int, count: int, here: Any) -> None:
        threads = 32 * ((self.arrived[x.c0 : x.c1, number] != 0).sum(axis=1) + self.more[x.c0 : x.c1, number])
        bad = here & (threads > count)
        if bad.any():
            message = f"{int(threads[bad][0])} threads arrive on barrier {number}, which is used for {count} threads"
            x.finding("named-barrier", message, lanes=np.broadcast_to(bad[:, None], x.shape), repair=_REPAIR)

    def wait(self, x: Lanes, number: int, before: NDArray[np.int64], active: NDArray[np.bool_], after: Any = None) -> Outcome:
        """Return the outcome for lanes that arrived when the generations of their rows were `before`."""
        rows = slice(x.c0, x.c1)
        gone = (self.generation[rows, number] != before)[:, None]
        passed = np.broadcast_to(gone, x.shape)
        if not (active & ~passed).any():
            if after is not None:
                after(x)
            return DONE
        return Wait(Generation(self, number, rows, before.copy()), passed=passed, retry=False, after=after)

    def condition(self, number: int, rows: slice, before: NDArray[np.int64]) -> Generation:
        """Return the condition that the generation of a barrier has moved, row by row."""
        return Generation(self, number, rows, before)

    def describe(self, row: int, number: int) -> str:
        """Say how far a barrier is: arrivals, expectation, who is missing."""
        m = self.machine
        arrived = self.arrived[row, number]
        live = _packed(m.live[row : row + 1])[0]
        warps = int(np.count_nonzero(arrived) + self.more[row, number])
        expected = int(self.expected[row, number])
        awaited = expected // 32 if expected > 0 else int(np.count_nonzero(live))
        missing = [w for w in range(live.size) if live[w] and not arrived[w]]
        text = f"barrier {number} of cta {_cta(m, row)}: {warps} of {awaited} warps arrived"
        return text + (
            f"; not arrived: warp{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing[:16]))}" if missing else ""
        )


def _packed(lanes: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Return threads `[C, T]` as a word of 32 lanes a warp, lane 0 in bit 0."""
    return np.packbits(lanes.reshape(len(lanes), -1, 32), axis=-1, bitorder="little").view(np.uint32)[..., 0]


def _cta(m: Machine, row: int) -> str:
    return "({},{},{})".format(*m.cta_of(row))


@final
class Generation:
    """Waits until the generation of a barrier moves, row by row."""

    timed = False

    def __init__(self, barriers: Barriers, number: int, rows: slice, before: NDArray[np.int64]) -> None:
        self.barriers, self.number, self.rows, self.before = barriers, number, rows, before

    def ready(self) -> NDArray[np.bool_]:
        """Say which rows may go on, as a mask `[C, 1]`."""
        return (self.barriers.generation[self.rows, self.number] != self.before)[:, None]

    def describe(self) -> str:
        """Say what the first row that waits lacks."""
        waiting = np.flatnonzero(~self.ready()[:, 0])
        row = self.rows.start + (int(waiting[0]) if waiting.size else 0)
        return self.barriers.describe(row, self.number)
