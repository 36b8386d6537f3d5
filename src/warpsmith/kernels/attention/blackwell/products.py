"""The thread that issues every product of the CTA.

S(k) = Q K(k)ᵀ and O += P(k) V(k) of both stages, in the order

    S₀(0) S₁(0)   then for k = 1, 2, …:  O₀(k-1) S₀(k) O₁(k-1) S₁(k)   then O₀ O₁ of the last tile

A commit covers all that was issued before: S(k) full also says that O(k-1) of the stage is complete, so the softmax may
publish the factor for O behind it. Within a stage O(k-1) is issued before S(k), which overwrites P(k-1); products of one
thread read and write tensor memory in the order of issue.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, final

from warpsmith import ptx, reg
from warpsmith.kernels.attention.blackwell.config import TILE
from warpsmith.kernels.attention.blackwell.item import Item, parity, turn
from warpsmith.types import b32, pred, u32, u64

if TYPE_CHECKING:
    from warpsmith.kernels.attention.blackwell.config import Config, SharedMap

__all__ = ["Issuer", "issue"]

T = ptx.tcgen05


@final
class Issuer:
    """Descriptors and instruction descriptors, made once."""

    def __init__(self, c: Config, at: SharedMap, base: Any, tmem: Any) -> None:
        self.c, self.at, self.base, self.tmem = c, at, base, tmem
        self.commit = T.commit if c.peers == 1 else partial(T.commit, cta_group=2, multicast=True, multicast_mask=3)
        rows = TILE * c.peers
        self.scores = T.make_instr_desc("f16", m=rows, n=TILE, a_dtype=c.dtype, d_dtype="f16" if c.half_scores else "f32")
        self.output = T.make_instr_desc_f16bf16_f32(m=rows, n=c.dim, ab_dtype=c.dtype, b_major="MN")
        self.q = T.descriptor(base, stride_bytes=1024)
        self.keys = T.descriptor(base + at.ring, stride_bytes=1024)
        stride, leading = c.value_offsets
        self.values = T.descriptor(
            base + (at.ring + c.slot_bytes), stride_bytes=stride, leading_bytes=leading, swizzle=f"{c.value_bytes}B"
        )
        self.half = reg.scalar(u32)
        self.barriers = reg.scalar(u32)
        self.offset = reg.scalar(u64)

    def at_tile(self, tile: Any) -> None:
        """Point at the half of the ring where tile number `tile` lies."""
        ptx.inst.and_.b32(self.half, tile, self.c.depth - 1)
        ptx.inst.mad.lo.u32(self.barriers, self.half, 16, self.base)
        ptx.inst.mul.wide.u32(self.offset, self.half, self.c.slot_bytes // 8)

    def wait(self, at: int, phase: Any) -> None:
        """Wait for a barrier of the CTA, and order tensor memory behind it."""
        ptx.mbarrier.wait(self.base + at, phase)
        T.fence_after_thread_sync()

    def wait_slot(self, tile: Any, which: int) -> None:
        """Wait for the keys (0) or values (1) of tile number `tile`, where at_tile points."""
        ptx.mbarrier.wait(self.barriers + (self.at.kv_full + 8 * which), parity(turn(self.c, tile)))

    def free_slot(self, which: int) -> None:
        """Give the slot back when all that was issued is complete."""
        self.commit(self.barriers + (self.at.kv_free + 8 * which))

    def issue_scores(self, stage: int) -> None:
        """S = Q Kᵀ of the stage, and its barrier."""
        keys = reg.scalar(u64)
        ptx.inst.add.s64(keys, self.keys, self.offset)
        for step in range(self.c.dim // 16):
            stripe, along = step // 4 * (TILE * 128 // 16), step % 4 * 2
            q = self.q + (stage * (self.c.tile_bytes // 16) + stripe + along)
            k = keys + (stripe // self.c.peers + along)
            d = ptx.addr(self.tmem, stage * TILE)
            T.mma(d, q, k, self.scores, cta_group=self.c.peers, enable_input_d=step > 0)
        self.commit(self.base + (self.at.s_full + 8 * stage))

    def issue_output(self, stage: int, tile: Any, accumulate: Any) -> None:
        """O += P V of the stage, part by part as P arrives."""
        values = reg.scalar(u64)
        ptx.inst.add.s64(values, self.values, self.offset)
        for step in range(TILE // 16):
            part, inside = divmod(16 * step, self.c.part)
            if step == 0:
                ptx.mbarrier.wait(self.base + (self.at.rescaled + 8 * stage), parity(tile, 1))
            if inside == 0:
                self.wait(self.at.p_full + 8 * (self.at.parts * stage + part), parity(tile))
            d, p = ptx.addr(self.tmem, self.c.output + stage * TILE), ptx.addr(self.tmem, stage * TILE + 8 * step)
            flag, v = accumulate if step == 0 else True, values + step * self.c.value_bytes
            T.mma(d, p, v, self.output, cta_group=self.c.peers, a_is_tmem=True, enable_input_d=flag)


def _item(me: Issuer, item: Item) -> None:
    at, more, started = me.at, reg.scalar(pred), reg.scalar(pred)
    k = reg.scalar(u32, init=1)
    me.at_tile(item.tile)
    for stage in range(me.c.stages):
        ptx.mbarrier.wait(me.base + (at.q_full + 8 * stage), parity(item.index))
        if stage == 0:
            me.wait_slot(item.tile, 0)
        me.issue_scores(stage)
    me.free_slot(0)
    ptx.inst.setp.ne.u32(started, k, 1)
    with ptx.if_(item.tiles != 1), ptx.loop("product_tiles", pred=more):
        before = item.tile + 0
        item.tile += 1
        me.at_tile(before)
        me.wait_slot(before, 1)
        me.at_tile(item.tile)
        me.wait_slot(item.tile, 0)
        for stage in range(me.c.stages):
            me.at_tile(before)
            me.issue_output(stage, before, started)
            me.at_tile(item.tile)
            me.issue_scores(stage)
        me.free_slot(0)
        me.at_tile(before)
        me.free_slot(1)
        k += 1
        ptx.inst.setp.ne.u32(started, k, 1)
        ptx.inst.setp.lt.u32(more, k, item.tiles)
    if me.c.hands_over:
        me.commit(me.base + at.q_free)
    me.at_tile(item.tile)
    me.wait_slot(item.tile, 1)
    for stage in range(me.c.stages):
        me.issue_output(stage, item.tile, started)
        me.commit(me.base + (at.o_done + 8 * stage))
    me.free_slot(1)
    item.tile += 1


def issue(c: Config, at: SharedMap, base: Any, tmem: Any) -> None:
    """Issue the products of every work item of the CTA."""
    untyped = reg.scalar(b32)
    ptx.inst.mov.b32(untyped, tmem)
    item, me = Item(c), Issuer(c, at, base, untyped)
    with item.each("product_items"):
        item.locate()
        if c.hands_over and c.epilogue_gate == "mma":
            me.wait(at.output_read, parity(item.index, 1))
        _item(me, item)
        item.advance()
        if c.meets("mma"):
            ptx.mbarrier.arrive(base + at.lockstep)
            ptx.mbarrier.wait(base + at.lockstep, parity(item.index, 1))
