"""The correction warps: rescale O where a row's basis moved, then divide by the sums and store, both stages in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from warpsmith import ptx, reg
from warpsmith.kernels.attention.blackwell.config import TILE
from warpsmith.kernels.attention.blackwell.item import Item, parity
from warpsmith.kernels.attention.blackwell.peers import arrival, lead, row_of_stage
from warpsmith.kernels.attention.blackwell.softmax import moved
from warpsmith.types import b32, f32, pred, u32, u64

if TYPE_CHECKING:
    from warpsmith.kernels.attention.blackwell.config import Config, SharedMap

__all__ = ["correct"]

T = ptx.tcgen05


@final
class Row:
    """A correction thread: the same row of both stages."""

    def __init__(self, c: Config, at: SharedMap, base: Any, tmem: Any, thread: Any) -> None:
        self.c, self.at, self.base = c, at, base
        self.lane, self.tmem, self.warp, self.slot = (reg.scalar(u32) for _ in range(4))
        ptx.inst.and_.b32(self.lane, thread, TILE - 1)
        ptx.inst.and_.b32(self.tmem, thread, 96)
        ptx.inst.shl.b32(self.tmem, self.tmem, 16)
        ptx.inst.add.u32(self.tmem, self.tmem, tmem)
        ptx.inst.shr.u32(self.warp, self.lane, 5)
        ptx.inst.mad.lo.u32(self.warp, self.warp, 8, base)
        ptx.inst.mad.lo.u32(self.slot, self.lane, 4, base)
        self.lead, self.row, self.report = lead(c, base), row_of_stage(c, self.lane), arrival(c)
        self.values = reg.array(f32, c.piece)
        self.packed = reg.array(b32, c.piece // 2)

    def take(self, stage: int, count: Any) -> Any:
        """Return publication number `count` of the stage, and let the next one come."""
        value = reg.scalar(f32)
        ptx.mbarrier.wait(self.warp + (self.at.statistics_full + 32 * stage), parity(count))
        ptx.inst.ld.shared.f32(value, ptx.addr(self.slot, self.at.statistics + 4 * TILE * stage))
        ptx.mbarrier.arrive(self.warp + (self.at.statistics_free + 32 * stage))
        return value

    def piece(self, stage: int, number: int) -> Any:
        """Return the address of a piece of O."""
        return ptx.addr(self.tmem, self.c.output + TILE * stage + self.c.piece * number)

    def rescale(self, stage: int, alpha: Any) -> None:
        """Multiply the warp's rows of O where one of them needs it. S full of this tile has said that O is complete."""
        with ptx.if_(moved(alpha)):
            T.fence_after_thread_sync()
            for number in range(self.c.dim // self.c.piece):
                T.ld(self.values, self.piece(stage, number))
                T.wait_ld()
                for value in self.values:
                    ptx.inst.mul.rn.f32(value, value, alpha)
                T.st(self.piece(stage, number), self.values)
            T.wait_st()
            T.fence_before_thread_sync()
            self.report(ptx.addr(self.lead, self.at.rescaled + 8 * stage))

    def finish(self, stage: int, item: Item, output: Any) -> None:
        """O / l of a stage to global memory; the next item may begin once the last of it has been read."""
        total, inverse = self.take(stage, item.tile), reg.scalar(f32)
        ptx.inst.rcp.approx.f32(inverse, total)
        ptx.mbarrier.wait(self.base + (self.at.o_done + 8 * stage), parity(item.index))
        T.fence_after_thread_sync()
        row, place, address, inside = reg.scalar(u32), reg.scalar(u32), reg.scalar(u64), reg.scalar(pred)
        ptx.inst.mad.lo.u32(row, item.block, self.c.rows, self.row)
        ptx.inst.add.u32(row, row, TILE * self.c.peers * stage)
        ptx.inst.setp.lt.u32(inside, row, self.c.sequence)
        ptx.inst.mad.lo.u32(place, item.head, self.c.sequence, row)
        ptx.inst.mad.wide.u32(address, place, 2 * self.c.dim, output)
        pieces = self.c.dim // self.c.piece
        for number in range(pieces):
            T.ld(self.values, self.piece(stage, number))
            T.wait_ld()
            if number == pieces - 1 and stage == self.c.stages - 1 and self.c.order_probe:
                ptx.inst.st.shared.b32(ptx.addr(self.slot, self.at.probe), item.number)
            if number == pieces - 1 and self.c.hands_over:
                T.fence_before_thread_sync()
                self.report(ptx.addr(self.lead, self.at.rescaled + 8 * stage))
                if stage == self.c.stages - 1:
                    if self.c.epilogue_gate == "mma":
                        self.report(ptx.addr(self.lead, self.at.output_read))
                    else:
                        ptx.mbarrier.arrive(self.base + self.at.output_read)
            self._store(inverse, address, 2 * self.c.piece * number, inside)

    def _store(self, inverse: Any, address: Any, offset: int, inside: Any) -> None:
        for value in () if self.c.no_exponentials else self.values:
            ptx.inst.mul.rn.f32(value, value, inverse)
        pack = ptx.inst.cvt.rn.bf16x2.f32 if self.c.dtype == "bf16" else ptx.inst.cvt.rn.f16x2.f32
        for j in range(self.c.piece // 2):
            pack(self.packed[j], self.values[2 * j + 1], self.values[2 * j])
        for four in range(self.c.piece // 8):
            words = [self.packed[4 * four + i] for i in range(4)]
            ptx.inst.st.global_.v4.b32(ptx.addr(address, offset + 16 * four), words, pred=inside)


def correct(c: Config, at: SharedMap, base: Any, tmem: Any, thread: Any, output: Any) -> None:
    """Rescale and store every work item of the CTA; `output` is its global address."""
    row, item, left, more = Row(c, at, base, tmem, thread), Item(c), reg.scalar(u32), reg.scalar(pred)
    with item.each("correction_items"):
        item.locate()
        ptx.inst.sub.u32(left, item.tiles, 1)
        with ptx.if_(left != 0), ptx.loop("correction_tiles", pred=more):
            for stage in range(c.stages):
                row.rescale(stage, row.take(stage, item.tile))
            item.tile += 1
            left += 0xFFFFFFFF
            ptx.inst.setp.ne.u32(more, left, 0)
        if c.meets("corr"):
            ptx.mbarrier.arrive(base + at.lockstep)
            ptx.mbarrier.wait(base + at.lockstep, parity(item.index))
        for stage in range(c.stages):
            row.finish(stage, item, output)
        item.tile += 1
        item.advance()
