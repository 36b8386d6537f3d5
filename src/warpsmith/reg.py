"""Registers: `reg.scalar`, `reg.array`, `reg.from_`, `reg.wgmma_frag`."""

from __future__ import annotations

import re

from warpsmith.base.place import error
from warpsmith.base.ptx_types import PtxType
from warpsmith.dsl.registers import NegPred, PipeRef, Reg, RegArray, move
from warpsmith.dsl.trace import current

__all__ = ["NegPred", "PipeRef", "Reg", "RegArray", "alloc", "alloc_array", "array", "from_", "scalar", "wgmma_frag"]

_MOST = 1 << 16
"""Registers of the largest array, far beyond what a thread can hold."""
_IDENTIFIER = re.compile(r"[a-zA-Z][a-zA-Z0-9_$]*|[_$%][a-zA-Z0-9_$]+")


def _check(dtype: object, name: str | None) -> None:
    if not isinstance(dtype, PtxType):
        raise error(f"a register needs a type of warpsmith.types, not {dtype!r}", "write e.g. reg.scalar(u32)")
    if name is not None and not _IDENTIFIER.fullmatch(name):
        raise error(f"{name!r} is no PTX identifier", "letters, digits, _ and $; it may start with % or _ or $")


def scalar(dtype: PtxType, init: object = None, name: str | None = None) -> Reg:
    """Declare one register; `init` emits a `mov` here, so in a run-time loop it sets the register on every trip."""
    _check(dtype, name)
    trace = current()
    result = trace.new(dtype) if name is None else trace.declare(dtype, name)
    if init is not None:
        move(result, init)
    return result


def array(dtype: PtxType, count: int, name: str | None = None) -> RegArray:
    """Declare `count` registers with consecutive names; the array is a vector operand as a whole."""
    _check(dtype, name)
    if not isinstance(count, int) or count < 1:
        raise error(f"a register array has at least 1 register, not {count!r}")
    if count > _MOST:
        raise error(f"a register array of {count:,} registers; {_MOST:,} is the most", "a thread of a GPU has 255")
    return current().declare_array(dtype, count, name)


def from_(src: object, dtype: PtxType) -> Reg:
    """Declare a register and move `src` (register, number, special register, vector) into it."""
    return scalar(dtype, init=src)


def wgmma_frag(*, m: int = 64, n: int, dtype: PtxType, name: str | None = None) -> RegArray:
    """Declare the accumulator of one wgmma of shape m64nN: per thread N/2 32-bit registers, N/4 for f16 (two a register)."""
    if m != 64 or not isinstance(n, int) or n % 8 or not 8 <= n <= 256:
        raise error(f"wgmma has no shape m{m}n{n}", "m is 64; n is a multiple of 8 from 8 to 256")
    if dtype.name not in ("f32", "f16", "s32"):
        raise error(f"wgmma accumulates in f32, f16 or s32, not {dtype}")
    if dtype.name == "f16":
        return array(PtxType("b32", 32), n // 4, name)
    return array(dtype, n // 2, name)


def alloc(dtype: PtxType) -> Reg:
    """Declare one register."""
    return scalar(dtype)


def alloc_array(dtype: PtxType, count: int) -> RegArray:
    """Declare `count` registers with consecutive names."""
    return array(dtype, count)
