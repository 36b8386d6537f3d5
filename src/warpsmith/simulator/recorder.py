"""Keeps what a timeline shows while a launch runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.timeline import InFlight, Timeline, Wait, roles_of

if TYPE_CHECKING:
    from warpsmith.simulator.asynchronous import AsyncOperation
    from warpsmith.simulator.cohort import Cohort
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.program import Operation

__all__ = ["Recorder"]

LIMIT = 100_000
"""Waits, and operations, that are kept."""


@final
class Recorder:
    """The waits and operations of a launch so far."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.waits: list[Wait] = []
        self.operations: list[InFlight] = []
        self.left_out = 0
        self.ran: list[int] = []
        """Per block: the warps (a bit set) that ran it in any CTA."""

    def begin(self, blocks: int) -> None:
        """Make room for a program of so many blocks."""
        self.ran = [0] * blocks

    def runs(self, cohort: Cohort) -> None:
        """Note which warps run a cohort's block."""
        _, _, t0, t1 = cohort.rect
        bits = (1 << t1 // 32) - (1 << t0 // 32)
        if self.ran[cohort.block] & bits == bits:
            return
        if cohort.mask is not None:
            warps = np.flatnonzero(cohort.mask.reshape(-1, (t1 - t0) // 32, 32).any(axis=(0, 2)))
            bits = sum(1 << t0 // 32 + w for w in warps.tolist())
        self.ran[cohort.block] |= bits

    def waited(self, cohort: Cohort, operation: Operation, since: int) -> None:
        """Note that a cohort has waited at an operation until now."""
        if len(self.waits) >= LIMIT:
            self.left_out += 1
            return
        c0, c1, t0, t1 = cohort.rect
        shape = c1 - c0, (t1 - t0) // 32
        warps: Any = np.ones(shape, np.bool_) if cohort.mask is None else cohort.mask.reshape(*shape, 32).any(axis=-1)
        ctas = self.machine.row_cta[c0:c1].copy()
        name = operation.text or operation.opcode
        self.waits.append(Wait(operation.place, name, ctas, warps, t0 // 32, since, self.machine.instructions_run))

    def completed(self, op: AsyncOperation) -> None:
        """Note that an operation has completed."""
        if len(self.operations) >= LIMIT:
            self.left_out += 1
            return
        self.operations.append(InFlight(op.kind, op.place, op.cta, op.issued, self.machine.instructions_run))

    def timeline(self, steps: int, ended: int, preparing: float, running: float) -> Timeline:
        """Return the timeline of the launch."""
        sizes = [block.count for block in self.machine.program.blocks]
        roles = roles_of(self.ran, sizes, self.machine.threads // 32)
        return Timeline(steps, ended, preparing, running, self.waits, self.operations, roles, self.left_out)
