"""Powers of two of scaled scores: on the special-function unit, or for some pairs on the FMA pipes.

The polynomial is the cubic that FlashAttention-4 publishes, relative error 9e-5 on [0, 1): below the rounding of P. Floor by
adding 1.5·2²³ rounded down; the exponent is added to the bits. Packed f32x2 arithmetic, two values at once.
"""

from __future__ import annotations

import struct
from typing import Any, final

from warpsmith import ptx, reg
from warpsmith.types import b32, b64

__all__ = ["Exponent"]

_ROUND = 12582912.0
"""1.5 · 2²³."""
_LOWEST = -127.0
"""Arguments below it would wrap the exponent."""
_CUBIC = (1.0, 0.6951461434364319, 0.22756439447402954, 0.07711908966302872)


def _both(value: float) -> int:
    """The bits of a pair of equal f32."""
    return struct.unpack("<I", struct.pack("<f", value))[0] * 0x100000001


@final
class Exponent:
    """Computes 2^(scale·s - basis) in place."""

    def __init__(self, scale: float, emulated: tuple[int, ...]) -> None:
        self.scale, self.emulated = scale, emulated

    def apply(self, scores: Any, shift: Any, first: int = 0) -> None:
        """Replace raw scores by probabilities; `shift` is minus the basis, in powers of two.

        The first pair of scores is number `first` of the 16 that `emulated` counts.
        """
        for pair in range(len(scores) // 2):
            two = [scores[2 * pair], scores[2 * pair + 1]]
            if first + pair in self.emulated:
                self._polynomial(two, shift)
                continue
            for value in two:
                ptx.inst.fma.rn.f32(value, value, self.scale, shift)
                ptx.inst.ex2.approx.ftz.f32(value, value)

    def _polynomial(self, two: list[Any], shift: Any) -> None:
        rounder, unround, c0, c1, c2, c3 = (reg.scalar(b64, _both(v)) for v in (_ROUND, -_ROUND, *_CUBIC))
        x, whole, fraction, y = (reg.scalar(b64) for _ in range(4))
        for value in two:
            ptx.inst.fma.rn.f32(value, value, self.scale, shift)
            ptx.inst.max.ftz.f32(value, value, _LOWEST)
        ptx.inst.mov.b64(x, two)
        ptx.inst.add.rm.ftz.f32x2(whole, x, rounder)
        ptx.inst.add.rn.ftz.f32x2(fraction, whole, unround)
        ptx.inst.sub.rn.ftz.f32x2(fraction, x, fraction)
        ptx.inst.fma.rn.ftz.f32x2(y, c3, fraction, c2)
        ptx.inst.fma.rn.ftz.f32x2(y, y, fraction, c1)
        ptx.inst.fma.rn.ftz.f32x2(y, y, fraction, c0)
        steps, values = reg.array(b32, 2), reg.array(b32, 2)
        ptx.inst.mov.b64(steps, whole)
        ptx.inst.mov.b64(values, y)
        for value, step, mantissa in zip(two, steps, values, strict=True):
            bits = reg.scalar(b32)
            ptx.inst.shl.b32(bits, step, 23)
            ptx.inst.add.s32(bits, bits, mantissa)
            ptx.inst.mov.b32(value, bits)
