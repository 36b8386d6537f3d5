"""The softmax of scores accumulated in f16: a thread has its whole row of S in 64 registers, two scores in each.

Scores stand one in a column, in its lower half; `.pack::16b` brings two to a register. Everything up to P is done on pairs:
P = 2^(scale·s - basis), with scale and basis as f16. The basis is rounded to f16 whenever it moves, so that the factor between
two of them is exact. Sums of a tile are kept in eight halves and widened once a tile.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, final

from warpsmith import ptx, reg
from warpsmith.kernels.attention.blackwell.config import TILE
from warpsmith.kernels.attention.blackwell.softmax import Row
from warpsmith.types import b16, b32, f32, pred

if TYPE_CHECKING:
    from warpsmith.kernels.attention.blackwell.item import Item

__all__ = ["HalfRow"]

T = ptx.tcgen05
_CHUNK = TILE // 2
"""Columns that a load brings."""
_MINUS_INFINITY = 0xFC00


def _half(value: float) -> int:
    """Return the bits of the nearest f16."""
    return int.from_bytes(struct.pack("<e", value), "little")


@final
class HalfRow(Row):
    """A softmax thread that works on pairs of f16."""

    def hold(self) -> None:
        """Declare the registers that scores and probabilities pass through."""
        self.values, self.full = reg.array(b32, TILE // 2), self.parts
        self.scale_bits = _half(self.c.scale_log2)
        self.scale = struct.unpack("<e", struct.pack("<e", self.c.scale_log2))[0]

    def load(self, item: Item) -> None:
        """Bring the row of S, keys that it may not see hidden."""
        for chunk in range(2):
            columns = [self.values[TILE // 4 * chunk + j] for j in range(TILE // 4)]
            T.ld(columns, ptx.addr(self.tmem, _CHUNK * chunk), pack=True)
        self.loaded()
        if not self.c.masked_tiles:
            return
        hidden = 0 if self.c.no_exponentials else _MINUS_INFINITY
        with ptx.if_(self.masked(item)):
            for j, two in enumerate(self.values):
                high, low, one = reg.scalar(pred), reg.scalar(pred), reg.scalar(b32)
                ptx.inst.setp.le.s32(high, self.room, 2 * j + 1)
                ptx.inst.setp.le.s32(low, self.room, 2 * j)
                ptx.inst.prmt.b32(one, two, hidden, 0x5410)
                ptx.inst.selp.b32(two, one, two, high)
                ptx.inst.selp.b32(two, hidden * 0x10001, two, low)

    def maximum(self, item: Item) -> Any:
        """Load the tile and return its largest raw score."""
        self.load(item)
        found = [reg.scalar(b32) for _ in range(4)]
        for j, two in enumerate(self.values):
            if j < 4:
                ptx.inst.mov.b32(found[j], two)
            else:
                ptx.inst.max.f16x2(found[j % 4], found[j % 4], two)
        for other in found[1:]:
            ptx.inst.max.f16x2(found[0], found[0], other)
        low, high = self._widened(found[0])
        ptx.inst.max.f32(low, low, high)
        return low

    def _widened(self, two: Any) -> tuple[Any, Any]:
        halves, out = reg.array(b16, 2), (reg.scalar(f32), reg.scalar(f32))
        ptx.inst.mov.b32(halves, two)
        for value, half in zip(out, halves, strict=True):
            ptx.inst.cvt.f32.f16(value, half)
        return out

    def _basis(self, top: Any) -> Any:
        """Return minus the basis for a row whose largest score is `top`, a value that f16 has."""
        half, value = reg.scalar(b16), reg.scalar(f32)
        ptx.inst.mul.rn.f32(value, top, -self.scale)
        ptx.inst.cvt.rn.f16.f32(half, value)
        ptx.inst.cvt.f32.f16(value, half)
        return value

    def start(self, item: Item) -> None:
        """Take the first tile's maximum as basis."""
        if self.c.no_exponentials:
            self.load(item)
            ptx.inst.mov.f32(self.shift, 0.0)
        else:
            ptx.inst.mov.f32(self.shift, self._basis(self.maximum(item)))

    def decide(self, item: Item) -> None:
        """Move the basis if a probability would exceed the threshold, else leave it; alpha and the sum follow."""
        if self.c.no_exponentials:
            self.load(item)
            ptx.inst.mov.f32(self.alpha, 1.0)
            return
        rise, needed, factor, top = reg.scalar(f32), reg.scalar(pred), reg.scalar(f32), self.maximum(item)
        ptx.inst.fma.rn.f32(rise, top, self.scale, self.shift)
        ptx.inst.setp.gt.f32(needed, rise, self.c.rescale_threshold)
        ptx.inst.sub.rn.f32(rise, self.shift, self._basis(top))
        ptx.inst.selp.f32(rise, rise, 0.0, needed)
        ptx.inst.sub.rn.f32(self.shift, self.shift, rise)
        ptx.inst.neg.f32(factor, rise)
        ptx.inst.ex2.approx.ftz.f32(self.alpha, factor)
        self.fold()
        ptx.inst.mul.rn.f32(self.total, self.total, self.alpha)

    def exponentials(self, item: Item) -> None:
        """P of the tile in halves, each reported in one part or two; the row's sum."""
        scale, shift, half = reg.scalar(b32, self.scale_bits * 0x10001), reg.scalar(b32), reg.scalar(b16)
        ptx.inst.cvt.rn.f16.f32(half, self.shift)
        ptx.inst.mov.b32(shift, [half, half])
        sums = [reg.scalar(b32, 0) for _ in range(4)]
        for chunk in range(2):
            values = [self.values[TILE // 4 * chunk + j] for j in range(TILE // 4)]
            for j, two in enumerate(values):
                ptx.inst.fma.rn.f16x2(two, two, scale, shift)
                if not self.c.no_exponentials:
                    ptx.inst.ex2.approx.f16x2(two, two)
                    ptx.inst.add.rn.f16x2(sums[j % 4], sums[j % 4], two)
            T.st(ptx.addr(self.tmem, TILE // 4 * chunk), values)
            count = _CHUNK // self.c.part
            self.publish_p(tuple(range(chunk * count, chunk * count + count)))
        parts = [part for two in sums for part in self._widened(two)]
        ptx.inst.mov.f32(self.sum, parts[0])
        for part in parts[1:]:
            ptx.inst.add.rn.f32(self.sum, self.sum, part)
