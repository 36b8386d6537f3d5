"""Flash attention forward for sm_90a: one producer warpgroup, two or three consumer warpgroups, persistent tiles.

One thread of the producer loads Q (64 rows for each consumer) and a ring of K and V tiles by TMA. Each consumer keeps
64 query rows:

    S = Q Kᵀ            wgmma, both operands in shared memory
    P = softmax(S)      in registers, online (softmax.py)
    O += P V            wgmma, P from registers

The next tile's Q Kᵀ is issued before this tile's P V, so that the tensor cores work while the softmax runs. Keys go from the
last tile to the first: only the first tiles visited can cross the diagonal or the end of the sequence.

Barriers, all in shared memory; every role keeps its own stage and phase:

    q_full[c]   1 arrival and bytes   producer → consumer c    the Q rows of consumer c are there
    q_free[c]   1                     consumer c → producer    its output, staged in the same bytes, has been read
    k_full[s]   1 and bytes           producer → consumers     the K tile of stage s is there
    k_free[s]   4 for each consumer   consumers → producer     every warp is done with it; v_full, v_free: the same for V
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.base.errors import InputError
from warpsmith.kernels.attention.softmax import (
    RowState,
    mask_scores,
    pack_probabilities,
    quad_reduce,
    rescale,
    softmax_step,
)
from warpsmith.kernels.ring import Ring
from warpsmith.specs import Layout
from warpsmith.types import b32, b64, f32, from_name, pred, u32, u64

__all__ = ["Config", "build"]

ROWS = 64
"""Query rows of one consumer warpgroup: the M of wgmma."""
STRIPE = 64
"""16-bit elements in one 128-byte swizzled row: a D=128 tile is two stripes."""
_REGISTERS = {2: (24, 240), 3: (32, 160)}
"""consumers → registers a thread of the (producer, consumers); the sum fits the 64 K of a multiprocessor."""


@dataclass(frozen=True, slots=True)
class Config:
    """Shape and tiling of one attention kernel; `heads` is batch times heads."""

    heads: int
    sequence: int
    dim: int = 64
    dtype: str = "f16"
    causal: bool = False
    scale: float | None = None
    """Factor of the scores; None for 1/√dim."""
    consumers: int = 2
    keys: int = 128
    """Key rows of a tile."""
    stages: int = 2
    multiprocessors: int = 132
    emulated: int = 0
    """Of every 16 exponentials, how many a polynomial computes."""
    threshold: float = 0.0
    """Powers of two by which a score may exceed the running maximum before the output is rescaled."""

    @property
    def rows(self) -> int:
        """Query rows of a work item."""
        return ROWS * self.consumers

    @property
    def blocks(self) -> int:
        """Work items of one head."""
        return -(-self.sequence // self.rows)

    @property
    def items(self) -> int:
        """Work items of the launch."""
        return self.blocks * self.heads

    @property
    def stripes(self) -> int:
        """128-byte stripes of a row."""
        return self.dim // STRIPE

    @property
    def masked_tiles(self) -> int:
        """How many of the first tiles visited need the mask test."""
        if self.causal:
            return 1 + -(-self.rows // self.keys) if self.rows % self.keys else self.rows // self.keys
        return 1 if self.sequence % self.keys else 0

    @property
    def scale_log2(self) -> float:
        """Factor that turns raw scores into exponents of two."""
        return (self.dim**-0.5 if self.scale is None else self.scale) * math.log2(math.e)


class SharedMap:
    """Byte offsets in dynamic shared memory; tiles start on 1024 bytes, as the 128-byte swizzle wants."""

    def __init__(self, c: Config) -> None:
        self.q_bytes = ROWS * c.dim * 2
        self.kv_bytes = c.keys * c.dim * 2
        self.q = 0
        self.k = self.q + c.consumers * self.q_bytes
        self.v = self.k + c.stages * self.kv_bytes
        at = self.v + c.stages * self.kv_bytes
        self.q_full = at
        self.q_free = self.q_full + 8 * c.consumers
        self.k_full = self.q_free + 8 * c.consumers
        self.k_free = self.k_full + 8 * c.stages
        self.v_full = self.k_free + 8 * c.stages
        self.v_free = self.v_full + 8 * c.stages
        self.size = self.v_free + 8 * c.stages


class Item:
    """Registers of the work item a role is at."""

    def __init__(self, c: Config) -> None:
        self.c = c
        self.number = reg.scalar(u32)
        ptx.inst.mov.u32(self.number, ptx.special.ctaid.x())
        self.step = reg.scalar(u32)
        ptx.inst.mov.u32(self.step, ptx.special.nctaid.x())
        self.head, self.first_row, self.tiles = reg.scalar(u32), reg.scalar(u32), reg.scalar(u32)
        self.more = reg.scalar(pred)

    def locate(self) -> None:
        """Compute head, first query row and number of key tiles; causal items go longest first."""
        c = self.c
        block = reg.scalar(u32)
        if c.causal:
            ptx.inst.div.u32(block, self.number, c.heads)
            ptx.inst.rem.u32(self.head, self.number, c.heads)
            ptx.inst.sub.u32(block, c.blocks - 1, block)
        else:
            ptx.inst.div.u32(self.head, self.number, c.blocks)
            ptx.inst.rem.u32(block, self.number, c.blocks)
        ptx.inst.mul.lo.u32(self.first_row, block, c.rows)
        if c.causal:
            end = reg.scalar(u32)
            ptx.inst.add.u32(end, self.first_row, c.rows)
            ptx.inst.min.u32(end, end, c.sequence)
            ptx.inst.add.u32(end, end, c.keys - 1)
            ptx.inst.div.u32(self.tiles, end, c.keys)
        else:
            ptx.inst.mov.u32(self.tiles, -(-c.sequence // c.keys))

    def advance(self) -> None:
        """Go to the next item; `more` says whether there is one."""
        self.number += self.step
        ptx.inst.setp.lt.u32(self.more, self.number, self.c.items)


def _producer(c: Config, at: SharedMap, base: Any, q: Any, k: Any, v: Any) -> None:
    ring = Ring(c.stages)
    q_phase = reg.scalar(u32, init=1)
    item = Item(c)
    with ptx.loop("producer_items", pred=item.more):
        item.locate()
        for consumer in range(c.consumers):
            full = base + (at.q_full + 8 * consumer)
            ptx.mbarrier.wait(base + (at.q_free + 8 * consumer), q_phase)
            ptx.mbarrier.arrive_expect_tx(full, at.q_bytes)
            row = item.first_row + ROWS * consumer
            for s in range(c.stripes):
                ptx.cp.async_.bulk.tensor_3d(
                    dst=base + (at.q + consumer * at.q_bytes + s * ROWS * 128),
                    src=q.tma_desc(),
                    coord=(s * STRIPE, row, item.head),
                    mbar=full,
                )
        q_phase ^= 1
        row = reg.scalar(u32)
        ptx.inst.mul.lo.u32(row, item.tiles, c.keys)
        more_tiles = reg.scalar(pred)
        with ptx.loop("producer_tiles", pred=more_tiles):
            row += -c.keys & 0xFFFFFFFF
            empty = ring.empty_phase()
            for tensor, offset, full_at, free_at in ((k, at.k, at.k_full, at.k_free), (v, at.v, at.v_full, at.v_free)):
                ptx.mbarrier.wait(ring.barrier(base, free_at), empty)
                full = ring.barrier(base, full_at)
                ptx.mbarrier.arrive_expect_tx(full, at.kv_bytes)
                tile = reg.scalar(u32)
                ptx.inst.mad.lo.u32(tile, ring.stage, at.kv_bytes, base)
                for s in range(c.stripes):
                    ptx.cp.async_.bulk.tensor_3d(
                        dst=tile + (offset + s * c.keys * 128),
                        src=tensor.tma_desc(),
                        coord=(s * STRIPE, row, item.head),
                        mbar=full,
                    )
            ring.advance()
            ptx.inst.setp.ne.u32(more_tiles, row, 0)
        item.advance()


class Consumer:
    """Registers and steps of one consumer warpgroup."""

    def __init__(self, c: Config, at: SharedMap, base: Any, index: Any, thread: Any) -> None:
        self.c, self.at, self.base, self.index = c, at, base, index
        self.dtype = from_name(c.dtype)
        self.scores = reg.array(f32, c.keys // 2)
        self.packed = reg.array(b32, c.keys // 4)
        self.output = reg.array(f32, c.dim // 2)
        self.state = RowState.declare()
        self.ring = Ring(c.stages)
        self.q_phase = reg.scalar(u32, init=0)
        self.thread = thread
        self.lane = reg.scalar(u32)
        ptx.inst.and_.b32(self.lane, thread, 31)
        self.leader = self.lane == 0
        self.q_base = reg.scalar(u32)
        ptx.inst.mad.lo.u32(self.q_base, index, at.q_bytes, base)
        self.column = reg.scalar(u32)
        ptx.inst.and_.b32(self.column, thread, 3)
        ptx.inst.shl.b32(self.column, self.column, 1)
        self.row = reg.scalar(u32)
        """Row of this thread's half 0 among the 64."""
        ptx.inst.shr.u32(self.row, self.lane, 2)
        warp_rows = reg.scalar(u32)
        ptx.inst.and_.b32(warp_rows, thread, 96)
        ptx.inst.shr.u32(warp_rows, warp_rows, 1)
        ptx.inst.add.u32(self.row, self.row, warp_rows)
        self._descriptors()

    def _descriptors(self) -> None:
        swizzle = ptx.wgmma.SWIZZLE_128B
        self.q_descriptor = ptx.wgmma.make_descriptor(
            self.q_base + self.at.q, leading_byte_offset=16, stride_byte_offset=1024, swizzle=swizzle
        )
        self.k_descriptor = ptx.wgmma.make_descriptor(
            self.base + self.at.k, leading_byte_offset=16, stride_byte_offset=1024, swizzle=swizzle
        )
        self.v_descriptor = ptx.wgmma.make_descriptor(
            self.base + self.at.v, leading_byte_offset=self.c.keys * 128, stride_byte_offset=1024, swizzle=swizzle
        )

    def wait(self, offset: int) -> None:
        """Wait until the current stage of a full barrier array is complete."""
        ptx.mbarrier.wait(self.ring.barrier(self.base, offset), self.ring.phase)

    def release(self, barrier: Any) -> None:
        """Give a stage back: one arrival a warp."""
        ptx.mbarrier.arrive(barrier, pred=self.leader)

    def issue_scores(self) -> None:
        """Issue S = Q Kᵀ of the current stage and commit it."""
        c = self.c
        k = reg.scalar(u64)
        ptx.inst.mad.wide.u32(k, self.ring.stage, self.at.kv_bytes >> 4, self.k_descriptor)
        ptx.wgmma.fence()
        for step in range(c.dim // 16):
            stripe, inner = divmod(step, 4)
            ptx.wgmma.mma_async(
                shape=(ROWS, c.keys, 16),
                dtype_d=f32,
                dtype_a=self.dtype,
                dtype_b=self.dtype,
                d=self.scores,
                a=self.q_descriptor + (stripe * (ROWS * 128 >> 4) + 2 * inner),
                b=k + (stripe * (c.keys * 128 >> 4) + 2 * inner),
                scale_d=step > 0,
            )
        ptx.wgmma.commit_group()

    def issue_output(self, v: Any) -> None:
        """Issue O += P V with the V tile whose descriptor is `v` and commit it."""
        c = self.c
        ptx.wgmma.fence()
        for step in range(c.keys // 16):
            ptx.wgmma.mma_async(
                shape=(ROWS, c.dim, 16),
                dtype_d=f32,
                dtype_a=self.dtype,
                dtype_b=self.dtype,
                d=self.output,
                a=self.packed[4 * step : 4 * step + 4],
                b=v + 128 * step,
                scale_d=True,
                trans_b=1,
            )
        ptx.wgmma.commit_group()

    def softmax(self) -> Any:
        """Scores to probabilities; return the predicate that the output must be rescaled, None for always."""
        c = self.c
        return softmax_step(self.scores, self.state, c.scale_log2, emulated=c.emulated, threshold=c.threshold)

    def v_tile(self) -> Any:
        """Descriptor of the current stage's V tile."""
        v = reg.scalar(u64)
        ptx.inst.mad.wide.u32(v, self.ring.stage, self.at.kv_bytes >> 4, self.v_descriptor)
        return v


def _limits(consumer: Consumer, item: Item) -> Any:
    """First key each of the thread's two rows may not see, as two registers."""
    c = consumer.c
    limits = reg.array(u32, 2)
    for half in range(2):
        if c.causal:
            first = reg.scalar(u32)
            ptx.inst.mad.lo.u32(first, consumer.index, ROWS, item.first_row)
            ptx.inst.add.u32(first, first, consumer.row)
            ptx.inst.add.u32(first, first, 8 * half + 1)
            ptx.inst.min.u32(limits[half], first, c.sequence)
        else:
            ptx.inst.mov.u32(limits[half], c.sequence)
    return limits


def _masked(consumer: Consumer, column: Any, limits: Any, tile: Any) -> None:
    """Mask the scores of a tile if it is among the first ones visited; `tile` counts from 0, None at the first."""
    c = consumer.c
    if tile is None:
        if c.masked_tiles:
            mask_scores(consumer.scores, column, limits, consumer.column)
    elif c.masked_tiles > 1:
        with ptx.if_(tile < c.masked_tiles):
            mask_scores(consumer.scores, column, limits, consumer.column)


def _consume_item(me: Consumer, item: Item) -> None:
    """Compute one work item up to the unnormalised output."""
    c, at = me.c, me.at
    me.state.reset()
    for value in me.output:
        ptx.inst.mov.f32(value, 0.0)
    limits = _limits(me, item)
    column, visited = reg.scalar(u32), reg.scalar(u32, init=0)
    ptx.inst.sub.u32(column, item.tiles, 1)
    ptx.inst.mul.lo.u32(column, column, c.keys)

    q_full = reg.scalar(u32)
    ptx.inst.mad.lo.u32(q_full, me.index, 8, me.base)
    ptx.mbarrier.wait(q_full + at.q_full, me.q_phase)
    me.q_phase ^= 1
    me.wait(at.k_full)
    me.issue_scores()
    ptx.wgmma.wait_group(0)
    me.release(me.ring.barrier(me.base, at.k_free))
    _masked(me, column, limits, None)
    me.softmax()
    pack_probabilities(me.packed, me.scores, me.dtype)

    with ptx.if_(item.tiles > 1):
        more = reg.scalar(pred)
        with ptx.loop("consumer_tiles", pred=more):
            visited += 1
            column += -c.keys & 0xFFFFFFFF
            v, v_full, v_free = me.v_tile(), me.ring.barrier(me.base, at.v_full), me.ring.barrier(me.base, at.v_free)
            v_phase = reg.scalar(u32)
            ptx.inst.mov.u32(v_phase, me.ring.phase)
            me.ring.advance()
            me.wait(at.k_full)
            me.issue_scores()
            ptx.mbarrier.wait(v_full, v_phase)
            me.issue_output(v)
            ptx.wgmma.wait_group(1)
            me.release(me.ring.barrier(me.base, at.k_free))
            _masked(me, column, limits, visited)
            needed = me.softmax()
            ptx.wgmma.wait_group(0)
            me.release(v_free)
            rescale(me.output, me.state, needed)
            pack_probabilities(me.packed, me.scores, me.dtype)
            ptx.inst.setp.ne.u32(more, column, 0)

    me.wait(at.v_full)
    me.issue_output(me.v_tile())
    ptx.wgmma.wait_group(0)
    me.release(me.ring.barrier(me.base, at.v_free))
    me.ring.advance()


def _store_item(me: Consumer, item: Item, o: Any, lse: Any) -> None:
    """Normalise, stage the output in the bytes of this consumer's Q, store it by TMA, store the log-sum-exp."""
    c, at = me.c, me.at
    first = reg.scalar(u32)
    ptx.inst.mad.lo.u32(first, me.index, ROWS, item.first_row)
    inverse = reg.array(f32, 2)
    for half in range(2):
        quad_reduce(me.state.total[half], "add")
        ptx.inst.rcp.approx.ftz.f32(inverse[half], me.state.total[half])
        _store_lse(me, item, first, half, lse)
    for i, value in enumerate(me.output):
        ptx.inst.mul.rn.f32(value, value, inverse[(i // 2) % 2])
    me_barrier = me.index + 1
    ptx.bar.sync(me_barrier, 128)  # every warp is past its last read of Q
    row_base, twist = _stage_addresses(me)
    for block in range(0, c.dim // 8, 2):
        stripe, chunk = divmod(block, 8)
        words = reg.array(b32, 4)
        pack_probabilities(words, me.output[4 * block : 4 * block + 8], me.dtype)
        to = reg.scalar(u32)
        ptx.inst.xor.b32(to, twist, chunk * 16)
        ptx.inst.add.u32(to, to, row_base)
        ptx.inst.stmatrix.sync.aligned.m8n8.x4.shared.b16(ptx.addr(to, stripe * ROWS * 128), words)
    ptx.fence.proxy_async_shared_cta()
    ptx.bar.sync(me_barrier, 128)
    with ptx.if_((me.thread & 127) == 0):
        for s in range(c.stripes):
            ptx.cp.async_.bulk.tensor_3d.store(
                dst=o.tma_desc(), src=me.q_base + (at.q + s * ROWS * 128), coord=(s * STRIPE, first, item.head)
            )
        ptx.cp.async_.bulk.commit_group()
        ptx.cp.async_.bulk.wait_group(0, read=True)
        free = reg.scalar(u32)
        ptx.inst.mad.lo.u32(free, me.index, 8, me.base)
        ptx.mbarrier.arrive(free + at.q_free)


def _stage_addresses(me: Consumer) -> tuple[Any, Any]:
    """Address of the row a lane gives to stmatrix, and the swizzled column bits (address bits 4–6 XOR bits 7–9)."""
    row, half, base, twist = reg.scalar(u32), reg.scalar(u32), reg.scalar(u32), reg.scalar(u32)
    ptx.inst.and_.b32(row, me.lane, 15)
    ptx.inst.and_.b32(half, me.thread, 96)
    ptx.inst.shr.u32(half, half, 1)
    ptx.inst.add.u32(base, row, half)
    ptx.inst.mad.lo.u32(base, base, 128, me.q_base)
    ptx.inst.and_.b32(row, me.lane, 7)
    ptx.inst.shr.u32(half, me.lane, 4)
    ptx.inst.xor.b32(twist, row, half)
    ptx.inst.shl.b32(twist, twist, 4)
    return base + me.at.q, twist


def _store_lse(me: Consumer, item: Item, first: Any, half: int, lse: Any) -> None:
    """Store max·scale + ln(total) of one row, by the first lane of its quad, if the row exists."""
    c = me.c
    row = reg.scalar(u32)
    ptx.inst.add.u32(row, first, me.row)
    ptx.inst.add.u32(row, row, 8 * half)
    writes, owner = reg.scalar(pred), reg.scalar(pred)
    ptx.inst.setp.eq.u32(owner, me.column, 0)
    ptx.inst.setp.lt.and_.u32(writes, row, c.sequence, owner)
    value, top = reg.scalar(f32), reg.scalar(f32)
    ptx.inst.lg2.approx.ftz.f32(value, me.state.total[half])
    ptx.inst.mul.rn.f32(top, me.state.maximum[half], c.scale_log2)
    ptx.inst.add.rn.f32(value, value, top)
    ptx.inst.mul.rn.f32(value, value, math.log(2))
    index, to = reg.scalar(u32), reg.scalar(b64)
    ptx.inst.mad.lo.u32(index, item.head, c.sequence, row)
    ptx.inst.mad.wide.u32(to, index, 4, lse)
    ptx.inst.st.global_.f32(ptx.addr(to), value, pred=writes)


def _initialise(c: Config, at: SharedMap, base: Any, thread: Any) -> None:
    """One thread initialises every barrier; the proxy fence and the CTA barrier publish them."""
    with ptx.if_(thread == 0):
        for consumer in range(c.consumers):
            ptx.mbarrier.init(base + (at.q_full + 8 * consumer), 1)
            ptx.mbarrier.init(base + (at.q_free + 8 * consumer), 1)
        for stage in range(c.stages):
            for full, free in ((at.k_full, at.k_free), (at.v_full, at.v_free)):
                ptx.mbarrier.init(base + (full + 8 * stage), 1)
                ptx.mbarrier.init(base + (free + 8 * stage), 4 * c.consumers)
        ptx.fence.proxy_async_shared_cta()
    ptx.bar.sync(0)


def _check(c: Config) -> None:
    if c.dim not in (64, 128):
        raise InputError(f"attention: head dimension {c.dim} is not supported; use 64 or 128")
    if c.dtype not in ("f16", "bf16"):
        raise InputError(f"attention: dtype {c.dtype!r} is not supported; use 'f16' or 'bf16'")
    if c.consumers == 3 and c.dim == 128:
        raise InputError("attention: three consumers at head dimension 128 need more registers than 160 a thread; use 2")
    if c.consumers not in _REGISTERS:
        raise InputError(f"attention: {c.consumers} consumer warpgroups are not supported; use 2 or 3")
    if c.sequence < 1 or c.heads < 1:
        raise InputError(f"attention: heads={c.heads} and sequence={c.sequence} must be at least 1")
    if c.keys % 16 or not 16 <= c.keys <= 256:
        raise InputError(f"attention: {c.keys} keys a tile; wgmma takes multiples of 16 from 16 to 256")


@cache
def build(config: Config) -> Any:
    """Return the kernel for `config`: (q, k, v) → (o, lse).

    q, k, v and o are `[heads, sequence, dim]` of the config's dtype, lse is `[heads, sequence]` f32 (natural logarithm).
    """
    c = config
    _check(c)
    at = SharedMap(c)
    dtype = from_name(c.dtype)
    rows_tile = Tile(c.heads, c.sequence, c.dim, dtype, Layout.TMA_128B, tma_box=(1, ROWS, STRIPE), tma_rank=3)
    keys_tile = Tile(c.heads, c.sequence, c.dim, dtype, Layout.TMA_128B, tma_box=(1, c.keys, STRIPE), tma_rank=3)
    threads = 128 * (c.consumers + 1)
    few, many = _REGISTERS[c.consumers]

    @kernel(
        arch="sm_90a",
        in_specs=(rows_tile, keys_tile, keys_tile),
        out_specs=(rows_tile, Tile(c.heads, c.sequence, f32, Layout.ROW)),
        grid=(min(c.items, c.multiprocessors), 1, 1),
        block=(threads, 1, 1),
        smem=at.size,
        extern_smem=True,
        raw_directives=[("reqntid", (threads, 1, 1)), ("minnctapersm", (1,))],
    )
    def attention_forward(q: Any, k: Any, v: Any, o: Any, lse: Any) -> None:
        base = smem.base()
        thread, group = reg.scalar(u32), reg.scalar(u32)
        ptx.inst.mov.u32(thread, ptx.special.tid.x())
        ptx.inst.shr.u32(group, thread, 7)
        _initialise(c, at, base, thread)
        with ptx.if_(group == 0):
            ptx.setmaxnreg(few, inc=False)
            with ptx.if_(thread == 0), ptx.scope():
                _producer(c, at, base, q, k, v)
        with ptx.else_():
            ptx.setmaxnreg(many, inc=True)
            (lse_address,) = ptx.global_ptrs(lse)
            index = reg.scalar(u32)
            ptx.inst.sub.u32(index, group, 1)
            with ptx.scope():
                me = Consumer(c, at, base, index, thread)
                item = Item(c)
                with ptx.loop("consumer_items", pred=item.more):
                    item.locate()
                    _consume_item(me, item)
                    _store_item(me, item, o, lse_address)
                    item.advance()

    return attention_forward
