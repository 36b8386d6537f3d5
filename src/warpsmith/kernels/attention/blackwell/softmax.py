"""The softmax warps: a thread owns a row of its stage's S, and writes its P over the first half of it.

A row keeps a basis (minus it: `shift`, in powers of two) and its sum l. The first tile's maximum is the first basis. Of later
tiles either the exponentials come first and the maximum of the probabilities decides, behind them, about the next tile's
basis (stale); or the tile's maximum comes first (fresh). Either way, before P(k) is used,

    alpha = 2^(old basis - new basis), 1 while no probability exceeds 2^threshold
    l = (l + sum of P(k-1)) · alpha,   O = O · alpha

O is rescaled by the correction warps. Where no lane of a warp needs it, the softmax warp reports in their place.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from warpsmith import ptx, reg
from warpsmith.kernels.attention.blackwell.config import TILE
from warpsmith.kernels.attention.blackwell.exponent import Exponent
from warpsmith.kernels.attention.blackwell.item import Item, parity
from warpsmith.kernels.attention.blackwell.peers import arrival, lead, row_of_stage
from warpsmith.types import b32, f32, pred, s32, u32, u64

if TYPE_CHECKING:
    from collections.abc import Generator

    from warpsmith.kernels.attention.blackwell.config import Config, SharedMap

__all__ = ["Row", "moved", "run"]

T = ptx.tcgen05
_HIDDEN = -math.inf
"""Score of a key that may not be seen."""


def moved(alpha: Any) -> Any:
    """Return the predicate, the same in the whole warp: some row's factor is less than 1."""
    mine, some = reg.scalar(pred), reg.scalar(pred)
    ptx.inst.setp.lt.f32(mine, alpha, 1.0)
    ptx.inst.vote.sync.any.pred(some, mine, 0xFFFFFFFF)
    return some


