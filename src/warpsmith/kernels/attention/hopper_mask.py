"""Which keys the rows of a consumer of the Hopper kernel may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith import ptx, reg
from warpsmith.kernels.attention.hopper_config import ROWS
from warpsmith.kernels.attention.softmax import mask_scores
from warpsmith.types import s32, u32

if TYPE_CHECKING:
    from warpsmith.kernels.attention.hopper_consumer import Consumer
    from warpsmith.kernels.attention.hopper_item import Item

__all__ = ["limits", "mask_tile"]


def limits(consumer: Consumer, item: Item) -> tuple[Any, Any, Any]:
    """First key each of the thread's rows may not see; with a window the first it may, and that of the consumer's last row."""
    c = consumer.c
    ends, starts, last_start = reg.array(u32, 2), reg.array(u32, 2), reg.scalar(s32)
    if c.window:
        ptx.inst.mad.lo.u32(last_start, consumer.index, ROWS, item.first_row)
        ptx.inst.add.s32(last_start, last_start, ROWS - 1 + c.ahead - c.window)
        ptx.inst.max.s32(last_start, last_start, 0)
    for half in range(2):
        if not c.causal:
            ptx.inst.mov.u32(ends[half], item.key_count)
            continue
        first, place = reg.scalar(u32), reg.scalar(s32)
        ptx.inst.mad.lo.u32(first, consumer.index, ROWS, item.first_row)
        ptx.inst.add.u32(first, first, consumer.row)
        ptx.inst.add.s32(place, first, 8 * half + 1 + c.ahead)
        ptx.inst.max.s32(place, place, 0)
        ptx.inst.min.u32(ends[half], place, item.key_count)
        if c.window:
            ptx.inst.add.s32(place, first, 8 * half + c.ahead - c.window)
            ptx.inst.max.s32(starts[half], place, 0)
    return ends, starts, last_start


def mask_tile(me: Consumer, scores: Any, column: Any, rows: tuple[Any, Any, Any], visited: Any) -> None:
    """Mask the scores of a tile if it is among the first ones visited, or reaches behind the window.

    `column` is the tile's first key, `rows` what `limits` returned, `visited` a register that counts tiles from 0; None at the
    first.
    """
    c = me.c
    ends, starts, last_start = rows
    if visited is None:
        if c.masked_tiles:
            mask_scores(scores, column, ends, me.key_column, me.key_of)
    elif c.masked_tiles > 1:
        with ptx.if_(visited < c.masked_tiles):
            mask_scores(scores, column, ends, me.key_column, me.key_of)
    if c.window:
        with ptx.if_(column < last_start):
            mask_scores(scores, column, starts, me.key_column, me.key_of, before=True)
