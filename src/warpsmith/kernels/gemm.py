"""Tiled GEMM for sm_90a: C = A B, TMA into a ring of stages, wgmma from shared memory, persistent tiles.

A is `[m, k]`, B is `[n, k]` ("nt": both operands K-major) or `[k, n]` ("nn": B is MN-major), C is `[m, n]`; 16-bit in
and out, f32 accumulation. A work item is 128 × `columns` of C: each of two consumer warpgroups keeps 64 rows. Any m,
n and k that are multiples of 8 (TMA wants 16-byte strides) work: boxes past the edge read zeros and write nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.base.errors import InputError
from warpsmith.kernels.ring import Ring
from warpsmith.specs import Layout
from warpsmith.types import b32, f32, from_name, pred, u32, u64

__all__ = ["Config", "build"]

CONSUMERS = 2
ROWS = 64
"""Rows of C of one consumer: the M of wgmma."""
DEPTH = 64
"""K of a stage: one 128-byte swizzled row."""
THREADS = 128 * (CONSUMERS + 1)


@dataclass(frozen=True, slots=True)
class Config:
    """Shape and tiling of one GEMM."""

    m: int
    n: int
    k: int
    dtype: str = "bf16"
    layout: str = "nt"
    columns: int = 128
    """Columns of C of a work item: a multiple of 64, at most 256."""
    stages: int = 4
    multiprocessors: int = 132

    @property
    def row_tiles(self) -> int:
        """Work items along m."""
        return -(-self.m // (ROWS * CONSUMERS))

    @property
    def items(self) -> int:
        """Work items of the launch."""
        return self.row_tiles * -(-self.n // self.columns)

    @property
    def steps(self) -> int:
        """Stages of a work item."""
        return -(-self.k // DEPTH)


class SharedMap:
    """Byte offsets in dynamic shared memory; tiles start on 1024 bytes."""

    def __init__(self, c: Config) -> None:
        self.a_bytes = CONSUMERS * ROWS * 128
        self.b_bytes = c.columns * 128
        self.out_bytes = ROWS * c.columns * 2
        self.a = 0
        self.b = c.stages * self.a_bytes
        self.out = self.b + c.stages * self.b_bytes
        self.full = self.out + CONSUMERS * self.out_bytes
        self.free = self.full + 8 * c.stages
        self.size = self.free + 8 * c.stages


class Item:
    """Registers of the work item a role is at."""

    def __init__(self, c: Config) -> None:
        self.c = c
        self.number, self.step = reg.scalar(u32), reg.scalar(u32)
        ptx.inst.mov.u32(self.number, ptx.special.ctaid.x())
        ptx.inst.mov.u32(self.step, ptx.special.nctaid.x())
        self.row, self.column, self.more = reg.scalar(u32), reg.scalar(u32), reg.scalar(pred)

    def locate(self) -> None:
        """Compute the item's first row and column of C."""
        ptx.inst.rem.u32(self.row, self.number, self.c.row_tiles)
        ptx.inst.mul.lo.u32(self.row, self.row, ROWS * CONSUMERS)
        ptx.inst.div.u32(self.column, self.number, self.c.row_tiles)
        ptx.inst.mul.lo.u32(self.column, self.column, self.c.columns)

    def advance(self) -> None:
        """Go to the next item; `more` says whether there is one."""
        self.number += self.step
        ptx.inst.setp.lt.u32(self.more, self.number, self.c.items)


