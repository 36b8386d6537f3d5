"""A consumer warpgroup of the Hopper kernel: its registers, descriptors and products."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from warpsmith import ptx, reg
from warpsmith.kernels.attention.hopper_config import ROWS
from warpsmith.kernels.attention.softmax import RowState, column_of, pack_probabilities, softmax_step
from warpsmith.kernels.ring import Ring
from warpsmith.types import b32, f32, from_name, pred, u32, u64

if TYPE_CHECKING:
    from warpsmith.kernels.attention.hopper_config import Config, SharedMap
    from warpsmith.kernels.attention.hopper_item import Item

__all__ = ["Consumer", "row_descriptor"]

_TURN = 8
"""Named barrier of the first consumer's turn; the next ones follow. 1 to 4 belong to the epilogues."""


_SWIZZLES = {128: ptx.wgmma.SWIZZLE_128B, 64: ptx.wgmma.SWIZZLE_64B}


def row_descriptor(address: Any, span: int) -> Any:
    """Return the descriptor of an operand whose rows of `span` swizzled bytes lie one behind the other, K-major."""
    return ptx.wgmma.make_descriptor(address, leading_byte_offset=16, stride_byte_offset=8 * span, swizzle=_SWIZZLES[span])


class Consumer:
    """Registers and steps of one consumer warpgroup."""

    def __init__(self, c: Config, at: SharedMap, base: Any, index: Any, thread: Any) -> None:
        self.c, self.at, self.base, self.index = c, at, base, index
        self.dtype, self.output_dtype = from_name(c.dtype), from_name(c.output_dtype)
        self.scale: Any = c.exponent_scale
        """Factor that turns what the softmax sees into exponents of two."""
        self.value_scale: Any = None
        """Factor of the output, if it has one."""
        self.key_of = column_of
        """Key in the tile of the first lane's score i."""
        self.scores = reg.array(f32, c.keys // 2)
        self.packed = reg.array(b32, c.keys * c.element // 8)
        self.output = reg.array(f32, c.width // 2)
        self.state = RowState.declare()
        self.k_ring, self.v_ring = Ring(c.k_stages), Ring(c.v_stages)
        self.q_phase = reg.scalar(u32, init=0)
        self.thread = thread
        self.lane = reg.scalar(u32)
        ptx.inst.and_.b32(self.lane, thread, 31)
        self.leader = self.lane == 0
        self.q_base = reg.scalar(u32)
        ptx.inst.mad.lo.u32(self.q_base, index, at.q_bytes, base)
        self.o_base = self.q_base
        """What `at.o` counts from."""
        if at.o_bytes != at.q_bytes:
            self.o_base = reg.scalar(u32)
            ptx.inst.mad.lo.u32(self.o_base, index, at.o_bytes, base)
        self.column = reg.scalar(u32)
        ptx.inst.and_.b32(self.column, thread, 3)
        ptx.inst.shl.b32(self.column, self.column, 1)
        self.key_column = self.column
        """By how much the keys of this lane's scores are further than the first lane's."""
        self.row = reg.scalar(u32)
        """Row of this thread's half 0 among the 64."""
        ptx.inst.shr.u32(self.row, self.lane, 2)
        warp_rows = reg.scalar(u32)
        ptx.inst.and_.b32(warp_rows, thread, 96)
        ptx.inst.shr.u32(warp_rows, warp_rows, 1)
        ptx.inst.add.u32(self.row, self.row, warp_rows)
        self._descriptors()

    def _descriptors(self) -> None:
        self.q_descriptor = row_descriptor(self.q_base + self.at.q, self.c.span)
        self.k_descriptor = row_descriptor(self.base + self.at.k, self.c.span)
        self.v_descriptor = ptx.wgmma.make_descriptor(
            self.base + self.at.v,
            leading_byte_offset=self.c.keys * 128,
            stride_byte_offset=1024,
            swizzle=ptx.wgmma.SWIZZLE_128B,
        )

    def first_turn(self) -> None:
        """Let the first consumer begin, where consumers take turns."""
        if self.c.ordered:
            ptx.inst.bar.arrive(_TURN, 256, pred=self.index == 0)

    def last_turn(self) -> None:
        """Take the turn nobody uses: a named barrier must not be left half full."""
        if self.c.ordered:
            ptx.inst.bar.sync(_TURN, 256, pred=self.index == 0)

    def take_turn(self) -> None:
        """Wait until the consumer before this one has issued its products."""
        if self.c.ordered:
            ptx.bar.sync(self.index + _TURN, 256)

    def give_turn(self) -> None:
        """Let the next consumer issue its products."""
        if not self.c.ordered:
            return
        following, last = reg.scalar(u32), reg.scalar(pred)
        ptx.inst.setp.eq.u32(last, self.index, self.c.consumers - 1)
        ptx.inst.add.u32(following, self.index, _TURN + 1)
        ptx.inst.selp.b32(following, _TURN, following, last)
        ptx.inst.bar.arrive(following, 256)

    def await_queries(self) -> None:
        """Wait for this item's Q."""
        full = reg.scalar(u32)
        ptx.inst.mad.lo.u32(full, self.index, 8, self.base)
        ptx.mbarrier.wait(full + self.at.q_full, self.q_phase)
        self.q_phase ^= 1

    def release_queries(self) -> None:
        """Give Q back after the last Q Kᵀ, unless the output is staged in its bytes."""
        if self.c.staged:
            free = reg.scalar(u32)
            ptx.inst.mad.lo.u32(free, self.index, 8, self.base)
            self.release(free + self.at.q_free)

    def begin_item(self, item: Item) -> None:
        """Reset the row state and the output."""
        del item
        self.state.reset()
        for value in self.output:
            ptx.inst.mov.f32(value, 0.0)

    def release(self, barrier: Any) -> None:
        """Give a stage back: one arrival a warp."""
        ptx.mbarrier.arrive(barrier, pred=self.leader)

    def _next_tile(self, ring: Ring, full: int, free: int, size: int, descriptor: Any) -> tuple[Any, Any]:
        """Wait for the ring's next tile of `size` bytes and step on; return its descriptor and the barrier that frees it."""
        ptx.mbarrier.wait(ring.barrier(self.base, full), ring.phase)
        back = ring.barrier(self.base, free)
        tile = reg.scalar(u64)
        ptx.inst.mad.wide.u32(tile, ring.stage, size >> 4, descriptor)
        ring.advance()
        return tile, back

    def issue_scores(self, scores: Any) -> Any:
        """Wait for the next K tile, issue S = Q Kᵀ and commit it; return the barrier that gives the tile back."""
        c = self.c
        k, free = self._next_tile(self.k_ring, self.at.k_full, self.at.k_free, self.at.k_bytes, self.k_descriptor)
        ptx.wgmma.fence()
        for step in range(-(-c.dim // c.step)):
            stripe, inner = divmod(step, c.span // 32)
            ptx.wgmma.mma_async(
                shape=(ROWS, c.keys, c.step),
                dtype_d=f32,
                dtype_a=self.dtype,
                dtype_b=self.dtype,
                d=scores,
                a=self.q_descriptor + (stripe * (ROWS * c.span >> 4) + 2 * inner),
                b=k + (stripe * (c.keys * c.span >> 4) + 2 * inner),
                scale_d=step > 0,
            )
        ptx.wgmma.commit_group()
        return free

    def issue_output(self) -> Any:
        """Wait for the next V tile, issue O += P V and commit it; return the barrier that gives the tile back."""
        c = self.c
        v, free = self._next_tile(self.v_ring, self.at.v_full, self.at.v_free, self.at.v_bytes, self.v_descriptor)
        ptx.wgmma.fence()
        for step in range(c.keys // 16):
            ptx.wgmma.mma_async(
                shape=(ROWS, c.width, 16),
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
        return free

    def skip_tile(self) -> None:
        """Wait for the next tiles of K and V and give them back unread.

        Waiting keeps the arrivals of one stage in the order of its uses.
        """
        _, k_free = self._next_tile(self.k_ring, self.at.k_full, self.at.k_free, self.at.k_bytes, self.k_descriptor)
        self.release(k_free)
        _, v_free = self._next_tile(self.v_ring, self.at.v_full, self.at.v_free, self.at.v_bytes, self.v_descriptor)
        self.release(v_free)
        self.take_turn()
        self.give_turn()

    def cap(self, scores: Any) -> None:
        """Bend the scores by the soft cap: afterwards they are in units of it, from -1 to 1."""
        c = self.c
        if not c.soft_cap:
            return
        factor = self.cap_factor()
        for value in scores:
            ptx.inst.mul.rn.f32(value, value, factor)
            ptx.inst.tanh.approx.f32(value, value)

    def cap_factor(self) -> Any:
        """Return the factor that turns raw scores into units of the soft cap."""
        return self.c.scale_log2 / math.log2(math.e) / self.c.soft_cap

    def softmax(self, scores: Any) -> Any:
        """Scores to probabilities; return the predicate that the output must be rescaled, None for always."""
        c = self.c
        return softmax_step(scores, self.state, self.scale, emulated=c.emulated, threshold=c.threshold, offset=c.offset)

    def pack(self, scores: Any) -> None:
        """Round the probabilities into the A operand of the next P V."""
        pack_probabilities(self.packed, scores, self.dtype)
