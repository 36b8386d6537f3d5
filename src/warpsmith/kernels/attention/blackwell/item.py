"""The walk of one role over the work items of its CTA, or of its cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, final

from warpsmith import ptx, reg
from warpsmith.kernels.attention.blackwell.config import TILE
from warpsmith.types import pred, u32

if TYPE_CHECKING:
    from warpsmith.kernels.attention.blackwell.config import Config

__all__ = ["Item", "parity", "turn"]


def turn(c: Config, tile: Any) -> Any:
    """Return how often the place of key tile number `tile` in the ring has been used before."""
    return tile >> 1 if c.depth == 2 else tile


def parity(count: Any, plus: int = 0) -> Any:
    """Return the parity of `count + plus` (u32 register)."""
    value = count + plus if plus else count
    return value & 1


@final
class Item:
    """Work item number `ctaid + i·CTAs` (clusters, if CTAs share items): block of query rows and head; each role counts.

    `index` counts the items done, `tile` the key tiles: phases of every barrier follow from the two.
    """

    def __init__(self, c: Config) -> None:
        self.c = c
        self.number, self.tile = (reg.scalar(u32, init=0) for _ in range(2))
        self.index: Any = reg.scalar(u32, init=0) if c.persistent else 0
        ptx.inst.mov.u32(self.number, ptx.special.ctaid.x())
        if c.peers > 1:
            ptx.inst.shr.u32(self.number, self.number, c.peers // 2)
        self.block, self.head, self.tiles = reg.scalar(u32), reg.scalar(u32), reg.scalar(u32)
        self.more = reg.scalar(pred)

    def each(self, label: str) -> AbstractContextManager[Any]:
        """Return the loop over the CTA's items; none where it has one only."""
        return ptx.loop(label, pred=self.more) if self.c.persistent else nullcontext()

    def locate(self) -> None:
        """Find block, head and number of key tiles. Causal: the longest blocks first."""
        c = self.c
        ptx.inst.rem.u32(self.block, self.number, c.blocks)
        ptx.inst.div.u32(self.head, self.number, c.blocks)
        if c.causal:
            ptx.inst.sub.u32(self.block, c.blocks - 1, self.block)
            ptx.inst.mad.lo.u32(self.tiles, self.block, c.rows // TILE, c.rows // TILE)
            ptx.inst.min.u32(self.tiles, self.tiles, c.tiles)
        else:
            ptx.inst.mov.u32(self.tiles, c.tiles)

    def advance(self) -> None:
        """Go to the next item; `more` says whether there is one. Call last in the loop."""
        self.index += 1
        if not self.c.persistent:
            return
        self.number += self.c.ctas // self.c.peers
        ptx.inst.setp.lt.u32(self.more, self.number, self.c.items)
