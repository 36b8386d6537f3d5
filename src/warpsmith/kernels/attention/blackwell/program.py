"""The kernel that roles make together: barriers, tensor memory, who does what; the variants give its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.base.errors import InputError
from warpsmith.kernels.attention.blackwell.config import CORRECTION, OTHERS, SOFTMAX, STRIPE, TILE, SharedMap
from warpsmith.kernels.attention.blackwell.correction import correct
from warpsmith.kernels.attention.blackwell.loader import load
from warpsmith.kernels.attention.blackwell.products import issue
from warpsmith.kernels.attention.blackwell.softmax import softmax
from warpsmith.specs import Layout
from warpsmith.types import from_name, pred, u32

if TYPE_CHECKING:
    from warpsmith.kernels.attention.blackwell.config import Config

__all__ = ["make"]


def _initialise(c: Config, at: SharedMap, base: Any, thread: Any, allocates: Any) -> Any:
    """Initialise the barriers, allocate tensor memory; return its address."""
    with ptx.if_(thread == 0):
        for offset, count in at.counts().items():
            ptx.mbarrier.init(base + offset, count)
        ptx.fence.proxy_async_shared_cta()
    with ptx.if_(allocates):
        ptx.tcgen05.alloc(base + at.tensor_memory, 2 * c.output)
        ptx.tcgen05.relinquish_alloc_permit()
    ptx.tcgen05.fence_before_thread_sync()
    ptx.bar.sync(0)
    ptx.tcgen05.fence_after_thread_sync()
    return smem.load(u32, base + at.tensor_memory)


def _registers(c: Config, count: int) -> None:
    """Take or give back registers, if the warpgroups have different shares."""
    if c.registers is None:
        ptx.setmaxnreg(count, inc=count > CORRECTION)


def _roles(c: Config, at: SharedMap, base: Any, tmem: Any, thread: Any, tensors: tuple[Any, ...]) -> None:
    q, k, v, o = tensors
    with ptx.if_(thread < c.rows):
        _registers(c, SOFTMAX)
        with ptx.scope():
            softmax(c, at, base, tmem, thread)
    with ptx.else_(), ptx.scope():
        corrects = thread < c.workers
        with ptx.if_(corrects):
            _registers(c, CORRECTION)
            with ptx.scope():
                (output,) = ptx.global_ptrs(o)
                correct(c, at, base, tmem, thread, output)
        with ptx.else_():
            _registers(c, OTHERS)
            with ptx.if_(thread == c.workers), ptx.scope():
                issue(c, at, base, tmem)
            with ptx.if_(thread == c.workers + 64), ptx.scope():
                load(c, at, base, q, k, v)


def make(c: Config) -> Any:
    """Return the kernel for `c`: (q, k, v) → o."""
    c.check()
    at = SharedMap(c)
    if c.arch not in ("sm_100a", "sm_103a", "sm_110a"):
        raise InputError(f"attention: arch {c.arch!r} has no tensor memory; use sm_100a, sm_103a or sm_110a")
    tile = Tile(c.heads, c.sequence, c.dim, from_name(c.dtype), Layout.TMA_128B, tma_box=(1, TILE, STRIPE), tma_rank=3)

    most = ("minnctapersm", (1,)) if c.registers is None else ("maxnreg", (c.registers,))

    @kernel(
        arch=c.arch,
        in_specs=(tile, tile, tile),
        out_specs=(Tile(c.heads, c.sequence, c.dim, from_name(c.dtype), Layout.ROW),),
        grid=(c.ctas, 1, 1),
        block=(c.workers + 128, 1, 1),
        smem=at.size,
        extern_smem=True,
        raw_directives=[("reqntid", (c.workers + 128, 1, 1)), most],
    )
    def blackwell_attention(q: Any, k: Any, v: Any, o: Any) -> None:
        base = smem.base()
        thread, warp, allocates = reg.scalar(u32), reg.scalar(u32), reg.scalar(pred)
        ptx.inst.mov.u32(thread, ptx.special.tid.x())
        ptx.inst.shr.u32(warp, thread, 5)
        ptx.inst.setp.eq.u32(allocates, warp, c.workers // 32)
        tmem = _initialise(c, at, base, thread, allocates)
        _roles(c, at, base, tmem, thread, (q, k, v, o))
        ptx.tcgen05.fence_before_thread_sync()
        ptx.bar.sync(0)
        with ptx.if_(allocates):
            ptx.tcgen05.fence_after_thread_sync()
            ptx.tcgen05.dealloc(tmem, 2 * c.output)

    return blackwell_attention
