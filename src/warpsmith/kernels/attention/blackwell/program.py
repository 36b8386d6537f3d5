"""The kernel that roles make together: barriers, tensor memory, who does what; the variants give its configuration."""

from __future__ import annotations

from contextlib import nullcontext
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.base.errors import InputError
from warpsmith.debugkit import WAITMAP_MAX_SITES, WaitMap
from warpsmith.kernels.attention.blackwell.config import STRIPE, TILE, SharedMap
from warpsmith.kernels.attention.blackwell.correction import correct
from warpsmith.kernels.attention.blackwell.loader import load
from warpsmith.kernels.attention.blackwell.peers import is_lead, rank
from warpsmith.kernels.attention.blackwell.products import issue
from warpsmith.kernels.attention.blackwell.softmax import Row, run
from warpsmith.kernels.attention.blackwell.softmax_half import HalfRow
from warpsmith.specs import Layout
from warpsmith.types import b32, f32, from_name, pred, u32

if TYPE_CHECKING:
    from warpsmith.kernels.attention.blackwell.config import Config

__all__ = ["make"]


def _initialise(c: Config, at: SharedMap, base: Any, thread: Any, allocates: Any) -> Any:
    """Initialise the barriers, allocate tensor memory; return its address."""
    with ptx.if_(thread == 0):
        for offset, count in at.counts().items():
            ptx.mbarrier.init(base + offset, _arrivals(c, at, offset, count))
        ptx.fence.proxy_async_shared_cta()
        if c.peers > 1:
            ptx.fence.mbarrier_init()
    with ptx.if_(allocates):
        ptx.tcgen05.alloc(base + at.tensor_memory, 2 * c.output, cta_group=c.peers)
        ptx.tcgen05.relinquish_alloc_permit(cta_group=c.peers)
    ptx.tcgen05.fence_before_thread_sync()
    _meet(c)
    ptx.tcgen05.fence_after_thread_sync()
    return smem.load(u32, base + at.tensor_memory)


def _arrivals(c: Config, at: SharedMap, offset: int, count: int) -> Any:
    """Return the arrivals of a phase: of CTAs that share items only the lead has products, which meet the other roles."""
    if c.peers == 1 or offset != at.lockstep or not c.meets("mma"):
        return count
    fewer = reg.scalar(u32)
    ptx.inst.sub.u32(fewer, count, rank())
    return fewer


def _meet(c: Config) -> None:
    """Wait for every thread of the CTA, and of those that share its items."""
    ptx.bar.sync(0)
    if c.peers > 1:
        ptx.cluster.sync()


