"""Flash attention forward for sm_100a and later: one CTA of 512 threads an SM, persistent, two stages of 128 query rows.

    warps 0-3, 4-7   softmax of stage 0 and 1: a thread owns a row (softmax.py)        136 registers
    warps 8-11       correction: rescale O, divide, store (correction.py)               96
    warp 12          one thread issues every product (products.py); allocates            144
    warp 14          one thread loads by TMA (loader.py)                                 144

Tensor memory: S of stage s in columns 128·s, P (two to a column) over its first half, O in columns 256 + 128·s.

Every role counts work items and key tiles for itself; the phase of each barrier follows from the counts, and waits for what
is free at the start pass by parity: no barrier needs a first arrival.

    barrier               arrivals                             waits            completions
    q_full[s]             TMA, bytes                           products         an item
    kv_full[slot]         TMA, bytes                           products         2 tiles
    kv_free[slot]         commit                               TMA              2 tiles
    s_full[s]             commit behind S(k), so O(k-1) too    softmax          a tile
    p_full[s][quarter]    128 softmax threads                  products         a tile
    rescaled[s]           32 a warp: softmax where no row of   products,        a tile; that of an item's first tile comes
                          the warp moved, else correction      before O += P V  from correction, when O has been read
    statistics_full[warp] 32 softmax threads: alpha, last l    correction       a tile
    statistics_free[warp] 32 correction threads                softmax          a tile
    o_done[s]             commit behind the last product       correction       an item
    q_free                commit behind the last S             TMA              an item
    output_read           128 correction threads               softmax          an item
"""

from __future__ import annotations

from functools import cache
from typing import Any

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.base.errors import InputError
from warpsmith.kernels.attention.blackwell.config import CORRECTION, OTHERS, SOFTMAX, STRIPE, TILE, Config, SharedMap
from warpsmith.kernels.attention.blackwell.correction import correct
from warpsmith.kernels.attention.blackwell.loader import load
from warpsmith.kernels.attention.blackwell.products import issue
from warpsmith.kernels.attention.blackwell.softmax import softmax
from warpsmith.specs import Layout
from warpsmith.types import from_name, pred, u32

__all__ = ["Config", "build"]

THREADS = 512
_COLUMNS = 512
_PRODUCTS, _LOADS = 384, 448
"""Threads that issue products and loads."""


def _initialise(at: SharedMap, base: Any, thread: Any, allocates: Any) -> Any:
    """Initialise the barriers, allocate tensor memory; return its address."""
    with ptx.if_(thread == 0):
        for offset, count in at.counts().items():
            ptx.mbarrier.init(base + offset, count)
        ptx.fence.proxy_async_shared_cta()
    with ptx.if_(allocates):
        ptx.tcgen05.alloc(base + at.tensor_memory, _COLUMNS)
        ptx.tcgen05.relinquish_alloc_permit()
    ptx.tcgen05.fence_before_thread_sync()
    ptx.bar.sync(0)
    ptx.tcgen05.fence_after_thread_sync()
    return smem.load(u32, base + at.tensor_memory)


def _roles(c: Config, at: SharedMap, base: Any, tmem: Any, thread: Any, tensors: tuple[Any, ...]) -> None:
    q, k, v, o = tensors
    with ptx.if_(thread < 256):
        ptx.setmaxnreg(SOFTMAX, inc=True)
        with ptx.scope():
            softmax(c, at, base, tmem, thread)
    with ptx.else_(), ptx.scope():
        corrects = thread < _PRODUCTS
        with ptx.if_(corrects):
            ptx.setmaxnreg(CORRECTION, inc=False)
            with ptx.scope():
                (output,) = ptx.global_ptrs(o)
                correct(c, at, base, tmem, thread, output)
        with ptx.else_():
            ptx.setmaxnreg(OTHERS, inc=True)
            with ptx.if_(thread == _PRODUCTS), ptx.scope():
                issue(c, at, base, tmem)
            with ptx.if_(thread == _LOADS), ptx.scope():
                load(c, at, base, q, k, v)


@cache
def build(config: Config) -> Any:
    """Return the kernel for `config`: (q, k, v) → o, all `[heads, sequence, dim]` of the config's dtype.

    Raise `InputError` for what it does not compute.
    """
    c = config
    c.check()
    at = SharedMap(c)
    if c.arch not in ("sm_100a", "sm_103a", "sm_110a"):
        raise InputError(f"attention: arch {c.arch!r} has no tensor memory; use sm_100a, sm_103a or sm_110a")
    tile = Tile(c.heads, c.sequence, c.dim, from_name(c.dtype), Layout.TMA_128B, tma_box=(1, TILE, STRIPE), tma_rank=3)

    @kernel(
        arch=c.arch,
        in_specs=(tile, tile, tile),
        out_specs=(Tile(c.heads, c.sequence, c.dim, from_name(c.dtype), Layout.ROW),),
        grid=(min(c.items, c.multiprocessors), 1, 1),
        block=(THREADS, 1, 1),
        smem=at.size,
        extern_smem=True,
        raw_directives=[("reqntid", (THREADS, 1, 1)), ("minnctapersm", (1,))],
    )
    def blackwell_attention(q: Any, k: Any, v: Any, o: Any) -> None:
        base = smem.base()
        thread, warp, allocates = reg.scalar(u32), reg.scalar(u32), reg.scalar(pred)
        ptx.inst.mov.u32(thread, ptx.special.tid.x())
        ptx.inst.shr.u32(warp, thread, 5)
        ptx.inst.setp.eq.u32(allocates, warp, _PRODUCTS // 32)
        tmem = _initialise(at, base, thread, allocates)
        _roles(c, at, base, tmem, thread, (q, k, v, o))
        ptx.tcgen05.fence_before_thread_sync()
        ptx.bar.sync(0)
        with ptx.if_(allocates):
            ptx.tcgen05.fence_after_thread_sync()
            ptx.tcgen05.dealloc(tmem, _COLUMNS)

    return blackwell_attention
