"""The thread that loads Q, K and V by TMA: Q0, K0, Q1, V0, K1, V1, K2, …

Of CTAs that share an item each loads its own rows of Q, its half of the rows of K and of the columns of V. All bytes complete
on barriers of the lead, which alone expects them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, final

from warpsmith import ptx, reg
from warpsmith.kernels.attention.blackwell.config import STRIPE, TILE
from warpsmith.kernels.attention.blackwell.item import Item, parity, turn
from warpsmith.kernels.attention.blackwell.peers import is_lead, lead, rank
from warpsmith.types import pred, u32

if TYPE_CHECKING:
    from warpsmith.kernels.attention.blackwell.config import Config, SharedMap

__all__ = ["load"]


@final
class Loader:
    """The thread, and which part of each tile its CTA loads."""

    def __init__(self, c: Config, at: SharedMap, base: Any) -> None:
        self.c, self.at, self.base = c, at, base
        bulk = ptx.cp.async_.bulk
        self.copy = partial(bulk.tensor_2d if c.flat else bulk.tensor_3d, cta_group=c.peers)
        self.lead, self.expects, self.rank = lead(c, base), None, None
        if c.peers > 1:
            self.expects, self.rank = is_lead(), rank()

    def _at(self, column: Any, row: Any, head: Any) -> tuple[Any, ...]:
        """Return the coordinates of a box of the tensor."""
        if not self.c.flat:
            return column, row, head
        first = reg.scalar(u32)
        ptx.inst.mad.lo.u32(first, head, self.c.sequence, row)
        return column, first

    def _own(self, first: Any, size: int) -> Any:
        """Return where the CTA's part begins of rows or columns from `first` on, `size` of them for each CTA."""
        if self.rank is None:
            return first
        own = reg.scalar(u32)
        ptx.inst.mad.lo.u32(own, self.rank, size, first)
        return own

    def queries(self, tensor: Any, stage: int, item: Item) -> None:
        """Load the stage's rows of the item, a stripe of 64 columns behind the other; rows behind the sequence are zero."""
        c, full = self.c, self.at.q_full + 8 * stage
        first = reg.scalar(u32)
        ptx.inst.mad.lo.u32(first, item.block, c.rows, stage * TILE * c.peers)
        first = self._own(first, TILE)
        ptx.mbarrier.arrive_expect_tx(self.base + full, c.peers * c.tile_bytes, pred=self.expects)
        for s in range(c.stripes):
            to = self.base + (stage * c.tile_bytes + s * TILE * 128)
            self.copy(dst=to, src=tensor.tma_desc(), coord=self._at(s * STRIPE, first, item.head), mbar=self.lead + full)

    def _slot(self, item: Item, which: int) -> tuple[Any, Any]:
        """Wait until the slot of tile number item.tile is free; return where it is, and its barrier in the lead."""
        c, at, half = self.c, self.at, item.tile & (self.c.depth - 1)
        barriers, slot = reg.scalar(u32), reg.scalar(u32)
        ptx.inst.mad.lo.u32(barriers, half, 16, self.base)
        ptx.inst.mad.lo.u32(slot, half, 2 * c.slot_bytes, self.base)
        ptx.mbarrier.wait(barriers + (at.kv_free + 8 * which), parity(turn(c, item.tile), 1))
        full = at.kv_full + 8 * which
        ptx.mbarrier.arrive_expect_tx(barriers + full, c.peers * c.slot_bytes, pred=self.expects)
        if self.rank is not None:
            ptx.fence.proxy_async_generic_acquire_shared_cluster()
            barriers = reg.scalar(u32)
            ptx.inst.mad.lo.u32(barriers, half, 16, self.lead)
        return slot + (at.ring + which * c.slot_bytes), barriers + full

    def keys(self, tensor: Any, item: Item, row: Any) -> None:
        """Load the CTA's rows of the tile of keys that begins at `row`."""
        to, full = self._slot(item, 0)
        rows = TILE // self.c.peers
        row = self._own(row, rows)
        for s in range(self.c.stripes):
            place = to + s * rows * 128 if s else to
            self.copy(dst=place, src=tensor.tma_desc(), coord=self._at(s * STRIPE, row, item.head), mbar=full)

    def values(self, tensor: Any, item: Item, row: Any) -> None:
        """Load the CTA's columns of the tile of values that begins at `row`."""
        to, full = self._slot(item, 1)
        wide = self.c.value_bytes // 2
        for s in range(self.c.dim // self.c.peers // wide):
            column = s * wide if self.rank is None else self._own(0, wide)
            place = to + s * TILE * 128 if s else to
            self.copy(dst=place, src=tensor.tma_desc(), coord=self._at(column, row, item.head), mbar=full)

    def end(self, item: Item) -> None:
        """Wait for the last commits, which the lead multicasts: its peer must not end before they have arrived."""
        for _ in range(self.c.depth):
            barriers = reg.scalar(u32)
            ptx.inst.mad.lo.u32(barriers, item.tile & (self.c.depth - 1), 16, self.base)
            for which in (0, 1):
                ptx.mbarrier.wait(barriers + (self.at.kv_free + 8 * which), parity(turn(self.c, item.tile), 1))
            item.tile += 1
        ptx.mbarrier.wait(self.base + self.at.q_free, parity(item.index, 1))


def load(c: Config, at: SharedMap, base: Any, q: Any, k: Any, v: Any) -> None:
    """Load every work item of the CTA."""
    item, me = Item(c), Loader(c, at, base)
    with item.each("load_items"):
        item.locate()
        if c.hands_over:
            ptx.mbarrier.wait(base + at.q_free, parity(item.index, 1))
        row, left, more = reg.scalar(u32, init=0), reg.scalar(u32), reg.scalar(pred)
        me.queries(q, 0, item)
        me.keys(k, item, row)
        for stage in range(1, c.stages):
            me.queries(q, stage, item)
        me.values(v, item, row)
        item.tile += 1
        ptx.inst.sub.u32(left, item.tiles, 1)
        with ptx.if_(left != 0), ptx.loop("load_tiles", pred=more):
            row += TILE
            me.keys(k, item, row)
            me.values(v, item, row)
            item.tile += 1
            left += 0xFFFFFFFF
            ptx.inst.setp.ne.u32(more, left, 0)
        item.advance()
        if c.meets("load"):
            ptx.mbarrier.arrive(base + at.lockstep)
            ptx.mbarrier.wait(base + at.lockstep, parity(item.index, 1))
    if c.peers > 1:
        me.end(item)
