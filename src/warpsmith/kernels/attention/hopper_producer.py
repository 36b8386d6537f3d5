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


_Boxes = list[tuple[int, tuple[Any, ...]]]
"""What a tile is loaded as: where each box goes in the tile, and its coordinates."""


def _row_boxes(c: Config, item: Item, key: Any, shape: tuple[int, int]) -> _Boxes:
    """Return the boxes of a tile whose keys are rows of (number of swizzled rows side by side, their bytes)."""
    stripes, span = shape
    return [(s * c.keys * span, item.key_place(s * span // c.element, key)) for s in range(stripes)]


def _key_boxes(c: Config, item: Item, key: Any) -> _Boxes:
    """Return the boxes of a tile of K; where V has its keys side by side, K's rows are permuted (`hopper_fp8`)."""
    if not c.columns:
        return _row_boxes(c, item, key, (c.stripes, c.span))
    fours = reg.scalar(u32)
    ptx.inst.shr.u32(fours, key, 2)
    half = c.keys // 2 * c.span
    return [
        ((2 * s + pair) * half, (s * c.span, 2 * pair, fours, item.key_head)) for s in range(c.stripes) for pair in range(2)
    ]


def _value_boxes(c: Config, item: Item, key: Any) -> _Boxes:
    """Return the boxes of a tile of V, as it is loaded."""
    span = c.value_span
    if not c.columns:
        return _row_boxes(c, item, key, (c.value_stripes, span))
    return [(s * c.width * span, item.key_place(key + s * span, 0)) for s in range(c.value_stripes)]


def _load(base: Any, ring: Ring, tensor: Any, offsets: tuple[int, int, int, int], boxes: _Boxes) -> None:
    """Load one tile of keys or values into the ring's stage once it is free, and go to the next stage."""
    tiles, full_at, free_at, size = offsets
    ptx.mbarrier.wait(ring.barrier(base, free_at), ring.empty_phase())
    full = ring.barrier(base, full_at)
    ptx.mbarrier.arrive_expect_tx(full, size)
    tile = reg.scalar(u32)
    ptx.inst.mad.lo.u32(tile, ring.stage, size, base)
    for offset, coordinates in boxes:
        copy = getattr(ptx.cp.async_.bulk, f"tensor_{len(coordinates)}d")
        copy(dst=tile + (tiles + offset), src=tensor.tma_desc(), coord=coordinates, mbar=full)
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
                    dst=base + (at.q + consumer * at.q_bytes + s * ROWS * c.span),
                    src=q.tma_desc(),
                    coord=item.query_place(s * c.span // c.element, row),
                    mbar=full,
                )
        q_phase ^= 1
        row, low = item.column_before(item.tiles), reg.scalar(u32)
        ptx.inst.mul.lo.u32(low, item.low, c.keys)
        keys = (base, k_ring, k, (at.k, at.k_full, at.k_free, at.k_bytes))
        values = (base, v_ring, v, (at.loaded, at.loaded_full, at.loaded_free, at.loaded_bytes))
        _load(*keys, _key_boxes(c, item, row))
        more_tiles = reg.scalar(pred)
        with ptx.if_(row != low), ptx.loop("producer_tiles", pred=more_tiles):
            row += -c.keys & 0xFFFFFFFF
            _load(*keys, _key_boxes(c, item, row))
            _load(*values, _value_boxes(c, item, row + c.keys))
            ptx.inst.setp.ne.u32(more_tiles, row, low)
        _load(*values, _value_boxes(c, item, low))
        item.advance()
