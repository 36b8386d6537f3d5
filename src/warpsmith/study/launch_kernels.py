"""Small kernels for the check of the launch paths, some of them broken on purpose."""

from __future__ import annotations

from typing import Any

from warpsmith import ptx, reg, smem
from warpsmith.dsl.kernel import kernel
from warpsmith.specs import Tile
from warpsmith.types import f32, u32, u64

__all__ = ["cluster_rank", "hang", "misaligned", "outside", "patient", "scaled_add", "scaled_copy", "unguarded"]

THREADS = 128
_VECTOR = Tile("N", f32)


def _blocks(N: int) -> tuple[int]:
    return (-(-N // THREADS),)


def _index() -> tuple[Any, Any]:
    """Return the thread's element and the bytes to it."""
    i = reg.scalar(u32)
    ptx.inst.mad.lo.u32(i, ptx.special.ctaid.x(), THREADS, ptx.special.tid.x())
    offset = reg.scalar(u64)
    ptx.inst.mul.wide.u32(offset, i, 4)
    return i, offset


@kernel(
    arch="auto", in_specs=(_VECTOR, _VECTOR), out_specs=(_VECTOR,), grid=_blocks, block=(THREADS,),
    raw_params=[("f32", "s"), ("u32", "N")],
)  # fmt: skip
def scaled_add(a: Any, b: Any, c: Any) -> None:
    """c = s·a + b."""
    i, offset = _index()
    pa, pb, pc = ptx.global_ptrs(a, b, c)
    x, y = reg.scalar(f32), reg.scalar(f32)
    with ptx.if_(i < ptx.param(u32, "N")):
        ptx.ld(f32, x, ptx.addr(pa + offset))
        ptx.ld(f32, y, ptx.addr(pb + offset))
        ptx.inst.fma.rn.f32(x, ptx.param(f32, "s"), x, y)
        ptx.st(f32, ptx.addr(pc + offset), x)
    ptx.ret()


@kernel(arch="auto", in_specs=(_VECTOR,), out_specs=(_VECTOR,), grid=_blocks, block=(THREADS,), raw_params=[("f32", "s")])
def scaled_copy(a: Any, c: Any) -> None:
    """c = s·a, for multiples of 128 elements."""
    _, offset = _index()
    pa, pc = ptx.global_ptrs(a, c)
    x = reg.scalar(f32)
    ptx.ld(f32, x, ptx.addr(pa + offset))
    ptx.inst.mul.rn.f32(x, ptx.param(f32, "s"), x)
    ptx.st(f32, ptx.addr(pc + offset), x)
    ptx.ret()


@kernel(arch="auto", in_specs=(_VECTOR,), out_specs=(_VECTOR,), grid=_blocks, block=(THREADS,))
def unguarded(a: Any, c: Any) -> None:
    """c = a, broken: the guard `i < N` is missing, so the last CTA writes behind the array."""
    _, offset = _index()
    pa, pc = ptx.global_ptrs(a, c)
    x = reg.scalar(f32)
    ptx.ld(f32, x, ptx.addr(pa + offset))
    ptx.st(f32, ptx.addr(pc + offset), x)
    ptx.ret()


@kernel(arch="auto", in_specs=(_VECTOR,), out_specs=(_VECTOR,), grid=_blocks, block=(THREADS,))
def outside(a: Any, c: Any) -> None:
    """c = a, broken: the offset is scaled twice by 2^20, far outside every allocation."""
    _, offset = _index()
    pa, pc = ptx.global_ptrs(a, c)
    x = reg.scalar(f32)
    ptx.ld(f32, x, ptx.addr(pa + offset))
    ptx.inst.shl.b64(offset, offset, 40)
    ptx.st(f32, ptx.addr(pc + offset), x)
    ptx.ret()


@kernel(arch="auto", in_specs=(_VECTOR,), out_specs=(_VECTOR,), grid=_blocks, block=(THREADS,))
def misaligned(a: Any, c: Any) -> None:
    """c = a, broken: stores at odd addresses."""
    _, offset = _index()
    pa, pc = ptx.global_ptrs(a, c)
    x = reg.scalar(f32)
    ptx.ld(f32, x, ptx.addr(pa + offset))
    ptx.st(f32, ptx.addr(pc + offset, 2), x)
    ptx.ret()


@kernel(arch="auto", in_specs=(_VECTOR,), out_specs=(_VECTOR,), grid=(1,), block=(THREADS,))
def hang(a: Any, c: Any) -> None:
    """c = a, broken: the barrier expects 129 arrivals of 128 threads, so nobody passes it."""
    _, offset = _index()
    pa, pc = ptx.global_ptrs(a, c)
    barrier = smem.mbarrier(1)
    tid = reg.scalar(u32)
    ptx.inst.mov.u32(tid, ptx.special.tid.x())
    with ptx.if_(tid == 0):
        ptx.mbarrier.init(barrier[0], THREADS + 1)
    ptx.bar.sync(0)
    ptx.mbarrier.arrive(barrier[0])
    ptx.mbarrier.wait(barrier[0], 0)
    x = reg.scalar(f32)
    ptx.ld(f32, x, ptx.addr(pa + offset))
    ptx.st(f32, ptx.addr(pc + offset), x)
    ptx.ret()


@kernel(
    arch="sm_90a", in_specs=(), out_specs=(Tile("N", u32),), grid=lambda N: (N // THREADS,), block=(THREADS,), cluster=(2, 1, 1)
)
def cluster_rank(c: Any) -> None:
    """c = the CTA's rank in its cluster of two."""
    _, offset = _index()
    (pc,) = ptx.global_ptrs(c)
    rank = reg.scalar(u32)
    ptx.inst.mov.u32(rank, ptx.sreg("%cluster_ctarank"))
    ptx.st(u32, ptx.addr(pc + offset), rank)
    ptx.ret()


@kernel(arch="sm_90a", in_specs=(_VECTOR,), out_specs=(_VECTOR,), grid=_blocks, block=(THREADS,), raw_params=[("f32", "s")])
def patient(a: Any, c: Any) -> None:
    """c = s·a as a dependent launch: waits for the kernel before it (`griddepcontrol.wait`)."""
    _, offset = _index()
    pa, pc = ptx.global_ptrs(a, c)
    x = reg.scalar(f32)
    ptx.inst.griddepcontrol.launch_dependents()
    ptx.inst.griddepcontrol.wait()
    ptx.ld(f32, x, ptx.addr(pa + offset))
    ptx.inst.mul.rn.f32(x, ptx.param(f32, "s"), x)
    ptx.st(f32, ptx.addr(pc + offset), x)
    ptx.ret()
