"""Work items of the persistent Hopper kernel: which head, rows and key tiles a role is at."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from warpsmith import ptx, reg
from warpsmith.kernels.attention.hopper_config import ROWS
from warpsmith.kernels.attention.hopper_schedule import END, LARGEST, table
from warpsmith.types import pred, s32, u32, u64

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from warpsmith.kernels.attention.hopper_config import Config
    from warpsmith.kernels.attention.hopper_consumer import Consumer

__all__ = ["Item", "declare_table"]

_TABLE = "attention_items"


class Item:
    """Registers of the work item a role is at."""

    def __init__(self, c: Config) -> None:
        self.c = c
        self.key_count: Any = c.key_count
        """Keys of the sequence: a number, or a register where sequences differ."""
        self.row_count: Any = c.sequence
        """Rows that `output_row` may reach."""
        self.blind = c.causal and c.ahead < 0
        """A row may see no key."""
        self.head, self.first_row, self.key_head = reg.scalar(u32), reg.scalar(u32), reg.scalar(u32)
        self.low, self.tiles = reg.scalar(u32), reg.scalar(u32)
        """First key tile of the item, and the one behind its last."""
        self.more = reg.scalar(pred)
        self.block = reg.scalar(u32)
        self.planned = c.causal and c.items <= LARGEST and c.heads < 1 << 15 and c.blocks < 1 << 16
        if self.planned:
            self._open_table()
        else:
            self._open_formula()

    def _open_table(self) -> None:
        """Point at this CTA's row of the table and read its first two words."""
        width = table(self.c)[0]
        self.code, self.following, self.cursor = reg.scalar(u32), reg.scalar(u32), reg.scalar(u64)
        ptx.inst.mov.u64(self.cursor, _TABLE)
        offset = reg.scalar(u64)
        ptx.inst.mul.wide.u32(offset, ptx.special.ctaid.x(), 4 * width)
        ptx.inst.add.s64(self.cursor, self.cursor, offset)
        ptx.inst.ld.global_.nc.u32(self.code, ptx.addr(self.cursor))
        ptx.inst.ld.global_.nc.u32(self.following, ptx.addr(self.cursor, 4))

    def _open_formula(self) -> None:
        """Start at the item of this CTA's number; causal launches go to and fro, so that long and short items alternate."""
        self.number, self.step, self.twice = reg.scalar(u32), reg.scalar(u32), reg.scalar(u32)
        ptx.inst.mov.u32(self.number, ptx.special.ctaid.x())
        ptx.inst.mov.u32(self.step, ptx.special.nctaid.x())
        if self.c.causal:
            own = reg.scalar(u32)
            ptx.inst.shl.b32(self.twice, self.step, 1)
            ptx.inst.shl.b32(own, self.number, 1)
            ptx.inst.sub.u32(self.step, self.twice, own)
            ptx.inst.sub.u32(self.step, self.step, 1)

    def locate(self) -> None:
        """Compute head, first query row and the key tiles."""
        c = self.c
        if self.planned:
            ptx.inst.and_.b32(self.block, self.code, 0xFFFF)
            ptx.inst.shr.u32(self.head, self.code, 16)
        elif c.causal:
            ptx.inst.div.u32(self.block, self.number, c.heads)
            ptx.inst.rem.u32(self.head, self.number, c.heads)
            ptx.inst.sub.u32(self.block, c.blocks - 1, self.block)
        else:
            ptx.inst.div.u32(self.head, self.number, c.blocks)
            ptx.inst.rem.u32(self.block, self.number, c.blocks)
        ptx.inst.mul.lo.u32(self.first_row, self.block, c.rows)
        ptx.inst.div.u32(self.key_head, self.head, c.heads // c.key_heads)
        self._span(self.low, self.tiles, self.first_row, c.rows)

    def _span(self, low: Any, last: Any, first_row: Any, rows: int) -> None:
        """Write the first key tile that `rows` rows from `first_row` see and the one behind the last (`Config.seen`)."""
        c = self.c
        if not c.causal:
            ptx.inst.mov.u32(low, 0)
            if c.packed:
                ptx.inst.mov.u32(last, self.tiles)
            else:
                ptx.inst.mov.u32(last, -(-c.key_count // c.keys))
            return
        end = reg.scalar(s32)
        ptx.inst.add.s32(end, first_row, rows + c.ahead)
        ptx.inst.min.s32(end, end, self.key_count)
        ptx.inst.max.s32(end, end, 1)
        ptx.inst.add.s32(end, end, c.keys - 1)
        ptx.inst.div.u32(last, end, c.keys)
        if not c.window:
            ptx.inst.mov.u32(low, 0)
            return
        before = reg.scalar(u32)
        ptx.inst.add.s32(end, first_row, c.ahead - c.window)
        ptx.inst.max.s32(end, end, 0)
        ptx.inst.div.u32(low, end, c.keys)
        ptx.inst.sub.u32(before, last, 1)
        ptx.inst.min.u32(low, low, before)

    def seen_by(self, consumer: Any) -> tuple[Any, Any]:
        """First key tile that the rows of a consumer see and the one behind the last, in fresh registers."""
        low, last, row = reg.scalar(u32), reg.scalar(u32), reg.scalar(u32)
        ptx.inst.mad.lo.u32(row, consumer, ROWS, self.first_row)
        self._span(low, last, row, ROWS)
        return low, last

    def query_row(self, row: int) -> Any:
        """Return the row of Q's tensor map that is row `row` of the item; a fresh register."""
        return self.first_row + row

    def query_place(self, column: int, row: Any) -> tuple[Any, Any, Any]:
        """Coordinates of an element of Q or O in its tensor map, at a row of that."""
        return (column, row, self.head)

    def key_place(self, column: int, key: Any) -> tuple[Any, Any, Any]:
        """Coordinates of an element of K or V; `key` counts from the sequence's first."""
        return (column, key, self.key_head)

    def judge(self) -> None:
        """Trap for an item that the tensors do not hold; the producer asks, once for each."""

    def output_row(self, consumer: Any) -> Any:
        """Return the first row of a consumer, in what `row_count` counts; a fresh register."""
        first = reg.scalar(u32)
        ptx.inst.mad.lo.u32(first, consumer, ROWS, self.first_row)
        return first

    def output_place(self, first: Any) -> Any:
        """Return the row of O's tensor map that is row `first` of `output_row`."""
        return first

    def write_lse_index(self, index: Any, row: Any) -> None:
        """Write which number of the log-sum-exp belongs to a row."""
        ptx.inst.mad.lo.u32(index, self.head, self.c.sequence, row)

    def store_part(self, me: Consumer, first: Any) -> None:
        """Store the rows of a consumer whose 64 are not all there; not needed where the tensor map ends with them."""

    def whole(self, first: Any) -> AbstractContextManager[Any]:
        """Return the block that stores all 64 rows of a consumer, if they are there."""
        del first
        return nullcontext()

    def column_before(self, tiles: Any) -> Any:
        """First key of the last of the first `tiles` tiles; a fresh register."""
        column = reg.scalar(u32)
        ptx.inst.sub.u32(column, tiles, 1)
        ptx.inst.mul.lo.u32(column, column, self.c.keys)
        return column

    def advance(self) -> None:
        """Go to the next item; `more` says whether there is one."""
        if self.planned:
            ptx.inst.mov.u32(self.code, self.following)
            ptx.inst.setp.ne.u32(self.more, self.code, END)
            ptx.inst.add.s64(self.cursor, self.cursor, 4)
            ptx.inst.ld.global_.nc.u32(self.following, ptx.addr(self.cursor, 4), pred=self.more)
            return
        self.number += self.step
        if self.c.causal:
            ptx.inst.sub.u32(self.step, self.twice, self.step)
        ptx.inst.setp.lt.u32(self.more, self.number, self.c.items)


def declare_table(c: Config) -> None:
    """Put the plan of a causal launch into the module."""
    if c.causal and c.items <= LARGEST:
        words = ", ".join(map(str, table(c)[1]))
        ptx.declare(f".global .align 4 .u32 {_TABLE}[{len(table(c)[1])}] = {{{words}}};")
