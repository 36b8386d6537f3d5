"""Work items of the persistent Hopper kernel: which head, rows and key tiles a role is at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith import ptx, reg
from warpsmith.types import pred, u32

if TYPE_CHECKING:
    from warpsmith.kernels.attention.hopper_config import Config

__all__ = ["Item"]


class Item:
    """Registers of the work item a role is at."""

    def __init__(self, c: Config) -> None:
        self.c = c
        self.number = reg.scalar(u32)
        ptx.inst.mov.u32(self.number, ptx.special.ctaid.x())
        self.step = reg.scalar(u32)
        self.ctas = reg.scalar(u32)
        ptx.inst.mov.u32(self.ctas, ptx.special.nctaid.x())
        ptx.inst.mov.u32(self.step, self.ctas)
        if c.causal:
            # to and fro: the CTA that had the longest item of a round has the shortest of the next
            ptx.inst.shl.b32(self.ctas, self.ctas, 1)
            twice = reg.scalar(u32)
            ptx.inst.shl.b32(twice, self.number, 1)
            ptx.inst.sub.u32(self.step, self.ctas, twice)
            ptx.inst.sub.u32(self.step, self.step, 1)
        self.head, self.first_row, self.tiles = reg.scalar(u32), reg.scalar(u32), reg.scalar(u32)
        self.more = reg.scalar(pred)

    def locate(self) -> None:
        """Compute head, first query row and number of key tiles; causal items go longest first."""
        c = self.c
        block = reg.scalar(u32)
        if c.causal:
            ptx.inst.div.u32(block, self.number, c.heads)
            ptx.inst.rem.u32(self.head, self.number, c.heads)
            ptx.inst.sub.u32(block, c.blocks - 1, block)
        else:
            ptx.inst.div.u32(self.head, self.number, c.blocks)
            ptx.inst.rem.u32(block, self.number, c.blocks)
        ptx.inst.mul.lo.u32(self.first_row, block, c.rows)
        if c.causal:
            end = reg.scalar(u32)
            ptx.inst.add.u32(end, self.first_row, c.rows)
            ptx.inst.min.u32(end, end, c.sequence)
            ptx.inst.add.u32(end, end, c.keys - 1)
            ptx.inst.div.u32(self.tiles, end, c.keys)
        else:
            ptx.inst.mov.u32(self.tiles, -(-c.sequence // c.keys))

    def last_column(self) -> Any:
        """First key of the item's last tile, the first one visited; a fresh register."""
        column = reg.scalar(u32)
        ptx.inst.sub.u32(column, self.tiles, 1)
        ptx.inst.mul.lo.u32(column, column, self.c.keys)
        return column

    def advance(self) -> None:
        """Go to the next item; `more` says whether there is one."""
        self.number += self.step
        if self.c.causal:
            ptx.inst.sub.u32(self.step, self.ctas, self.step)
        ptx.inst.setp.lt.u32(self.more, self.number, self.c.items)
