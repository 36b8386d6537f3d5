"""A ring of stages: which stage comes next, and the parity to wait for."""

from __future__ import annotations

from typing import final

from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.registers import Reg, move
from warpsmith.dsl.trace import current

__all__ = ["PipelineState", "pipeline"]


@final
class PipelineState:
    """A stage cursor and a phase bit in registers, carried around run-time loops."""

    __slots__ = ("cursor", "n_stages", "phase")

    def __init__(self, n_stages: int, *, cursor: Reg | None = None, phase: Reg | None = None) -> None:
        if not isinstance(n_stages, int) or n_stages < 1:
            raise error(f"a pipeline has at least 1 stage, not {n_stages!r}")
        self.n_stages = n_stages
        self.cursor = cursor if cursor is not None else self._zero()
        self.phase = phase if phase is not None else self._zero()

    @staticmethod
    def _zero() -> Reg:
        result = current().new(TYPES["u32"])
        move(result, 0)
        return result

    def advance(self) -> tuple[Reg, Reg]:
        """Return (stage, phase) of this turn, and step the cursor on; the phase flips when the cursor wraps.

        The cursor holds the next stage, `n_stages` when a wrap is due. `stage` is a fresh register; `phase` is the
        loop-carried one.
        """
        trace = current()
        wrapped = self.cursor == self.n_stages
        trace.emit("xor.b32", (self.phase, self.phase, 1), wrapped)
        trace.emit("mov.u32" if self.cursor.type != "s32" else "mov.s32", (self.cursor, 0), wrapped)
        stage = trace.new(self.cursor.dtype)
        move(stage, self.cursor)
        self.cursor += 1
        return stage, self.phase


def pipeline(n_stages: int, *, cursor: Reg | None = None, phase: Reg | None = None) -> PipelineState:
    """Return a stage ring; `cursor` and `phase` start at 0 in fresh registers unless given (set them before the loop)."""
    return PipelineState(n_stages, cursor=cursor, phase=phase)
