"""`empty-commit`: operations that no group holds when a thread waits for them, or that another thread tries to commit.

Groups are a thread's own (PTX ISA 9.7.10.28.3, 9.7.10.28.6, 9.7.15.7). Empty groups as such are no fault: pipelines commit
them so that each step counts as one. Two things are: a wait for groups by threads whose operations since the last wait are all
in the open group, which the wait does not cover; and a commit by threads that have nothing to commit, while other lanes of
their warp, which do not execute it, have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes

    Mask = NDArray[np.bool_]

__all__ = ["CommitWatch"]

_CLOSE = "Commit the group (in the thread that issued the operations) before the wait."
_SAME = "Let the thread that issued the operations commit their group, and wait for it."


@final
class CommitWatch:
    """Of each thread: whether its open group holds something, and whether it has closed one that does since its last wait."""

    def __init__(self, rows: int, threads: int) -> None:
        self.open = np.zeros((rows, threads), np.bool_)
        self.closed = np.zeros((rows, threads), np.bool_)

    def begin(self, row: int) -> None:
        """Forget the threads of a CTA that has ended."""
        self.open[row] = self.closed[row] = False

    def add(self, x: Lanes, lanes: Mask) -> None:
        """Note operations of lanes in their open groups."""
        self.open[x.c0 : x.c1, x.t0 : x.t1] |= lanes

    def commit(self, x: Lanes, kind: str) -> None:
        """Note that the active lanes close their groups; judge it."""
        window = (slice(x.c0, x.c1), slice(x.t0, x.t1))
        active, filled = x.active(), self.open[window]
        if x.machine.checking and x.mask is not None and filled.any():
            here, full = x.warps(active), x.warps(filled)
            left = np.asarray((~here & full).any(-1) & here.any(-1) & ~(here & full).any(-1))
            if left.any():
                text = f"`{x.op.text}` by threads with nothing to commit; `{kind}` of other lanes of the warp stays uncommitted"
                x.finding("empty-commit", text, lanes=x.threads_of(left[..., None]), repair=_SAME)
        self.closed[window] |= filled & active
        filled[active] = False

    def forget(self, x: Lanes) -> None:
        """Note that the active lanes have waited for everything, committed or not."""
        window = (slice(x.c0, x.c1), slice(x.t0, x.t1))
        self.open[window] &= ~x.active()
        self.closed[window] &= ~x.active()

    def wait(self, x: Lanes, kind: str) -> None:
        """Note that the active lanes wait for their groups; judge it."""
        window = (slice(x.c0, x.c1), slice(x.t0, x.t1))
        active = x.active()
        idle = active & self.open[window] & ~self.closed[window]
        if idle.any() and x.machine.checking:
            text = f"`{x.op.text}` returns at once: no group has been committed since the `{kind}` it could wait for"
            x.finding("empty-commit", text, lanes=idle, repair=_CLOSE)
        self.closed[window] &= ~active