def _load_b(c: Config, to: Any, source: Any, depth: Any, column: Any, full: Any) -> None:
    if c.layout == "nt":
        ptx.cp.async_.bulk.tensor_2d(dst=to, src=source, coord=(depth, column), mbar=full)
        return
    for stripe in range(c.columns // 64):
        ptx.cp.async_.bulk.tensor_2d(dst=to + stripe * DEPTH * 128, src=source, coord=(column + 64 * stripe, depth), mbar=full)


def _producer(c: Config, at: SharedMap, base: Any, a: Any, b: Any) -> None:
    ring, item = Ring(c.stages), Item(c)
    with ptx.loop("producer_items", pred=item.more):
        item.locate()
        depth, more = reg.scalar(u32, init=0), reg.scalar(pred)
        with ptx.loop("producer_steps", pred=more):
            ptx.mbarrier.wait(ring.barrier(base, at.free), ring.empty_phase())
            full = ring.barrier(base, at.full)
            ptx.mbarrier.arrive_expect_tx(full, at.a_bytes + at.b_bytes)
            to = reg.scalar(u32)
            ptx.inst.mad.lo.u32(to, ring.stage, at.a_bytes, base)
            ptx.cp.async_.bulk.tensor_2d(dst=to + at.a, src=a.tma_desc(), coord=(depth, item.row), mbar=full)
            ptx.inst.mad.lo.u32(to, ring.stage, at.b_bytes, base)
            _load_b(c, to + at.b, b.tma_desc(), depth, item.column, full)
            ring.advance()
            depth += DEPTH
            ptx.inst.setp.lt.u32(more, depth, c.k)
        item.advance()


class Consumer:
    """Registers and steps of one consumer warpgroup."""

    def __init__(self, c: Config, at: SharedMap, base: Any, index: Any, thread: Any) -> None:
        self.c, self.at, self.base, self.index, self.thread = c, at, base, index, thread
        self.dtype = from_name(c.dtype)
        self.sum = reg.array(f32, c.columns // 2)
        self.ring = Ring(c.stages)
        self.lane = reg.scalar(u32)
        ptx.inst.and_.b32(self.lane, thread, 31)
        self.leader = self.lane == 0
        own = reg.scalar(u32)
        ptx.inst.mad.lo.u32(own, index, ROWS * 128, base)
        swizzle = ptx.wgmma.SWIZZLE_128B
        self.a = ptx.wgmma.make_descriptor(own + at.a, leading_byte_offset=16, stride_byte_offset=1024, swizzle=swizzle)
        leading = 16 if c.layout == "nt" else DEPTH * 128
        self.b = ptx.wgmma.make_descriptor(base + at.b, leading_byte_offset=leading, stride_byte_offset=1024, swizzle=swizzle)

    def accumulate(self, adds: Any) -> None:
        """Multiply the current stage and give it back; the sum is cleared first unless `adds` (pred)."""
        c, at = self.c, self.at
        a, b = reg.scalar(u64), reg.scalar(u64)
        ptx.mbarrier.wait(self.ring.barrier(self.base, at.full), self.ring.phase)
        ptx.inst.mad.wide.u32(a, self.ring.stage, at.a_bytes >> 4, self.a)
        ptx.inst.mad.wide.u32(b, self.ring.stage, at.b_bytes >> 4, self.b)
        ptx.wgmma.fence()
        for step in range(DEPTH // 16):
            ptx.wgmma.mma_async(
                shape=(ROWS, c.columns, 16),
                dtype_d=f32,
                dtype_a=self.dtype,
                dtype_b=self.dtype,
                d=self.sum,
                a=a + 2 * step,
                b=b + (2 * step if c.layout == "nt" else 128 * step),
                scale_d=True if step else adds,
                trans_b=0 if c.layout == "nt" else 1,
            )
        ptx.wgmma.commit_group()
        ptx.wgmma.wait_group(0)
        ptx.mbarrier.arrive(self.ring.barrier(self.base, at.free), pred=self.leader)
        self.ring.advance()

    def store(self, item: Item, target: Any) -> None:
        """Round the sums, stage them in shared memory, store them by TMA."""
        c, at = self.c, self.at
        own, row, twist, half = reg.scalar(u32), reg.scalar(u32), reg.scalar(u32), reg.scalar(u32)
        ptx.inst.mad.lo.u32(own, self.index, at.out_bytes, self.base)
        own += at.out
        ptx.inst.and_.b32(row, self.lane, 15)
        ptx.inst.and_.b32(half, self.thread, 96)
        ptx.inst.shr.u32(half, half, 1)
        ptx.inst.add.u32(row, row, half)
        ptx.inst.mad.lo.u32(row, row, 128, own)
        ptx.inst.and_.b32(twist, self.lane, 7)
        ptx.inst.shr.u32(half, self.lane, 4)
        ptx.inst.xor.b32(twist, twist, half)
        ptx.inst.shl.b32(twist, twist, 4)
        barrier = self.index + 1
        elected = (self.thread & 127) == 0
        ptx.cp.async_.bulk.wait_group(0, read=True)  # the last item's store has read the staging bytes
        ptx.bar.sync(barrier, 128)
        for block in range(0, c.columns // 8, 2):
            stripe, chunk = divmod(block, 8)
            words, to = reg.array(b32, 4), reg.scalar(u32)
            for i in range(4):
                pair = 4 * block + 2 * i
                getattr(ptx.inst.cvt.rn, f"{c.dtype}x2").f32(words[i], self.sum[pair + 1], self.sum[pair])
            ptx.inst.xor.b32(to, twist, chunk * 16)
            ptx.inst.add.u32(to, to, row)
            ptx.inst.stmatrix.sync.aligned.m8n8.x4.shared.b16(ptx.addr(to, stripe * ROWS * 128), words)
        ptx.fence.proxy_async_shared_cta()
        ptx.bar.sync(barrier, 128)
        with ptx.if_(elected):
            first = reg.scalar(u32)
            ptx.inst.mad.lo.u32(first, self.index, ROWS, item.row)
            for stripe in range(c.columns // 64):
                ptx.cp.async_.bulk.tensor_2d.store(
                    dst=target.tma_desc(), src=own + stripe * ROWS * 128, coord=(item.column + 64 * stripe, first)
                )
            ptx.cp.async_.bulk.commit_group()


def _initialise(c: Config, at: SharedMap, base: Any, thread: Any) -> None:
    """Set up the barriers of the ring: a stage is full by one producer, free by one lane of each consumer warp."""
    with ptx.if_(thread == 0):
        for stage in range(c.stages):
            ptx.mbarrier.init(base + (at.full + 8 * stage), 1)
            ptx.mbarrier.init(base + (at.free + 8 * stage), 4 * CONSUMERS)
        ptx.fence.proxy_async_shared_cta()
    ptx.bar.sync(0)


def _consumer(me: Consumer, item: Item, out: Any) -> None:
    """Multiply and store the warpgroup's rows of every tile of the CTA."""
    with ptx.loop("consumer_items", pred=item.more):
        item.locate()
        step, more = reg.scalar(u32, init=0), reg.scalar(pred)
        with ptx.loop("consumer_steps", pred=more):
            me.accumulate(step != 0)
            step += 1
            ptx.inst.setp.lt.u32(more, step, me.c.steps)
        me.store(item, out)
        item.advance()
    # shared memory must outlive the last store's reads of it
    ptx.cp.async_.bulk.wait_group(0, read=True)


def _check(c: Config) -> None:
    for name in ("m", "n", "k"):
        if getattr(c, name) < 1:
            raise InputError(f"gemm: {name}={getattr(c, name)} must be at least 1")
    for name in ("n", "k"):
        if getattr(c, name) % 8:
            raise InputError(f"gemm: {name}={getattr(c, name)}; rows must be multiples of 16 bytes, use a multiple of 8")
    if c.dtype not in ("f16", "bf16"):
        raise InputError(f"gemm: dtype {c.dtype!r} is not supported; use 'f16' or 'bf16'")
    if c.layout not in ("nt", "nn"):
        raise InputError(f"gemm: layout {c.layout!r} is not supported; use 'nt' (B is [n, k]) or 'nn' (B is [k, n])")
    if c.columns % 64 or not 64 <= c.columns <= 256:
        raise InputError(f"gemm: {c.columns} columns a work item; use 64, 128, 192 or 256")
    if SharedMap(c).size > 227 * 1024:
        raise InputError(f"gemm: {SharedMap(c).size} bytes of shared memory; use fewer stages or columns (at most 232448)")


@cache
def build(config: Config) -> Any:
    """Return the kernel for `config`: (a, b) → c."""
    c = config
    _check(c)
    at = SharedMap(c)
    dtype = from_name(c.dtype)
    a_tile = Tile(c.m, c.k, dtype, Layout.TMA_128B, tma_box=(ROWS * CONSUMERS, DEPTH))
    if c.layout == "nt":
        b_tile = Tile(c.n, c.k, dtype, Layout.TMA_128B, tma_box=(c.columns, DEPTH))
    else:
        b_tile = Tile(c.k, c.n, dtype, Layout.TMA_128B, tma_box=(DEPTH, 64))
    c_tile = Tile(c.m, c.n, dtype, Layout.TMA_128B, tma_box=(ROWS, 64))

    @kernel(
        arch="sm_90a",
        in_specs=(a_tile, b_tile),
        out_specs=(c_tile,),
        grid=(min(c.items, c.multiprocessors), 1, 1),
        block=(THREADS, 1, 1),
        smem=at.size,
        extern_smem=True,
        raw_directives=[("reqntid", (THREADS, 1, 1)), ("minnctapersm", (1,))],
    )
    def gemm(a: Any, b: Any, out: Any) -> None:
        base = smem.base()
        thread, group = reg.scalar(u32), reg.scalar(u32)
        ptx.inst.mov.u32(thread, ptx.special.tid.x())
        ptx.inst.shr.u32(group, thread, 7)
        _initialise(c, at, base, thread)
        with ptx.if_(group == 0):
            ptx.setmaxnreg(24, inc=False)
            with ptx.if_(thread == 0), ptx.scope():
                _producer(c, at, base, a, b)
        with ptx.else_():
            ptx.setmaxnreg(240, inc=True)
            index = reg.scalar(u32)
            ptx.inst.sub.u32(index, group, 1)
            with ptx.scope():
                _consumer(Consumer(c, at, base, index, thread), Item(c), out)

    return gemm
