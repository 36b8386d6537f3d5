"""A role's place in a ring of shared-memory stages."""

from __future__ import annotations

from typing import Any

from warpsmith import ptx, reg
from warpsmith.types import pred, u32

__all__ = ["Ring"]


class Ring:
    """Stage number and phase bit of one role, as registers.

    The consumer of a stage waits for parity `phase`; its producer waits for `phase ^ 1`, which a fresh barrier counts
    as complete.
    """

    def __init__(self, stages: int) -> None:
        self.stages = stages
        self.stage, self.phase = reg.scalar(u32, init=0), reg.scalar(u32, init=0)

    def advance(self) -> None:
        """Go to the next stage; wrapping flips the phase."""
        wrapped = reg.scalar(pred)
        flipped = reg.scalar(u32)
        self.stage += 1
        ptx.inst.setp.eq.u32(wrapped, self.stage, self.stages)
        ptx.inst.xor.b32(flipped, self.phase, 1)
        ptx.inst.selp.b32(self.phase, flipped, self.phase, wrapped)
        ptx.inst.selp.b32(self.stage, 0, self.stage, wrapped)

    def barrier(self, base: Any, offset: int) -> Any:
        """Address of this stage's barrier in the array at `base + offset`."""
        at = reg.scalar(u32)
        ptx.inst.mad.lo.u32(at, self.stage, 8, base)
        return at + offset

    def empty_phase(self) -> Any:
        """Parity a producer waits for before it fills the stage."""
        parity = reg.scalar(u32)
        ptx.inst.xor.b32(parity, self.phase, 1)
        return parity
