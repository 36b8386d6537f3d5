"""Which keys the rows of a consumer of the Hopper kernel may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith import ptx, reg
from warpsmith.kernels.attention.hopper_config import ROWS
from warpsmith.kernels.attention.softmax import mask_scores
from warpsmith.types import u32

if TYPE_CHECKING:
    from warpsmith.kernels.attention.hopper_consumer import Consumer
    from warpsmith.kernels.attention.hopper_item import Item

__all__ = ["limits", "mask_tile"]


def limits(consumer: Consumer, item: Item) -> Any:
    """First key each of the thread's two rows may not see, as two registers."""
    c = consumer.c
    out = reg.array(u32, 2)
    for half in range(2):
        if c.causal:
            first = reg.scalar(u32)
            ptx.inst.mad.lo.u32(first, consumer.index, ROWS, item.first_row)
            ptx.inst.add.u32(first, first, consumer.row)
            ptx.inst.add.u32(first, first, 8 * half + 1)
            ptx.inst.min.u32(out[half], first, c.sequence)
        else:
            ptx.inst.mov.u32(out[half], c.sequence)
    return out


def mask_tile(me: Consumer, scores: Any, column: Any, rows: Any, visited: Any) -> None:
    """Mask the scores of a tile if it is among the first ones visited.

    `column` is the tile's first key, `rows` what `limits` returned, `visited` a register that counts tiles from 0; None at the
    first.
    """
    c = me.c
    if visited is None:
        if c.masked_tiles:
            mask_scores(scores, column, rows, me.column)
    elif c.masked_tiles > 1:
        with ptx.if_(visited < c.masked_tiles):
            mask_scores(scores, column, rows, me.column)
