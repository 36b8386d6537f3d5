"""A work item with one score buffer: the softmax of a tile overlaps the P V of the tile before it.

S₀ = Q K₀ᵀ;  P₀ = softmax(S₀)
for each further tile j:   issue S = Q Kⱼᵀ;  issue O += Pⱼ₋₁ Vⱼ₋₁;  wait for S;  softmax;  wait for O;  rescale O
O += Pₙ₋₁ Vₙ₋₁
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith import ptx, reg
from warpsmith.kernels.attention.hopper_mask import limits, mask_tile
from warpsmith.kernels.attention.softmax import rescale
from warpsmith.types import pred, u32

if TYPE_CHECKING:
    from warpsmith.kernels.attention.hopper_consumer import Consumer
    from warpsmith.kernels.attention.hopper_item import Item

__all__ = ["consume_item"]


def _skip_unseen(me: Consumer, name: str, first: Any, last: Any) -> None:
    """Give back the tiles of the item from `first` up to `last`, which none of this consumer's rows sees, and pass turns on."""
    left, more = reg.scalar(u32), reg.scalar(pred)
    ptx.inst.sub.u32(left, last, first)
    with ptx.if_(left > 0), ptx.loop(name, pred=more):
        me.skip_tile()
        left += 0xFFFFFFFF
        ptx.inst.setp.ne.u32(more, left, 0)


def consume_item(me: Consumer, item: Item) -> None:
    """Compute one work item up to the unnormalised output."""
    c = me.c
    scores = me.scores
    me.begin_item(item)
    rows = limits(me, item)
    low, last = item.seen_by(me.index)
    column, visited, final = item.column_before(last), reg.scalar(u32, init=0), reg.scalar(u32)
    ptx.inst.mul.lo.u32(final, low, c.keys)

    me.await_queries()
    if c.causal:
        _skip_unseen(me, "consumer_hidden_tiles", last, item.tiles)
    k_free = me.issue_scores(scores)
    ptx.wgmma.wait_group(0)
    me.release(k_free)
    me.cap(scores)
    mask_tile(me, scores, column, rows, None)
    me.softmax(scores)
    me.pack(scores)

    with ptx.if_(column != final):
        more = reg.scalar(pred)
        with ptx.loop("consumer_tiles", pred=more):
            visited += 1
            column += -c.keys & 0xFFFFFFFF
            me.take_turn()
            k_free = me.issue_scores(scores)
            v_free = me.issue_output()
            me.give_turn()
            ptx.wgmma.wait_group(1)
            me.release(k_free)
            me.cap(scores)
            mask_tile(me, scores, column, rows, visited)
            needed = me.softmax(scores)
            ptx.wgmma.wait_group(0)
            me.release(v_free)
            rescale(me.output, me.state, needed)
            me.pack(scores)
            ptx.inst.setp.ne.u32(more, column, final)

    if not c.window:
        me.release_queries()
    v_free = me.issue_output()
    ptx.wgmma.wait_group(0)
    me.release(v_free)
    if c.window:
        _skip_unseen(me, "consumer_passed_tiles", item.low, low)
        me.release_queries()
