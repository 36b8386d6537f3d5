"""Warp and warpgroup control: `elect_sync`, `setmaxnreg`."""

from __future__ import annotations

from warpsmith.base.place import error
from warpsmith.dsl.registers import NegPred, PipeRef, Reg
from warpsmith.dsl.trace import current

__all__ = ["elect_sync", "setmaxnreg", "setmaxnreg_dec", "setmaxnreg_inc"]


def elect_sync(dst: Reg, pred_out: Reg, membermask: int | Reg = 0xFFFFFFFF) -> None:
    """Elect one thread: `dst` gets its lane, `pred_out` is true in it alone."""
    current().emit("elect.sync", (PipeRef(dst, pred_out), membermask))


def setmaxnreg(count: int, *, inc: bool = True, pred: Reg | NegPred | None = None) -> None:
    """Change the registers a thread of the warpgroup owns: raise with `inc`, else give back. 24 to 256 in steps of 8."""
    if not isinstance(count, int) or not 24 <= count <= 256 or count % 8:
        raise error(f"setmaxnreg takes a multiple of 8 from 24 to 256, not {count!r}")
    current().emit(f"setmaxnreg.{'inc' if inc else 'dec'}.sync.aligned.u32", (count,), pred)


def setmaxnreg_inc(reg_count: int, *, pred: Reg | NegPred | None = None) -> None:
    """Raise the registers per thread to `reg_count`."""
    setmaxnreg(reg_count, inc=True, pred=pred)


def setmaxnreg_dec(reg_count: int, *, pred: Reg | NegPred | None = None) -> None:
    """Lower the registers per thread to `reg_count`."""
    setmaxnreg(reg_count, inc=False, pred=pred)
