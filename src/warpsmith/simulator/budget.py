"""`setmaxnreg`: registers per thread and what is left of the CTA's pool (PTX ISA 9.7.21.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

if TYPE_CHECKING:
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine

__all__ = ["RegisterBudget"]


@final
class RegisterBudget:
    """Registers per thread of each warp. The count at entry is what the launch would allot: the whole file over the CTA."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        warps = machine.threads // 32
        entry = machine.device.registers_per_multiprocessor // machine.threads // 8 * 8
        self.entry = min(entry, 255 // 8 * 8)
        self.pool = self.entry * warps
        self.counts = np.full((machine.rows, warps), self.entry, np.int64)

    def reset(self, row: int) -> None:
        """Give a fresh CTA the count at entry."""
        self.counts[row] = self.entry

    def change(self, x: Lanes, count: int, *, grow: bool) -> None:
        """Set the count of the active warps; report an increase the pool cannot ever satisfy."""
        warps = x.warps(x.active()).any(axis=-1)
        view = self.counts[x.c0 : x.c1, x.t0 // 32 : x.t1 // 32]
        np.copyto(view, count, where=warps)
        least: Any = np.minimum(self.counts, count).sum(axis=1)[x.c0 : x.c1]
        over: Any = (least > self.pool) & np.any(warps, axis=1)
        if grow and over.any():
            message = (
                f"`{x.op.text}` asks for {count} registers per thread; the CTA has {self.pool} for {self.counts.shape[1]} warps"
            )
            lanes = np.broadcast_to(over[:, None], x.shape)
            repair = "lower the count, or let other warpgroups give registers up first with setmaxnreg.dec"
            x.finding("setmaxnreg-budget", message, lanes=lanes, severity="note", repair=repair)
