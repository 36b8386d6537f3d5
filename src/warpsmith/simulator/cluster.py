"""Clusters: the cluster barrier (PTX ISA 9.7.15.3), ranks and addresses of distributed shared memory (9.7.9.24, 9.7.9.25)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine

__all__ = ["ClusterBarrier"]


@final
class ClusterBarrier:
    """The barrier of each cluster: every live thread arrives, then waits."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.arrived = np.zeros((machine.rows, machine.threads), np.bool_)
        self.generation = np.zeros(machine.rows, np.int64)
        """Completed phases, the same for the rows of a cluster."""
        self.pending = np.full((machine.rows, machine.threads), -1, np.int64)
        """Per thread: the generation its arrival belongs to, -1 when it has not arrived since its last wait."""

    def reset(self, rows: NDArray[np.int64]) -> None:
        """Make rows fresh."""
        self.arrived[rows] = False
        self.pending[rows] = -1

    def arrive(self, x: Lanes) -> NDArray[np.bool_]:
        """Let the active lanes arrive; return those that had arrived already and not waited."""
        active = x.active()
        window = (slice(x.c0, x.c1), slice(x.t0, x.t1))
        twice = active & (self.pending[window] >= 0)
        self.arrived[window] |= active
        self.pending[window] = np.where(active, self.generation[x.c0 : x.c1, None], self.pending[window])
        if self.machine.peers is not None:
            self.machine.peers.cluster_arrive([x.c0 + c for c in np.flatnonzero(active.any(axis=1)).tolist()])
        self.complete(x.c0, x.c1)
        return twice

    def complete(self, c0: int, c1: int) -> None:
        """Complete the phase of clusters whose live threads have all arrived."""
        m, n = self.machine, self.machine.cluster_size
        first, stop = c0 // n * n, -(-c1 // n) * n
        waiting = (m.live[first:stop] & ~self.arrived[first:stop]).any(axis=1).reshape(-1, n).any(axis=1)
        some = self.arrived[first:stop].any(axis=1).reshape(-1, n).any(axis=1)
        done = np.repeat(some & ~waiting, n)
        if done.any():
            self.generation[first:stop] += done
            self.arrived[first:stop] &= ~done[:, None]
            if m.order is not None:
                for cluster in np.flatnonzero(done[::n]).tolist():
                    m.order.cluster_complete(first + cluster * n)
            if m.peers is not None:
                for cluster in np.flatnonzero(done[::n]).tolist():
                    m.peers.cluster_complete(first + cluster * n)
            m.progress()

    def begin_wait(self, x: Lanes) -> None:
        """Let active lanes that never arrived wait for the current phase, which lacks their arrival."""
        view = self.pending[x.c0 : x.c1, x.t0 : x.t1]
        np.copyto(view, self.generation[x.c0 : x.c1, None], where=x.active() & (view < 0))

    def passed(self, x: Lanes) -> NDArray[np.bool_]:
        """Return the lanes whose phase is complete."""
        pending = self.pending[x.c0 : x.c1, x.t0 : x.t1]
        return (pending < 0) | (self.generation[x.c0 : x.c1, None] > pending)

    def leave(self, x: Lanes, lanes: NDArray[np.bool_]) -> None:
        """Note that lanes have waited."""
        view = self.pending[x.c0 : x.c1, x.t0 : x.t1]
        view[lanes] = -1
        if self.machine.order is not None and lanes.any():
            self.machine.order.cluster_pass(x, lanes)
        if self.machine.peers is not None:
            self.machine.peers.cluster_pass([x.c0 + c for c in np.flatnonzero(lanes.any(axis=1)).tolist()])

    def describe(self, row: int) -> str:
        """Say how many threads of the cluster have arrived."""
        m, n = self.machine, self.machine.cluster_size
        first = row // n * n
        arrived = int(self.arrived[first : first + n].sum())
        live = int(m.live[first : first + n].sum())
        absent = (m.live[first : first + n] & ~self.arrived[first : first + n]).any(axis=1)
        ctas = ", ".join("({},{},{})".format(*m.cta_of(first + i)) for i in np.flatnonzero(absent).tolist())
        return f"cluster barrier: {arrived} of {live} threads arrived; missing threads of cta {ctas}"