class Row:
    """A softmax thread and what it knows of its row."""

    def __init__(self, c: Config, at: SharedMap, base: Any, tmem: Any, thread: Any) -> None:
        self.c, self.at = c, at
        self.stage, self.lane, warp, self.tmem = (reg.scalar(u32) for _ in range(4))
        ptx.inst.shr.u32(self.stage, thread, 7)
        ptx.inst.and_.b32(self.lane, thread, TILE - 1)
        ptx.inst.and_.b32(self.tmem, thread, 96)
        ptx.inst.shl.b32(self.tmem, self.tmem, 16)
        ptx.inst.mad.lo.u32(self.tmem, self.stage, TILE, self.tmem)
        ptx.inst.add.u32(self.tmem, self.tmem, tmem)
        ptx.inst.shr.u32(warp, thread, 5)
        self.base = base
        issuer = lead(c, base)
        self.warps, self.slot = reg.scalar(u32), reg.scalar(u32)
        self.barriers, self.rescaled, self.parts = base, issuer, issuer
        if c.stages > 1:
            self.barriers, self.parts = reg.scalar(u32), reg.scalar(u32)
            ptx.inst.mad.lo.u32(self.barriers, self.stage, 8, base)
            self.rescaled = self.barriers
            if c.peers > 1:
                self.rescaled = reg.scalar(u32)
                ptx.inst.mad.lo.u32(self.rescaled, self.stage, 8, issuer)
            ptx.inst.mad.lo.u32(self.parts, self.stage, 8 * at.parts, issuer)
        self.row, self.report = row_of_stage(c, self.lane), arrival(c)
        ptx.inst.mad.lo.u32(self.warps, warp, 8, base)
        ptx.inst.mad.lo.u32(self.slot, thread, 4, base)
        self.shift, self.total, self.highest, self.sum, self.alpha = (reg.scalar(f32) for _ in range(5))
        self.limit, self.room, self.k = reg.scalar(s32), reg.scalar(s32), reg.scalar(u32)
        self.labels = count()
        self.hold()

    def hold(self) -> None:
        """Declare the registers that scores and probabilities pass through."""
        self.exponent = Exponent(self.c.scale_log2, self.c.emulated_pairs)
        self.pieces = [reg.array(f32, self.c.piece), reg.array(f32, self.c.piece)]
        self.packed = reg.array(b32, self.c.piece // 2)
        self.pack = ptx.inst.cvt.rn.bf16x2.f32 if self.c.dtype == "bf16" else ptx.inst.cvt.rn.f16x2.f32
        self.column, self.stored, self.full = self.tmem, self.tmem, self.parts
        if self.c.rolled:
            self.column, self.stored, self.full = (reg.scalar(u32) for _ in range(3))

    def begin(self, item: Item) -> None:
        """Start an item: the first key index this row may not see."""
        ptx.inst.mov.u32(self.k, 0)
        ptx.inst.mov.f32(self.total, 0.0)
        ptx.inst.mov.f32(self.sum, 0.0)
        if self.c.causal:
            ptx.inst.mad.lo.s32(self.limit, item.block, self.c.rows, self.row)
            ptx.inst.mad.lo.s32(self.limit, self.stage, TILE * self.c.peers, self.limit)
            ptx.inst.add.s32(self.limit, self.limit, 1)
            ptx.inst.min.s32(self.limit, self.limit, self.c.sequence)
        else:
            ptx.inst.mov.s32(self.limit, self.c.sequence)

    def fetch(self, piece: int, halves: tuple[int, ...] = (0, 1)) -> None:
        """Start loading a piece, or half of it."""
        for half in halves:
            width = self.c.piece // 2
            columns = [self.pieces[piece % 2][width * half + j] for j in range(width)]
            T.ld(columns, ptx.addr(self.column, self.c.piece * piece + width * half))

    def hide(self, piece: int, item: Item) -> None:
        """Replace scores of keys that the row may not see, in the item's last tiles."""
        if not self.c.masked_tiles:
            return
        with ptx.if_(self.masked(item)):
            for j, value in enumerate(self.pieces[piece % 2]):
                hidden = reg.scalar(pred)
                ptx.inst.setp.le.s32(hidden, self.room, self.c.piece * piece + j)
                ptx.inst.selp.f32(value, _HIDDEN, value, hidden)

    def loaded(self) -> None:
        """Wait for what has been loaded, unless the scoreboard of the registers is to do so."""
        if not self.c.scoreboard_loads:
            T.wait_ld()

    def masked(self, item: Item) -> Any:
        """Return whether this is one of the item's last tiles, with keys that some row may not see."""
        last = reg.scalar(pred)
        ptx.inst.setp.ge.u32(last, self.k + self.c.masked_tiles, item.tiles)
        return last

    @contextmanager
    def each_part(self, label: str) -> Generator[range]:
        """Go through the tile: as one part, or in a loop over its parts; yield the pieces of a part."""
        if not self.c.rolled:
            yield range(TILE // self.c.piece)
            return
        more = reg.scalar(pred)
        ptx.inst.mov.u32(self.column, self.tmem)
        with ptx.loop(label, pred=more):
            yield range(self.c.part // self.c.piece)
            self.column += self.c.part
            self.room += -self.c.part
            ptx.inst.setp.lt.u32(more, self.column, self.tmem + TILE)
        self.room += TILE

    def maximum(self, item: Item) -> Any:
        """Return the largest raw score of the tile."""
        found = [reg.scalar(f32, -math.inf) for _ in range(4)]
        with self.each_part(f"softmax_maximum_{next(self.labels)}") as pieces:
            for piece in pieces:
                self.fetch(piece)
                self.loaded()
                self.hide(piece, item)
                for j, value in enumerate(self.pieces[piece % 2]):
                    ptx.inst.max.f32(found[j % 4], found[j % 4], value)
        for other in found[1:]:
            ptx.inst.max.f32(found[0], found[0], other)
        return found[0]

    def probe(self) -> None:
        """Read what the epilogue of the item before has written."""
        place, read = reg.scalar(u32), reg.scalar(b32)
        ptx.inst.mad.lo.u32(place, self.lane, 4, self.base)
        ptx.inst.ld.shared.b32(read, ptx.addr(place, self.at.probe))

    def start(self, item: Item) -> None:
        """Take the first tile's maximum as basis."""
        ptx.inst.mul.rn.f32(self.shift, self.maximum(item), -self.c.scale_log2)

    def decide(self, item: Item) -> None:
        """Move the basis if a probability exceeds the threshold, else leave it; alpha and the sum follow."""
        rise, needed, factor = reg.scalar(f32), reg.scalar(pred), reg.scalar(f32)
        if self.c.fresh:
            ptx.inst.fma.rn.f32(rise, self.maximum(item), self.c.scale_log2, self.shift)
        else:
            ptx.inst.lg2.approx.f32(rise, self.highest)
        ptx.inst.setp.gt.f32(needed, rise, self.c.rescale_threshold)
        ptx.inst.selp.f32(rise, rise, 0.0, needed)
        ptx.inst.sub.rn.f32(self.shift, self.shift, rise)
        ptx.inst.neg.f32(factor, rise)
        ptx.inst.ex2.approx.ftz.f32(self.alpha, factor)
        self.fold()
        ptx.inst.mul.rn.f32(self.total, self.total, self.alpha)

    def fold(self) -> None:
        """Add the sum of the tile before to the row's."""
        ptx.inst.add.rn.f32(self.total, self.total, self.sum)

    def publish(self, value: Any, count: Any) -> None:
        """Give the correction warp publication number `count`, once it has taken the one before."""
        ptx.mbarrier.wait(self.warps + self.at.statistics_free, parity(count, 1))
        ptx.inst.st.shared.f32(ptx.addr(self.slot, self.at.statistics), value)
        ptx.mbarrier.arrive(self.warps + self.at.statistics_full)

    def exponentials(self, item: Item) -> None:
        """P of the tile in parts, each reported; sum and maximum of the row."""
        sums, tops = [reg.scalar(f32, 0.0) for _ in range(4)], [reg.scalar(f32, 0.0) for _ in range(4)]
        if self.c.rolled:
            ptx.inst.mov.u32(self.full, self.parts)
            ptx.inst.mov.u32(self.stored, self.tmem)
        with self.each_part(f"softmax_parts_{next(self.labels)}") as pieces:
            self.fetch(0)
            for piece in pieces:
                self._piece(piece, pieces, sums, tops, item)
            if self.c.rolled:
                self.full += 8
                self.stored += self.c.part // 2
        for total, four, how in ((self.sum, sums, ptx.inst.add.rn.f32), (self.highest, tops, ptx.inst.max.f32)):
            how(four[0], four[0], four[1])
            how(four[2], four[2], four[3])
            how(total, four[0], four[2])

    def _piece(self, piece: int, pieces: range, sums: list[Any], tops: list[Any], item: Item) -> None:
        self.loaded()
        done = (piece + 1) * self.c.piece
        if piece + 1 in pieces:
            self.fetch(piece + 1, (0,))  # the other half when this piece has left its registers
        self.hide(piece, item)
        values = self.pieces[piece % 2]
        self.exponent.apply(values, self.shift, (done - self.c.piece) % 32 // 2)
        for j, value in enumerate(values):
            ptx.inst.add.rn.f32(sums[j % 4], sums[j % 4], value)
            if not self.c.fresh:
                ptx.inst.max.f32(tops[j % 4], tops[j % 4], value)
        for j in range(self.c.piece // 2):
            self.pack(self.packed[j], values[2 * j + 1], values[2 * j])
        T.st(ptx.addr(self.stored, (done - self.c.piece) // 2), self.packed)
        if piece + 1 in pieces:
            self.fetch(piece + 1, (1,))
        if done % self.c.part == 0:
            self.publish_p((done // self.c.part - 1,))

    def publish_p(self, parts: tuple[int, ...]) -> None:
        """Report parts of P, by their numbers behind `full`."""
        if self.c.scoreboard_loads and (self.c.rolled or parts[-1] == self.at.parts - 1):
            T.wait_ld()  # the products overwrite S when all of P has been reported and used
        T.wait_st()
        T.fence_before_thread_sync()
        for part in parts:
            self.report(ptx.addr(self.full, self.at.p_full + 8 * part))

    def tile(self, item: Item, *, first: bool) -> None:
        """One key tile."""
        ptx.mbarrier.wait(self.barriers + self.at.s_full, parity(item.tile))
        T.fence_after_thread_sync()
        if self.c.masked_tiles:
            ptx.inst.mad.lo.s32(self.room, self.k, -TILE, self.limit)
        if first and self.c.order_probe:
            self.probe()
        if first:
            self.start(item)
        else:
            self.decide(item)
            some = moved(self.alpha)
            self.report(ptx.addr(self.rescaled, self.at.rescaled), pred=~some)
            self.publish(self.alpha, item.tile + 0xFFFFFFFF)
        self.exponentials(item)

    def store_lse(self, item: Item, lse: Any) -> None:
        """Store ln(sum of e^score) of the row, whose sum is complete: (log2(total) + basis) · ln 2."""
        value, row, inside = reg.scalar(f32), reg.scalar(u32), reg.scalar(pred)
        place, address, lane, stage = reg.scalar(u32), reg.scalar(u64), reg.scalar(u32), reg.scalar(u32)
        ptx.inst.lg2.approx.ftz.f32(value, self.total)
        ptx.inst.sub.rn.f32(value, value, self.shift)
        ptx.inst.mul.rn.f32(value, value, math.log(2))
        ptx.inst.and_.b32(lane, ptx.special.tid.x(), TILE - 1)
        ptx.inst.shr.u32(stage, ptx.special.tid.x(), 7)
        ptx.inst.mad.lo.u32(row, item.block, self.c.rows, row_of_stage(self.c, lane))
        ptx.inst.mad.lo.u32(row, stage, TILE * self.c.peers, row)
        ptx.inst.setp.lt.u32(inside, row, self.c.sequence)
        ptx.inst.mad.lo.u32(place, item.head, self.c.sequence, row)
        (output,) = ptx.global_ptrs(lse)
        ptx.inst.mad.wide.u32(address, place, 4, output)
        ptx.inst.st.global_.f32(ptx.addr(address), value, pred=inside)


def run(row: Row, lse: Any) -> None:
    """Compute P of every work item of the CTA; `lse` is the tensor of the log-sum-exp, or None."""
    c, at, base = row.c, row.at, row.base
    item, more = Item(c), reg.scalar(pred)
    with item.each("softmax_items"):
        item.locate()
        row.begin(item)
        if c.hands_over and c.epilogue_gate == "softmax":
            ptx.mbarrier.wait(base + at.output_read, parity(item.index, 1))
        row.tile(item, first=True)
        with ptx.if_(item.tiles != 1), ptx.loop("softmax_tiles", pred=more):
            row.k += 1
            item.tile += 1
            row.tile(item, first=False)
            ptx.inst.setp.lt.u32(more, row.k + 1, item.tiles)
        row.fold()
        row.publish(row.total, item.tile)
        if lse is not None:
            row.store_lse(item, lse)
        item.tile += 1
        item.advance()
        if c.meets("softmax"):
            ptx.mbarrier.arrive(base + at.lockstep)
            ptx.mbarrier.wait(base + at.lockstep, parity(item.index, 1))
