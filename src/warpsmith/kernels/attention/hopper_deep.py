"""A work item with two score buffers: during the softmax of tile j, Q Kᵀ of j+1 and P V of j−1 are already queued.

Tiles are taken in pairs, one for each buffer; an odd first tile is done alone. At the start of tile j the groups in flight
are, in order of issue, S of j, P V of j−1, S of j+1:

    wait until S of j is complete;  softmax
    wait until P V of j−1 is complete;  rescale O;  pack P
    issue P V of j;  issue S of j+2 into the buffer just read
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


class _Walk:
    """Where the item is: key column, tiles visited, row limits; the release barriers of the tiles in flight."""

    def __init__(self, me: Consumer, item: Item) -> None:
        self.me = me
        self.rows = limits(me, item)
        self.column, self.visited = item.last_column(), reg.scalar(u32, init=0)
        self.k_free = [reg.scalar(u32), reg.scalar(u32)]
        self.v_free = reg.scalar(u32)

    def issue_scores(self, buffer: int) -> None:
        """Issue S of the next K tile into a buffer."""
        ptx.inst.mov.u32(self.k_free[buffer], self.me.issue_scores(self.me.scores[buffer]))

    def issue_output(self) -> None:
        """Issue P V of the next V tile."""
        ptx.inst.mov.u32(self.v_free, self.me.issue_output())

    def scores_ready(self, buffer: int, in_flight: int) -> Any:
        """Wait for the buffer's scores, leaving `in_flight` later groups; mask, softmax; return whether to rescale."""
        me = self.me
        ptx.wgmma.wait_group(in_flight)
        me.release(self.k_free[buffer])
        mask_tile(me, me.scores[buffer], self.column, self.rows, self.visited)
        needed = me.softmax(me.scores[buffer])
        self.visited += 1
        self.column += -me.c.keys & 0xFFFFFFFF
        return needed

    def output_ready(self, needed: Any, in_flight: int) -> None:
        """Wait for the P V in flight, leaving `in_flight` later groups; give its tile back and rescale."""
        me = self.me
        ptx.wgmma.wait_group(in_flight)
        me.release(self.v_free)
        rescale(me.output, me.state, needed)


def _odd_tile(walk: _Walk) -> None:
    walk.issue_scores(0)
    walk.scores_ready(0, 0)
    walk.me.pack(walk.me.scores[0])
    walk.issue_output()
    ptx.wgmma.wait_group(0)
    walk.me.release(walk.v_free)


def _pairs(walk: _Walk, left: Any) -> None:
    me = walk.me
    walk.issue_scores(0)
    walk.issue_scores(1)
    needed = walk.scores_ready(0, 1)
    rescale(me.output, me.state, needed)
    me.pack(me.scores[0])
    walk.issue_output()
    with ptx.if_(left > 2):
        more = reg.scalar(pred)
        with ptx.loop("consumer_pairs", pred=more):
            for buffer in (0, 1):
                walk.issue_scores(buffer)
                needed = walk.scores_ready(1 - buffer, 2)
                walk.output_ready(needed, 1)
                me.pack(me.scores[1 - buffer])
                walk.issue_output()
            left += -2 & 0xFFFFFFFF
            ptx.inst.setp.gt.u32(more, left, 2)
    needed = walk.scores_ready(1, 1)
    walk.output_ready(needed, 0)
    me.pack(me.scores[1])
    walk.issue_output()
    ptx.wgmma.wait_group(0)
    me.release(walk.v_free)


def consume_item(me: Consumer, item: Item) -> None:
    """Compute one work item up to the unnormalised output."""
    me.begin_item()
    walk = _Walk(me, item)
    me.await_queries()
    left, odd = reg.scalar(u32), reg.scalar(u32)
    ptx.inst.mov.u32(left, item.tiles)
    ptx.inst.and_.b32(odd, left, 1)
    with ptx.if_(odd != 0):
        _odd_tile(walk)
        left += 0xFFFFFFFF
    with ptx.if_(left != 0):
        _pairs(walk, left)
