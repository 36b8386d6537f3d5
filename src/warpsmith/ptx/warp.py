"""Warp-wide reductions by butterfly exchange, in place."""

from __future__ import annotations

from warpsmith.base.place import error
from warpsmith.dsl.registers import Reg
from warpsmith.dsl.trace import current

__all__ = ["reduce_max", "reduce_min", "reduce_sum"]

_ALL = 0xFFFFFFFF


def _reduce(op: str, val: Reg, width: int) -> None:
    if width not in (1, 2, 4, 8, 16, 32):
        raise error(f"the width of a warp reduction is a power of two up to 32, not {width!r}")
    if not isinstance(val, Reg) or val.dtype.bits != 32 or val.dtype.kind == "packed" or val.dtype.name == "tf32":
        raise error(f"ptx.warp reduces a 32-bit register of f32, u32, s32 or b32, not {getattr(val, 'dtype', val)!s}")
    trace = current()
    kind = "u32" if val.type == "b32" else val.type
    other = trace.new(val.dtype)
    distance = width // 2
    while distance:
        # the clamp 31 keeps the exchange inside the warp; xor by less than `width` keeps it inside the group
        trace.emit("shfl.sync.bfly.b32", (other, val, distance, 31, _ALL))
        trace.emit(f"{op}.rn.f32" if op == "add" and kind == "f32" else f"{op}.{kind}", (val, val, other))
        distance //= 2


def reduce_sum(val: Reg, *, width: int = 32) -> None:
    """Replace `val` by the sum over groups of `width` lanes."""
    _reduce("add", val, width)


def reduce_max(val: Reg, *, width: int = 32) -> None:
    """Replace `val` by the maximum over groups of `width` lanes."""
    _reduce("max", val, width)


def reduce_min(val: Reg, *, width: int = 32) -> None:
    """Replace `val` by the minimum over groups of `width` lanes."""
    _reduce("min", val, width)
