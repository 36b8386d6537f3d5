"""Three warps beside the producer transpose tiles of V in shared memory: bytes that wgmma reads have neighbouring keys side by
side, and users' rows have neighbouring numbers of one key.

A tile `[key, d]` as TMA wrote it becomes `[d, position]`. ldmatrix.trans of 8 keys and 16 numbers, taken as pairs, gives lane
(g, q) the numbers 2g and 2g + 1 of keys 2q and 2q + 1 (PTX ISA 9.7.14.5.15). Two of those, 8 keys apart, hold four keys of
either number: prmt sorts them into one register for each, and stmatrix stores a register as bytes 4q … 4q + 3 of a row. So
key 8b + 2q + e of every 16 comes to position 4q + 2b + e: the order in which the consumers have P in their registers
(`hopper_fp8_consumer`). Lanes of the upper half swap the two registers, so that the eight rows of a store are eight different
rows modulo 8, and no two share a bank.

    loaded_full[s]   1 arrival and bytes   producer → transposers    the tile of stage s is there
    loaded_free[s]   3                     transposers → producer    every warp has read it
    v_full[s]        3                     transposers → consumers   every warp has written its part of stage s
    v_free[s]        4 for each consumer   consumers → transposers   every warp is done with it
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith import ptx, reg
from warpsmith.kernels.ring import Ring
from warpsmith.types import b32, pred, u32

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.kernels.attention.hopper_config import Config, SharedMap
    from warpsmith.kernels.attention.hopper_item import Item

__all__ = ["WARPS", "transposer"]

WARPS = 3
"""Warps 1 to 3 of the producer's warpgroup."""
_EVEN, _ODD = 0x6420, 0x7531
"""Selectors of prmt: the numbers 2g and 2g + 1 of the keys in two registers."""


