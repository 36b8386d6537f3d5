"""The thread that loads Q, K and V by TMA: Q0, K0, Q1, V0, K1, V1, K2, …"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith import ptx, reg
from warpsmith.kernels.attention.blackwell.config import STRIPE, TILE
from warpsmith.kernels.attention.blackwell.item import Item, parity, turn
from warpsmith.types import pred, u32

if TYPE_CHECKING:
    from warpsmith.kernels.attention.blackwell.config import Config, SharedMap

__all__ = ["load"]


def _tile(c: Config, tensor: Any, to: Any, row: Any, head: Any, full: Any) -> None:
    """Load 128 rows, a stripe of 64 columns behind the other; rows behind the sequence are zero."""
    ptx.mbarrier.arrive_expect_tx(full, c.tile_bytes)
    for s in range(c.stripes):
        ptx.cp.async_.bulk.tensor_3d(
            dst=to + s * TILE * 128 if s else to, src=tensor.tma_desc(), coord=(s * STRIPE, row, head), mbar=full
        )


def _ring(c: Config, at: SharedMap, base: Any, item: Item, tensor: Any, row: Any, which: int) -> None:
    """Load the tile of keys (`which` 0) or values (1) that item.tile counts into its slot, once that is free."""
    half = item.tile & (c.depth - 1)
    barriers, slot = reg.scalar(u32), reg.scalar(u32)
    ptx.inst.mad.lo.u32(barriers, half, 16, base)
    ptx.inst.mad.lo.u32(slot, half, 2 * c.tile_bytes, base)
    ptx.mbarrier.wait(barriers + (at.kv_free + 8 * which), parity(turn(c, item.tile), 1))
    _tile(c, tensor, slot + (at.ring + which * c.tile_bytes), row, item.head, barriers + (at.kv_full + 8 * which))


def load(c: Config, at: SharedMap, base: Any, q: Any, k: Any, v: Any) -> None:
    """Load every work item of the CTA."""
    item = Item(c)
    with ptx.loop("load_items", pred=item.more):
        item.locate()
        ptx.mbarrier.wait(base + at.q_free, parity(item.index, 1))
        first = reg.scalar(u32)
        ptx.inst.mul.lo.u32(first, item.block, c.rows)
        row, left, more = reg.scalar(u32, init=0), reg.scalar(u32), reg.scalar(pred)
        _tile(c, q, base, first, item.head, base + at.q_full)
        _ring(c, at, base, item, k, row, 0)
        for stage in range(1, c.stages):
            _tile(c, q, base + stage * c.tile_bytes, first + stage * TILE, item.head, base + (at.q_full + 8 * stage))
        _ring(c, at, base, item, v, row, 1)
        item.tile += 1
        ptx.inst.sub.u32(left, item.tiles, 1)
        with ptx.if_(left != 0), ptx.loop("load_tiles", pred=more):
            row += TILE
            _ring(c, at, base, item, k, row, 0)
            _ring(c, at, base, item, v, row, 1)
            item.tile += 1
            left += 0xFFFFFFFF
            ptx.inst.setp.ne.u32(more, left, 0)
        item.advance()
        if c.lockstep:
            ptx.mbarrier.arrive(base + at.lockstep)
            ptx.mbarrier.wait(base + at.lockstep, parity(item.index, 1))
