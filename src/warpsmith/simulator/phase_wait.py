"""What a thread at an mbarrier wait is parked on, and what a deadlock there means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.barrier_access import related
from warpsmith.simulator.findings import threads_text, warps_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.mbarrier import MBarrier

    Mask = NDArray[np.bool_]

__all__ = ["PhaseWait", "Waiting"]


@final
@dataclass(slots=True)
class Waiting:
    """Lanes that wait at one barrier: for a phase of their parity, or for the end of the phase in a state."""

    barrier: MBarrier
    lanes: Mask
    parity: NDArray[np.int64] | None
    phase: NDArray[np.int64] | None

    def passed(self) -> Mask:
        """Return which of the lanes may go on now."""
        if self.parity is not None:
            return self.lanes & (self.parity != (self.barrier.phase & 1))
        assert self.phase is not None
        return self.lanes & (self.phase < self.barrier.phase)


@final
class PhaseWait:
    """The condition of lanes parked in `mbarrier.try_wait`."""

    timed = True

    def __init__(self, x: Lanes, waiting: list[Waiting]) -> None:
        self.waiting = waiting
        self.shape = x.shape
        self.place = x.place
        self.who = [(w, warps_of(x, w.lanes), threads_text(x, w.lanes)) for w in waiting]

    def ready(self) -> Mask:
        """Return the lanes whose phase has completed."""
        out = np.zeros(self.shape, np.bool_)
        for w in self.waiting:
            out |= w.passed()
        return out

    def describe(self) -> str:
        """Say what each barrier lacks."""
        return "; ".join(dict.fromkeys(w.barrier.describe() for w in self.waiting if not w.passed().any()))

    def causes(self) -> Iterator[tuple[str, str, str, list[Related], str]]:
        """Yield what explains that nothing can end this wait: (kind, message, threads, related, repair)."""
        for w, who, threads in self.who:
            barrier = w.barrier
            if w.passed().any():
                continue
            if w.parity is not None:
                parity = int(w.parity[w.lanes].flat[0])
                meant = min((barrier.meant(key, parity) for key in who), default=barrier.phase)
                if meant < barrier.phase:
                    yield (
                        "phase-alias",
                        f"waits for parity {parity} of mbarrier [{barrier.address:#x}]: phase {meant}, which it means, has "
                        f"completed, and the barrier is in phase {barrier.phase} of the same parity",
                        threads,
                        related(barrier),
                        "Flip the parity once per completed phase in every waiter, and let nobody arrive for a further "
                        "phase before all have waited for this one.",
                    )
            if barrier.tx and not barrier.pending and not barrier.awaited():
                text = (
                    f"{barrier.tx} bytes it expects never arrive"
                    if barrier.tx > 0
                    else f"{-barrier.tx} bytes too many completed"
                )
                yield (
                    "tx-mismatch",
                    f"phase {barrier.phase} of mbarrier [{barrier.address:#x}] cannot complete: {text}",
                    threads,
                    related(barrier, 6),
                    "Expect exactly the bytes of all copies that signal the barrier in a phase (twice as many for two CTAs).",
                )
