"""`peer-lifetime`, `cluster-exit`: shared memory of another CTA, touched before it has started, or perhaps after it has ended.

A CTA may touch a peer's shared memory once something that the peer did after its start has become known to it, and the peer
may end once it knows of every such access (PTX ISA 9.7.15.3). "Knows" is followed by vector clocks with one entry for each
CTA of a cluster, so that the answer does not depend on the schedule. What one thread of a CTA knows counts as known to all
of them: a fault between threads of one CTA may be missed here, and what is reported is wrong under every schedule.
Clusters whose CTAs may also synchronise through memory (acquiring, volatile or relaxed loads; fences) are not followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.check.sites import fences_memory
from warpsmith.simulator.findings import threads_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.base.source import Place
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.mbarrier import MBarrier
    from warpsmith.simulator.program import Program

    Clock = NDArray[np.int64]

__all__ = ["PeerWatch"]

_BEGIN = "Put barrier.cluster.arrive and barrier.cluster.wait between the start (and the mbarrier.init) and the first access."
_END = (
    "Put barrier.cluster.arrive and barrier.cluster.wait behind the last access, or let the CTA wait for a barrier it signals."
)


class Touch(NamedTuple):
    """The latest access of one CTA to the shared memory of another."""

    epoch: int
    text: str
    place: Place | None
    threads: str


def _through_memory(program: Program) -> bool:
    """Say whether CTAs may tell each other something through memory."""
    for block in program.blocks:
        for op in (*block.operations, getattr(block.ending, "operation", None)):
            words = op.text.split(".") if op is not None else [""]
            if words[0] in ("ld", "atom", "red") and not {"acquire", "acq_rel", "volatile"}.isdisjoint(words):
                return True
            if words[0] == "ld" and "relaxed" in words:
                return True
            if fences_memory(words):
                return True
    return False


@final
class PeerWatch:
    """Follows what the CTAs of each cluster know of each other."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        size = machine.cluster_size
        self.known = np.zeros((machine.rows, size), np.int64)
        """Per row: the epoch of each rank it knows of; 0 for nothing. Its own entry is the epoch it is in."""
        self.arrived = np.zeros((machine.rows, size), np.int64)
        """Per first row of a cluster: what arrivals of the cluster barrier's phase in progress have brought."""
        self.completed = np.zeros((machine.rows, size), np.int64)
        """The same of the phase that completed last."""
        self.touches: dict[tuple[int, int], Touch] = {}
        """(row touched, row that touches) -> its latest access."""
        self.ended = np.zeros(machine.rows, np.bool_)
        machine.row_hooks.append(self._fresh)

    @classmethod
    def of(cls, machine: Machine, program: Program) -> PeerWatch | None:
        """Return a watch when findings are asked for and CTAs have peers."""
        return cls(machine) if machine.checking and machine.cluster_size > 1 and not _through_memory(program) else None

    def _fresh(self, row: int) -> None:
        self.known[row] = 0
        self.known[row, row % self.machine.cluster_size] = 1
        self.arrived[row] = self.completed[row] = 0
        self.ended[row] = False
        self.touches = {k: t for k, t in self.touches.items() if row not in k}

    # --- what is known --------------------------------------------------------------------------------------------

    def release(self, row: int) -> Clock:
        """Return what a row tells with a release, and begin its next epoch."""
        told = self.known[row].copy()
        self.known[row, row % self.machine.cluster_size] += 1
        return told

    def acquire(self, row: int, told: Clock) -> None:
        """Let a row know what it was told."""
        np.maximum(self.known[row], told, out=self.known[row])

    def signal(self, rows: list[int], barrier: MBarrier) -> None:
        """Let rows tell a barrier: they arrive there, or have issued a copy that will complete there."""
        for row in rows:
            told = self.release(row)
            barrier.told = told if barrier.told is None else np.maximum(barrier.told, told)

    def observe(self, rows: list[int], barrier: MBarrier) -> None:
        """Let rows know what a barrier was told: a phase of it has completed for them."""
        for row in rows if barrier.told is not None else ():
            assert barrier.told is not None
            self.acquire(row, barrier.told)

    def cluster_arrive(self, rows: list[int]) -> None:
        """Note arrivals at the cluster barrier."""
        for row in rows:
            first = row - row % self.machine.cluster_size
            np.maximum(self.arrived[first], self.release(row), out=self.arrived[first])

    def cluster_complete(self, first: int) -> None:
        """Note that a phase of the cluster barrier has completed."""
        self.completed[first] = self.arrived[first]

    def cluster_pass(self, rows: list[int]) -> None:
        """Note that threads of rows have passed the cluster barrier."""
        for row in rows:
            self.acquire(row, self.completed[row - row % self.machine.cluster_size])

    # --- accesses -------------------------------------------------------------------------------------------------

    def access(self, x: Lanes, rows: NDArray[np.int64], mask: NDArray[np.bool_] | None) -> None:
        """Note an access of lanes to the shared memory of `rows`, `[C, T]`."""
        rows = np.broadcast_to(rows, x.shape)
        away = (rows != np.arange(x.c0, x.c1)[:, None]) & (x.active() if mask is None else mask)
        for c in np.flatnonzero(away.any(axis=1)).tolist():
            for target in np.unique(rows[c][away[c]]).tolist():
                lanes = np.zeros(x.shape, np.bool_)
                lanes[c] = away[c] & (rows[c] == target)
                self.touch(x, x.c0 + c, int(target), lanes)

    def touch(self, x: Lanes, row: int, target: int, lanes: NDArray[np.bool_], barrier: MBarrier | None = None) -> None:
        """Note that lanes of `row` touch the shared memory (or a barrier there) of `target`."""
        if row == target:
            return
        size = self.machine.cluster_size
        cta = "cta ({},{},{})".format(*self.machine.cta_of(target))
        knows = int(self.known[row, target % size])
        if self.ended[target]:
            text = f"`{x.op.text}` touches the shared memory of {cta}, which has ended"
            x.finding("cluster-exit", text, lanes=lanes, repair=_END)
        elif not knows:
            text = f"`{x.op.text}` touches the shared memory of {cta}, and nothing says that this CTA has started"
            x.finding("peer-lifetime", text, lanes=lanes, repair=_BEGIN)
        elif barrier is not None and knows < barrier.born:
            text = (
                f"`{x.op.text}` signals mbarrier [{barrier.address:#x}] of {cta}, whose mbarrier.init nothing orders before it"
            )
            x.finding(
                "uninitialised-barrier", text, lanes=lanes, related=[Related("initialised here", barrier.place)], repair=_BEGIN
            )
        self.touches[target, row] = Touch(int(self.known[row, row % size]), x.op.text, x.place, threads_text(x, lanes))

    def end(self, rows: list[int]) -> None:
        """Judge rows whose last thread has ended: everything that touched them must be known to them."""
        for row in rows:
            self.ended[row] = True
            cta = "cta ({},{},{})".format(*self.machine.cta_of(row))
            for (target, source), t in self.touches.items():
                if target != row or self.known[row, source % self.machine.cluster_size] >= t.epoch:
                    continue
                text = f"{cta} may have ended when `{t.text}` touches its shared memory: nothing orders this before its end"
                self.machine.findings.report("cluster-exit", text, t.place, t.threads, repair=_END)
