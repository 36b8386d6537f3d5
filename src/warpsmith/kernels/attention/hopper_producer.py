"""The producer thread of the Hopper kernel: Q, K and V by TMA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith import ptx, reg
from warpsmith.kernels.attention.hopper_config import ROWS
from warpsmith.kernels.ring import Ring
from warpsmith.types import pred, u32

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.kernels.attention.hopper_config import Config, SharedMap
    from warpsmith.kernels.attention.hopper_item import Item

__all__ = ["producer"]


def _load(c: Config, base: Any, ring: Ring, tensor: Any, offsets: tuple[int, int, int, int], item: Item, row: Any) -> None:
    """Load one tile of keys or values into the ring's stage once it is free, and go to the next stage."""
    tiles, full_at, free_at, stripes = offsets
    size = c.keys * stripes * 128
    ptx.mbarrier.wait(ring.barrier(base, free_at), ring.empty_phase())
    full = ring.barrier(base, full_at)
    ptx.mbarrier.arrive_expect_tx(full, size)
    tile = reg.scalar(u32)
    ptx.inst.mad.lo.u32(tile, ring.stage, size, base)
    for s in range(stripes):
        to = tile + (tiles + s * c.keys * 128)
        ptx.cp.async_.bulk.tensor_3d(dst=to, src=tensor.tma_desc(), coord=item.key_place(s, row), mbar=full)
    ring.advance()


def producer(c: Config, at: SharedMap, base: Any, new_item: Callable[[], Item], tensors: tuple[Any, Any, Any]) -> None:
    """Load every work item of this CTA: Q for each consumer, then K and V tiles from the last to the first.

    A tile of K comes before the V of the tile before it: consumers want them in this order.
    """
    k_ring, v_ring = Ring(c.k_stages), Ring(c.v_stages)
    q_phase = reg.scalar(u32, init=1)
    item = new_item()
    q, k, v = tensors
    with ptx.loop("producer_items", pred=item.more):
        item.locate()
        item.judge()
        for consumer in range(c.consumers):
            full = base + (at.q_full + 8 * consumer)
            ptx.mbarrier.wait(base + (at.q_free + 8 * consumer), q_phase)
            ptx.mbarrier.arrive_expect_tx(full, at.q_bytes)
            row = item.query_row(ROWS * consumer)
            for s in range(c.stripes):
                ptx.cp.async_.bulk.tensor_3d(
                    dst=base + (at.q + consumer * at.q_bytes + s * ROWS * 128),
                    src=q.tma_desc(),
                    coord=item.query_place(s, row),
                    mbar=full,
                )
        q_phase ^= 1
        row, low = item.column_before(item.tiles), reg.scalar(u32)
        ptx.inst.mul.lo.u32(low, item.low, c.keys)
        keys = (c, base, k_ring, k, (at.k, at.k_full, at.k_free, c.stripes))
        values = (c, base, v_ring, v, (at.v, at.v_full, at.v_free, c.value_stripes))
        _load(*keys, item, row)
        more_tiles = reg.scalar(pred)
        with ptx.if_(row != low), ptx.loop("producer_tiles", pred=more_tiles):
            row += -c.keys & 0xFFFFFFFF
            _load(*keys, item, row)
            _load(*values, item, row + c.keys)
            ptx.inst.setp.ne.u32(more_tiles, row, low)
        _load(*values, item, low)
        item.advance()
