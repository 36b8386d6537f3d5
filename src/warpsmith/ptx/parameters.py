"""Kernel parameters inside the body."""

from __future__ import annotations

from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES, PtxType
from warpsmith.dsl.address import Address
from warpsmith.dsl.registers import Reg
from warpsmith.dsl.tensor import TensorSpec
from warpsmith.dsl.trace import current

__all__ = ["global_ptrs", "param"]


def global_ptrs(*tensors: TensorSpec) -> tuple[Reg, ...]:
    """Load the pointers of tensors into 64-bit registers, here, as global addresses; a tuple also for one tensor."""
    trace = current()
    out: list[Reg] = []
    for t in tensors:
        if not isinstance(t, TensorSpec):
            raise error(f"ptx.global_ptrs takes the kernel's tensor parameters, not {type(t).__name__}")
        pointer = trace.new(TYPES["u64"])
        trace.emit("ld.param.u64", (pointer, t))
        trace.emit("cvta.to.global.u64", (pointer, pointer))
        out.append(pointer)
    return tuple(out)


def param(dtype: PtxType, name: str, dst: Reg | None = None) -> Reg:
    """Load a parameter of `raw_params`; of one with an array, return its address."""
    trace = current()
    kind = trace.parameter_types.get(name)
    if kind is None:
        known = ", ".join(trace.parameter_types) or "none"
        raise error(f"the kernel has no parameter {name}; it has: {known}", "list it in @kernel(raw_params=[(type, name)])")
    result = dst if dst is not None else trace.new(dtype)
    if kind == "b8":
        trace.emit(f"mov.b{result.dtype.bits}", (result, name))
    else:
        trace.emit(f"ld.param.{kind if dtype.bits != TYPES[kind].bits else dtype.name}", (result, Address(name)))
    return result
