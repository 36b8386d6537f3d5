"""`setmaxnreg`: registers per thread of each warp, and what is left of the CTA's pool (PTX ISA 9.7.21.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.outcome import DONE, Outcome, Wait

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine

__all__ = ["RegisterBudget"]


@final
class RegisterBudget:
    """Registers per thread of each warp. The count at entry is what the launch would allot: the whole file over the CTA."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        warps = machine.threads // 32
        self.entry = min(machine.device.registers_per_multiprocessor // machine.threads // 8 * 8, 248)
        self.pool = self.entry * warps
        self.counts = np.full((machine.rows, warps), self.entry, np.int64)

    def reset(self, rows: NDArray[np.int64]) -> None:
        """Give fresh CTAs the count at entry."""
        self.counts[rows] = self.entry

    def change(self, x: Lanes, count: int, *, grow: bool) -> Outcome:
        """Set the count of the active warps; those that grow wait until the pool has the registers."""
        warps = x.warps(x.active()).any(axis=-1)
        view = self.counts[x.c0 : x.c1, x.t0 // 32 : x.t1 // 32]
        if not grow:
            np.copyto(view, count, where=warps)
            self.machine.progress()
            return DONE
        granted = np.zeros_like(warps)
        for c, w in np.argwhere(warps).tolist():
            if count - view[c, w] <= self.pool - int(self.counts[x.c0 + c].sum()):
                view[c, w] = count
                granted[c, w] = True
        if granted.all() or not (warps & ~granted).any():
            return DONE
        return Wait(_Room(self, x, count), x.threads_of(granted[..., None]))

    def describe(self, row: int, count: int) -> str:
        """Say what the pool of a CTA lacks."""
        held = int(self.counts[row].sum())
        return f"{count} registers per thread: the CTA has {32 * self.pool} and its warps hold {32 * held}"


@final
class _Room:
    """Waits until a CTA's pool has room for one more warp that grows."""

    timed = False

    def __init__(self, budget: RegisterBudget, x: Lanes, count: int) -> None:
        self.budget, self.rows, self.count = budget, slice(x.c0, x.c1), count

    def ready(self) -> Any:
        """Say in which CTAs a warp can grow, as a mask `[C, 1]`."""
        counts = self.budget.counts[self.rows]
        least = self.count - counts.max(axis=1, where=counts < self.count, initial=0)
        return (least <= self.budget.pool - counts.sum(axis=1))[:, None]

    def describe(self) -> str:
        """Say what is lacking."""
        return self.budget.describe(self.rows.start, self.count)