def _registers(c: Config, role: int) -> None:
    """Take or give back registers, if the warpgroups have different shares: softmax 0, correction 1, others 2."""
    if c.registers is None:
        ptx.setmaxnreg(c.shares[role], inc=c.shares[role] > 65536 // (c.threads))


def _roles(c: Config, at: SharedMap, base: Any, tmem: Any, thread: Any, tensors: tuple[Any, ...]) -> None:
    q, k, v, o, lse = tensors
    with ptx.if_(thread < TILE * c.stages):
        _registers(c, 0)
        with ptx.scope():
            run((HalfRow if c.half_scores else Row)(c, at, base, tmem, thread), lse)
    with ptx.else_(), ptx.scope():
        corrects = thread < c.workers
        with ptx.if_(corrects):
            _registers(c, 1)
            with ptx.scope():
                (output,) = ptx.global_ptrs(o)
                correct(c, at, base, tmem, thread, output)
        with ptx.else_():
            _registers(c, 2)
            with ptx.if_(_issues(c, thread)), ptx.scope():
                issue(c, at, base, tmem)
            with ptx.if_(thread == c.workers + 64), ptx.scope():
                load(c, at, base, q, k, v)


def _issues(c: Config, thread: Any) -> Any:
    """Return the predicate: this thread issues products."""
    mine = reg.scalar(pred)
    ptx.inst.setp.eq.u32(mine, thread, c.workers)
    if c.peers > 1:
        ptx.inst.and_.pred(mine, mine, is_lead())
    return mine


def _tiles(c: Config) -> tuple[tuple[Tile, Tile, Tile], list[Tile]]:
    """Return inputs and outputs: of a pair, each CTA loads half of the rows of a tile of K, and half of the columns of V."""
    shape, ones = ((c.heads * c.sequence, c.dim), ()) if c.flat else ((c.heads, c.sequence, c.dim), (1,))
    type_, rank = from_name(c.dtype), len(shape)
    of_v = Layout.TMA_128B if c.value_bytes == 128 else Layout.TMA_64B
    inputs = (
        Tile(*shape, type_, Layout.TMA_128B, tma_box=(*ones, TILE, STRIPE), tma_rank=rank),
        Tile(*shape, type_, Layout.TMA_128B, tma_box=(*ones, TILE // c.peers, STRIPE), tma_rank=rank),
        Tile(*shape, type_, of_v, tma_box=(*ones, TILE, c.value_bytes // 2), tma_rank=rank),
    )
    outputs = [Tile(*shape, type_, Layout.ROW)]
    if c.lse:
        outputs.append(Tile(c.heads, c.sequence, f32, Layout.ROW))
    if c.waitmap:
        outputs.append(Tile(c.threads, WAITMAP_MAX_SITES, b32, Layout.ROW))
    return inputs, outputs


def _body(c: Config, at: SharedMap, tensors: tuple[Any, ...], waits: WaitMap | None) -> None:
    """Trace the kernel; `tensors` are q, k, v, o and, as asked for, the log-sum-exp and the record of the wait map."""
    lse = tensors[4] if c.lse else None
    base = smem.base()
    thread, warp, allocates = reg.scalar(u32), reg.scalar(u32), reg.scalar(pred)
    ptx.inst.mov.u32(thread, ptx.special.tid.x())
    ptx.inst.shr.u32(warp, thread, 5)
    ptx.inst.setp.eq.u32(allocates, warp, c.workers // 32)
    if waits is not None:
        waits.attach(ptx.global_ptrs(tensors[-1])[0], thread)
    tmem = _initialise(c, at, base, thread, allocates)
    with nullcontext() if waits is None else waits.active():
        _roles(c, at, base, tmem, thread, (*tensors[:4], lse))
    ptx.tcgen05.fence_before_thread_sync()
    _meet(c)
    with ptx.if_(allocates):
        ptx.tcgen05.fence_after_thread_sync()
        ptx.tcgen05.dealloc(tmem, 2 * c.output, cta_group=c.peers)
    if waits is not None:
        waits.flush(pred=ptx.special.ctaid.x() == 0)


def make(c: Config) -> Any:
    """Return the kernel for `c`: (q, k, v) → o, then the log-sum-exp and the record of the wait map if it asks for them."""
    c.check()
    at = SharedMap(c)
    if c.arch not in ("sm_100a", "sm_103a", "sm_110a"):
        raise InputError(f"attention: arch {c.arch!r} has no tensor memory; use sm_100a, sm_103a or sm_110a")
    inputs, outputs = _tiles(c)
    waits = WaitMap() if c.waitmap else None
    most = ("minnctapersm", (1,)) if c.registers is None else ("maxnreg", (c.registers,))
    cluster = [("explicitcluster", ()), ("reqnctapercluster", (c.peers, 1, 1))] if c.peers > 1 else []

    def blackwell_attention(*tensors: Any) -> None:
        _body(c, at, tensors, waits)

    blackwell_attention.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(n, Parameter.POSITIONAL_ONLY) for n in ("q", "k", "v", "o", *["lse"] * c.lse, *["record"] * c.waitmap)]
    )
    built: Any = kernel(
        arch=c.arch, in_specs=inputs, out_specs=outputs, grid=(c.ctas, 1, 1), block=(c.threads, 1, 1), cluster=(c.peers, 1, 1),
        smem=at.size, extern_smem=True, raw_directives=[("reqntid", (c.threads, 1, 1)), most, *cluster],
    )(blackwell_attention)  # fmt: skip
    built.roles, built._waitmap = c.roles, waits
    return built
