"""The epilogue of the Hopper kernel: normalise, stage, store by TMA; store the log-sum-exp."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from warpsmith import ptx, reg
from warpsmith.kernels.attention.hopper_config import ROWS, STRIPE
from warpsmith.kernels.attention.softmax import pack_probabilities, quad_reduce
from warpsmith.types import b32, b64, f32, pred, u32

if TYPE_CHECKING:
    from warpsmith.kernels.attention.hopper_consumer import Consumer
    from warpsmith.kernels.attention.hopper_item import Item

__all__ = ["finish_stores", "store_item"]


def store_item(me: Consumer, item: Item, o: Any, lse: Any) -> None:
    """Normalise, stage the output in shared memory (this consumer's Q, or bytes of its own), store it by TMA; store the LSE."""
    c, at = me.c, me.at
    first = item.output_row(me.index)
    inverse = reg.array(f32, 2)
    for half in range(2):
        quad_reduce(me.state.total[half], "add")
        ptx.inst.rcp.approx.ftz.f32(inverse[half], me.state.total[half])
        if me.value_scale is not None:
            ptx.inst.mul.rn.f32(inverse[half], inverse[half], me.value_scale)
        if item.blind:
            nothing = reg.scalar(pred)
            ptx.inst.setp.eq.f32(nothing, me.state.total[half], 0.0)
            ptx.inst.selp.f32(inverse[half], 0.0, inverse[half], nothing)
        _store_lse(me, item, first, half, lse)
    for i, value in enumerate(me.output):
        ptx.inst.mul.rn.f32(value, value, inverse[(i // 2) % 2])
    me_barrier = me.index + 1
    leader = (me.thread & 127) == 0
    if c.staged:
        ptx.cp.async_.bulk.wait_group(0, read=True, pred=leader)
    # every warp is past its last read of Q, or the last output has been read
    ptx.bar.sync(me_barrier, 128)
    row_base, twist = _stage_addresses(me)
    for block in range(0, c.width // 8, 2):
        stripe, chunk = divmod(block, 8)
        words = reg.array(b32, 4)
        pack_probabilities(words, me.output[4 * block : 4 * block + 8], me.output_dtype)
        to = reg.scalar(u32)
        ptx.inst.xor.b32(to, twist, chunk * 16)
        ptx.inst.add.u32(to, to, row_base)
        ptx.inst.stmatrix.sync.aligned.m8n8.x4.shared.b16(ptx.addr(to, stripe * ROWS * 128), words)
    ptx.fence.proxy_async_shared_cta()
    ptx.bar.sync(me_barrier, 128)
    item.store_part(me, first)
    with ptx.if_(leader):
        with item.whole(first):
            place = item.output_place(first)
            for s in range(c.output_stripes):
                ptx.cp.async_.bulk.tensor_3d.store(
                    dst=o.tma_desc(), src=me.o_base + (at.o + s * ROWS * 128), coord=item.query_place(s * STRIPE, place)
                )
        ptx.cp.async_.bulk.commit_group()
        if not c.staged:
            ptx.cp.async_.bulk.wait_group(0, read=True)
            free = reg.scalar(u32)
            ptx.inst.mad.lo.u32(free, me.index, 8, me.base)
            ptx.mbarrier.arrive(free + at.q_free)


def finish_stores(me: Consumer) -> None:
    """Wait for the last store before the CTA's shared memory goes."""
    if me.c.staged:
        ptx.cp.async_.bulk.wait_group(0, pred=(me.thread & 127) == 0)


def _stage_addresses(me: Consumer) -> tuple[Any, Any]:
    """Address of the row a lane gives to stmatrix, and the swizzled column bits (address bits 4–6 XOR bits 7–9)."""
    row, half, base, twist = reg.scalar(u32), reg.scalar(u32), reg.scalar(u32), reg.scalar(u32)
    ptx.inst.and_.b32(row, me.lane, 15)
    ptx.inst.and_.b32(half, me.thread, 96)
    ptx.inst.shr.u32(half, half, 1)
    ptx.inst.add.u32(base, row, half)
    ptx.inst.mad.lo.u32(base, base, 128, me.o_base)
    ptx.inst.and_.b32(row, me.lane, 7)
    ptx.inst.shr.u32(half, me.lane, 4)
    ptx.inst.xor.b32(twist, row, half)
    ptx.inst.shl.b32(twist, twist, 4)
    return base + me.at.o, twist


def _store_lse(me: Consumer, item: Item, first: Any, half: int, lse: Any) -> None:
    """Store max·scale + ln(total) of one row, by the first lane of its quad, if the row exists."""
    c = me.c
    row = reg.scalar(u32)
    ptx.inst.add.u32(row, first, me.row)
    ptx.inst.add.u32(row, row, 8 * half)
    writes, owner = reg.scalar(pred), reg.scalar(pred)
    ptx.inst.setp.eq.u32(owner, me.column, 0)
    ptx.inst.setp.lt.and_.u32(writes, row, item.row_count, owner)
    value, top = reg.scalar(f32), reg.scalar(f32)
    ptx.inst.lg2.approx.ftz.f32(value, me.state.total[half])
    ptx.inst.mul.rn.f32(top, me.state.maximum[half], me.scale)
    if c.offset:
        ptx.inst.sub.rn.f32(value, value, c.offset)
    ptx.inst.add.rn.f32(value, value, top)
    ptx.inst.mul.rn.f32(value, value, math.log(2))
    index, to = reg.scalar(u32), reg.scalar(b64)
    item.write_lse_index(index, row)
    ptx.inst.mad.wide.u32(to, index, 4, lse)
    ptx.inst.st.global_.f32(ptx.addr(to), value, pred=writes)