class _Lanes:
    """What each lane reads and writes of every tile."""

    def __init__(self, c: Config, at: SharedMap, base: Any, thread: Any) -> None:
        self.c, self.at, self.base = c, at, base
        self.warp, lane = reg.scalar(u32), reg.scalar(u32)
        ptx.inst.and_.b32(lane, thread, 31)
        ptx.inst.shr.u32(self.warp, thread, 5)
        ptx.inst.and_.b32(self.warp, self.warp, 3)
        self.warp += 0xFFFFFFFF
        self.leader = lane == 0
        self.read_row, self.read_twist = reg.scalar(u32), self._twist(lane, c.value_span)
        ptx.inst.mad.lo.u32(self.read_row, lane, c.value_span, base)
        self._selectors(lane)
        row = self._written_row(lane)
        self.write_row, self.write_twist = reg.scalar(u32), self._twist(row, at.key_span)
        ptx.inst.mad.lo.u32(self.write_row, row, at.key_span, base)
        group = reg.scalar(u32)
        ptx.inst.and_.b32(group, lane, 16)
        ptx.inst.xor.b32(self.write_twist, self.write_twist, group)

    @staticmethod
    def _twist(row: Any, span: int) -> Any:
        """Return what the swizzle XORs into the place within a row: address bits 7 to 9 (64-byte rows: 7 and 8)."""
        twist = reg.scalar(u32)
        if span == 128:
            ptx.inst.and_.b32(twist, row, 7)
        else:
            ptx.inst.shr.u32(twist, row, 1)
            ptx.inst.and_.b32(twist, twist, 3)
        ptx.inst.shl.b32(twist, twist, 4)
        return twist

    def _selectors(self, lane: Any) -> None:
        upper = reg.scalar(pred)
        ptx.inst.setp.ge.u32(upper, lane, 16)
        self.selectors = reg.scalar(b32), reg.scalar(b32)
        ptx.inst.selp.b32(self.selectors[0], _ODD, _EVEN, upper)
        ptx.inst.selp.b32(self.selectors[1], _EVEN, _ODD, upper)

    @staticmethod
    def _written_row(lane: Any) -> Any:
        """Return the row, of 16, whose address a lane gives to stmatrix: 2i + f, from i = 4 on 2i + 1 - f.

        i is the lane modulo 8 and f bit 3 of the lane: whether the matrix is the second register.
        """
        row, odd, upper = reg.scalar(u32), reg.scalar(u32), reg.scalar(u32)
        ptx.inst.and_.b32(row, lane, 7)
        ptx.inst.shr.u32(upper, row, 2)
        ptx.inst.shr.u32(odd, lane, 3)
        ptx.inst.xor.b32(odd, odd, upper)
        ptx.inst.and_.b32(odd, odd, 1)
        ptx.inst.mad.lo.u32(row, row, 2, odd)
        return row

    def tile(self, stage: Any) -> None:
        """Transpose this warp's blocks of 16 numbers of the tile in a stage into the stage of that number for the consumers."""
        c, at = self.c, self.at
        source, to, block, more = reg.scalar(u32), reg.scalar(u32), reg.scalar(u32), reg.scalar(pred)
        ptx.inst.mad.lo.u32(source, stage, at.loaded_bytes, self.read_row)
        ptx.inst.mad.lo.u32(to, stage, at.v_bytes, self.write_row)
        ptx.inst.mad.lo.u32(to, self.warp, 16 * at.key_span, to)
        ptx.inst.mov.u32(block, self.warp)
        blocks, wide = c.width // 16, c.value_span // 16
        with ptx.if_(block < blocks), ptx.loop("transpose_blocks", pred=more):
            place = reg.scalar(u32)
            ptx.inst.and_.b32(place, block, wide - 1)
            ptx.inst.shl.b32(place, place, 4)
            ptx.inst.xor.b32(place, place, self.read_twist)
            if c.value_stripes > 1:
                stripe = reg.scalar(u32)
                ptx.inst.shr.u32(stripe, block, wide.bit_length() - 1)
                ptx.inst.mad.lo.u32(place, stripe, c.keys * c.value_span, place)
            ptx.inst.add.u32(place, place, source)
            self._block(place, to)
            block += WARPS
            to += WARPS * 16 * at.key_span
            ptx.inst.setp.lt.u32(more, block, blocks)

    def _block(self, source: Any, to: Any) -> None:
        """Transpose 16 numbers of all keys of the tile, 32 keys at a time."""
        c, at = self.c, self.at
        for some in range(0, c.keys, 32):
            pairs, words = reg.array(b32, 4), reg.array(b32, 4)
            ptx.inst.ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16(pairs, ptx.addr(source, at.loaded + some * c.value_span))
            for i in range(4):
                first = i // 2 * 2
                ptx.inst.prmt.b32(words[i], pairs[first], pairs[first + 1], self.selectors[i % 2])
            stripe, inner = divmod(some, at.key_span)
            there = reg.scalar(u32)
            ptx.inst.xor.b32(there, self.write_twist, inner)
            ptx.inst.add.u32(there, there, to)
            ptx.inst.stmatrix.sync.aligned.m8n8.x4.shared.b16(ptx.addr(there, at.v + stripe * c.width * at.key_span), words)


def transposer(c: Config, at: SharedMap, base: Any, thread: Any, new_item: Callable[[], Item]) -> None:
    """Transpose every tile of V of this CTA's items, in the order of the producer."""
    lanes = _Lanes(c, at, base, thread)
    ring = Ring(c.v_stages)
    item = new_item()
    with ptx.loop("transposer_items", pred=item.more):
        item.locate()
        left, more = reg.scalar(u32), reg.scalar(pred)
        ptx.inst.sub.u32(left, item.tiles, item.low)
        with ptx.loop("transposer_tiles", pred=more):
            ptx.mbarrier.wait(ring.barrier(base, at.loaded_full), ring.phase)
            ptx.mbarrier.wait(ring.barrier(base, at.v_free), ring.empty_phase())
            lanes.tile(ring.stage)
            ptx.fence.proxy_async_shared_cta()
            ptx.inst.bar.warp.sync(0xFFFFFFFF)
            ptx.mbarrier.arrive(ring.barrier(base, at.loaded_free), pred=lanes.leader)
            ptx.mbarrier.arrive(ring.barrier(base, at.v_full), pred=lanes.leader)
            ring.advance()
            left += 0xFFFFFFFF
            ptx.inst.setp.ne.u32(more, left, 0)
        item.advance()
