"""Small kernels for tests of calls: c = s·a + b and c = s·a over a vector, for arrays of any library."""

from __future__ import annotations

from typing import Any

from warpsmith import Tile, kernel, ptx, reg
from warpsmith.types import f32, u32, u64

VECTOR = Tile("N", f32)


def _offset() -> Any:
    i, offset = reg.scalar(u32), reg.scalar(u64)
    ptx.inst.mad.lo.u32(i, ptx.special.ctaid.x(), 32, ptx.special.tid.x())
    ptx.inst.mul.wide.u32(offset, i, 4)
    return offset


def blocks(N: int) -> tuple[int]:
    return (N // 32,)


@kernel(arch="sm_90a", in_specs=(VECTOR, VECTOR), out_specs=(VECTOR,), grid=blocks, block=(32,), raw_params=[("f32", "s")])
def scaled_add(a: Any, b: Any, c: Any) -> None:
    offset = _offset()
    pa, pb, pc = ptx.global_ptrs(a, b, c)
    x, y = reg.scalar(f32), reg.scalar(f32)
    ptx.ld(f32, x, ptx.addr(pa + offset))
    ptx.ld(f32, y, ptx.addr(pb + offset))
    ptx.inst.fma.rn.f32(x, ptx.param(f32, "s"), x, y)
    ptx.st(f32, ptx.addr(pc + offset), x)
    ptx.ret()


@kernel(arch="sm_90a", in_specs=(VECTOR,), out_specs=(VECTOR,), grid=blocks, block=(32,), raw_params=[("f32", "s")])
def scaled(a: Any, c: Any) -> None:
    offset = _offset()
    pa, pc = ptx.global_ptrs(a, c)
    x = reg.scalar(f32)
    ptx.ld(f32, x, ptx.addr(pa + offset))
    ptx.inst.mul.rn.f32(x, ptx.param(f32, "s"), x)
    ptx.st(f32, ptx.addr(pc + offset), x)
    ptx.ret()


@kernel(arch="sm_90a", in_specs=(VECTOR,), out_specs=(VECTOR,), grid=blocks, block=(32,))
def outside(a: Any, c: Any) -> None:
    offset = _offset()
    pa, pc = ptx.global_ptrs(a, c)
    x = reg.scalar(f32)
    ptx.ld(f32, x, ptx.addr(pa + offset))
    ptx.st(f32, ptx.addr(pc + offset, 4096), x)
    ptx.ret()
