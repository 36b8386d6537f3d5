"""A consumer warpgroup of the Hopper kernel with inputs in e4m3: factors of the inputs, probabilities as bytes, V by columns.

Scores come in the accumulator layout: of every 8 columns lane q of a quad holds columns 2q and 2q + 1 (PTX ISA 9.7.15.5.1,
the fragment of D). The A operand of bytes wants from it, of every 32 keys, positions 4q … 4q + 3 and 16 + 4q … 16 + 4q + 3
(the fragment of .e4m3 A for k32). Values cannot change lanes without shuffles, so the order of the keys changes in their place:

* Where the kernel transposes V, it writes key 8b + 2q + e of every 16 to position 4q + 2b + e (`hopper_transpose`): the four
  bytes of a register are values 0 and 1 of one block of 8 columns and of the next.
* Where V comes by columns, K's rows are loaded in another order: row b·keys/2 + 2r + e of the tile is key 4r + 2b + e, by two
  boxes of a tensor map that sees keys in fours. The four bytes of a register are values 0 and 1 of a block in the first half
  of the columns and of the one at the same place in the second.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from warpsmith import ptx, reg
from warpsmith.kernels.attention.hopper_config import ROWS
from warpsmith.kernels.attention.hopper_consumer import Consumer, row_descriptor
from warpsmith.types import b16, b64, f32, u32

if TYPE_CHECKING:
    from warpsmith.kernels.attention.hopper_config import Config, SharedMap
    from warpsmith.kernels.attention.hopper_item import Item

__all__ = ["Fp8Consumer"]


class Fp8Consumer(Consumer):
    """Registers and steps of one consumer warpgroup; `factors` are the addresses of those of Q, K and V, one a head of keys."""

    def __init__(self, c: Config, at: SharedMap, places: tuple[Any, Any, Any], factors: tuple[Any, Any, Any]) -> None:
        super().__init__(c, at, *places)
        self.factors = factors
        self.scale, self.value_scale, self._cap = reg.scalar(f32), reg.scalar(f32), reg.scalar(f32)
        if c.columns:
            self.key_column = reg.scalar(u32)
            ptx.inst.shl.b32(self.key_column, self.column, 1)
            half = c.keys // 16  # blocks of 8 columns
            self.key_of = lambda i: 16 * (i // 4 % half) + 2 * (i // 4 // half) + i % 2

    def _descriptors(self) -> None:
        super()._descriptors()
        self.v_descriptor = row_descriptor(self.base + self.at.v, self.at.key_span)

    def begin_item(self, item: Item) -> None:
        """Reset the row state and the output; read the factors of the item's head."""
        super().begin_item(item)
        c = self.c
        of_q, of_k = reg.scalar(f32), reg.scalar(f32)
        for value, start in zip((of_q, of_k, self.value_scale), self.factors, strict=True):
            address = reg.scalar(b64)
            ptx.inst.mad.wide.u32(address, item.key_head, 4, start)
            ptx.inst.ld.global_.nc.f32(value, ptx.addr(address))
        ptx.inst.mul.rn.f32(self.scale, of_q, of_k)
        if c.soft_cap:
            ptx.inst.mul.rn.f32(self._cap, self.scale, c.scale_log2 / math.log2(math.e) / c.soft_cap)
            ptx.inst.mov.f32(self.scale, c.exponent_scale)
        else:
            ptx.inst.mul.rn.f32(self.scale, self.scale, c.scale_log2)

    def cap_factor(self) -> Any:
        """Return the factor that turns raw scores into units of the soft cap."""
        return self._cap

    def issue_output(self) -> Any:
        """Wait for the next V tile, issue O += P V and commit it; return the barrier that gives the tile back."""
        c, span = self.c, self.at.key_span
        v, free = self._next_tile(self.v_ring, self.at.v_full, self.at.v_free, self.at.v_bytes, self.v_descriptor)
        ptx.wgmma.fence()
        for step in range(c.keys // c.step):
            stripe, inner = divmod(step, span // 32)
            ptx.wgmma.mma_async(
                shape=(ROWS, c.width, c.step),
                dtype_d=f32,
                dtype_a=self.dtype,
                dtype_b=self.dtype,
                d=self.output,
                a=self.packed[4 * step : 4 * step + 4],
                b=v + (stripe * (c.width * span >> 4) + 2 * inner),
                scale_d=True,
            )
        ptx.wgmma.commit_group()
        return free

    def pack(self, scores: Any) -> None:
        """Round the probabilities to e4m3, into the A operand of the next P V.

        Register 4s + 2h + r of A holds row r·8 + lane div 4, positions 32s + 16h + 4q and the three behind it.
        """
        c = self.c
        for step in range(c.keys // c.step):
            for part in range(4):
                h, r = divmod(part, 2)
                place = 2 * step + h
                blocks = (place, place + c.keys // 16) if c.columns else (2 * place, 2 * place + 1)
                pairs = [reg.scalar(b16) for _ in blocks]
                for pair, block in zip(pairs, blocks, strict=True):
                    at = 4 * block + 2 * r
                    ptx.inst.cvt.rn.satfinite.e4m3x2.f32(pair, scores[at + 1], scores[at])
                ptx.inst.mov.b32(self.packed[4 * step + part], pairs)
