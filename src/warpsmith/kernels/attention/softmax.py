"""Online softmax on accumulator fragments (Milakov and Gimelshein 2018; FlashAttention-2, Dao 2023).

Both attention kernels hold scores in the m16n8 accumulator layout of mma.sync and wgmma (PTX ISA 9.7.14.5.8 and
9.7.15.5.1): of every 8 columns a thread holds columns 2q and 2q+1 (q = lane mod 4) of row g (g = lane div 4) in
values 0 and 1, and of row g + 8 in values 2 and 3. So value i belongs to row half (i div 2) mod 2 and to column 8·(i
div 4) + 2q + i mod 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warpsmith import ptx, reg
from warpsmith.types import b32, f32, pred, u32

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NEGATIVE", "RowState", "column_of", "mask_scores", "pack_probabilities", "quad_reduce", "rescale", "softmax_step"]

NEGATIVE = -3.0e38
"""Score of a key that may not be seen."""
LOWEST = -1.0e30
"""Running maximum of a row that has seen no key: so far above NEGATIVE that 2^(scale·(NEGATIVE − LOWEST)) is 0 however the
product of scale and maximum is rounded, and so far below every score that it never wins."""


@dataclass(slots=True)
class RowState:
    """Running maximum (raw scores), running sum and last rescale factor of a thread's two rows."""

    maximum: Any
    total: Any
    alpha: Any

    @staticmethod
    def declare() -> RowState:
        """Declare the registers of two rows."""
        return RowState(reg.array(f32, 2), reg.array(f32, 2), reg.array(f32, 2))

    def reset(self) -> None:
        """Start a new tile of queries."""
        for half in range(2):
            ptx.inst.mov.f32(self.maximum[half], LOWEST)
            ptx.inst.mov.f32(self.total[half], 0.0)


def column_of(i: int) -> int:
    """Return the column of value `i` of the first lane of a quad."""
    return 8 * (i // 4) + i % 2


def mask_scores(
    scores: Any,
    first_column: Any,
    limits: Any,
    lane_column: Any,
    key_of: Callable[[int], int] = column_of,
    *,
    before: bool = False,
) -> None:
    """Replace scores of columns >= limit, or with `before` those < limit, by NEGATIVE.

    `first_column` is the key index of the tile's column 0 (u32 register), `limits[half]` the first key index row `half`
    may not see. Value i of a lane belongs to key `lane_column + key_of(i)` of the tile; where keys are in order, that is
    2·(lane mod 4) and `column_of`.
    """
    for half in range(2):
        room = reg.scalar(u32)
        zero = reg.scalar(pred)
        base = reg.scalar(u32)
        ptx.inst.add.u32(base, first_column, lane_column)
        # columns still allowed, counted from this thread's first column; saturates at 0
        ptx.inst.setp.le.u32(zero, limits[half], base)
        ptx.inst.sub.u32(room, limits[half], base)
        ptx.inst.selp.b32(room, 0, room, zero)
        for i in range(len(scores)):
            if (i // 2) % 2 != half:
                continue
            hidden = reg.scalar(pred)
            getattr(ptx.inst.setp, "gt" if before else "le").u32(hidden, room, key_of(i))
            ptx.inst.selp.f32(scores[i], NEGATIVE, scores[i], hidden)


def quad_reduce(value: Any, operation: str) -> None:
    """Reduce a value over the four lanes that share a row, leaving it in all four; `operation` is "max" or "add"."""
    other = reg.scalar(b32)
    for distance in (1, 2):
        ptx.inst.shfl.sync.bfly.b32(other, value, distance, 31, 0xFFFFFFFF)
        if operation == "max":
            ptx.inst.max.f32(value, value, other)
        else:
            ptx.inst.add.rn.f32(value, value, other)


_ROUND = 12582912.0
"""1.5 · 2²³: adding it leaves the integer part in the low bits of an f32."""
_EXP2 = (1.0, 0.69514614, 0.22756439, 0.07711909)
"""Cubic for 2^f on [0, 1): relative error 9e-5, below 16-bit rounding (as FlashAttention-4 publishes it)."""


def _exp2_polynomial(value: Any) -> None:
    """Replace a non-positive f32 by 2^value on the FMA pipes: floor, cubic of the fraction, exponent added to the bits."""
    shifted, whole, fraction, result = (reg.scalar(f32) for _ in range(4))
    ptx.inst.max.f32(value, value, -127.0)
    ptx.inst.add.rm.f32(shifted, value, _ROUND)
    ptx.inst.sub.rn.f32(whole, shifted, _ROUND)
    ptx.inst.sub.rn.f32(fraction, value, whole)
    ptx.inst.fma.rn.f32(result, fraction, _EXP2[3], _EXP2[2])
    ptx.inst.fma.rn.f32(result, result, fraction, _EXP2[1])
    ptx.inst.fma.rn.f32(result, result, fraction, _EXP2[0])
    bits, power = reg.scalar(b32), reg.scalar(b32)
    ptx.inst.mov.b32(bits, shifted)
    ptx.inst.mov.b32(power, result)
    ptx.inst.shl.b32(bits, bits, 23)
    ptx.inst.add.s32(bits, bits, power)
    ptx.inst.mov.b32(value, bits)


def softmax_step(
    scores: Any, state: RowState, scale_log2: Any, *, emulated: int = 0, threshold: float = 0.0, offset: float = 0.0
) -> Any:
    """Turn raw scores into probabilities in place and update the rows' maximum and (this thread's part of the) total.

    p = 2^(scale·(s − m) + offset), scale already multiplied by log2(e), as one fma and one ex2; of every 16 values
    `emulated` are computed by a polynomial instead, because ex2 has an eighth of the rate of fma. The scale is a number or
    an f32 register, positive.

    With a `threshold` (in powers of two) the maximum moves only when a row exceeds it by more: p stays below
    2^threshold, the result is the same, and most tiles need no rescaling. Return the predicate "some row of this warp
    moved", None without a threshold (rescale always).
    """
    moved = None
    for half in range(2):
        mine = [scores[i] for i in range(len(scores)) if (i // 2) % 2 == half]
        fresh, shift = reg.scalar(f32), reg.scalar(f32)
        ptx.inst.max.f32(fresh, state.maximum[half], mine[0])
        for value in mine[1:]:
            ptx.inst.max.f32(fresh, fresh, value)
        quad_reduce(fresh, "max")
        if threshold:
            rise, keep = reg.scalar(f32), reg.scalar(pred)
            ptx.inst.sub.rn.f32(rise, fresh, state.maximum[half])
            if isinstance(scale_log2, float):
                ptx.inst.setp.le.f32(keep, rise, threshold / scale_log2)
            else:
                ptx.inst.mul.rn.f32(rise, rise, scale_log2)
                ptx.inst.setp.le.f32(keep, rise, threshold)
            ptx.inst.selp.f32(fresh, state.maximum[half], fresh, keep)
            moved = keep if moved is None else _both(moved, keep)
        ptx.inst.sub.rn.f32(state.alpha[half], state.maximum[half], fresh)
        ptx.inst.mul.rn.f32(state.alpha[half], state.alpha[half], scale_log2)
        ptx.inst.ex2.approx.ftz.f32(state.alpha[half], state.alpha[half])
        ptx.inst.mov.f32(state.maximum[half], fresh)
        _shift(shift, fresh, scale_log2, offset)
        for value in mine:
            ptx.inst.fma.rn.f32(value, value, scale_log2, shift)
        for i, value in enumerate(mine):
            if (i * emulated) // 16 != ((i + 1) * emulated) // 16:
                _exp2_polynomial(value)
            else:
                ptx.inst.ex2.approx.ftz.f32(value, value)
        ptx.inst.mul.rn.f32(state.total[half], state.total[half], state.alpha[half])
        for value in mine:
            ptx.inst.add.rn.f32(state.total[half], state.total[half], value)
    if moved is None:
        return None
    calm, needed = reg.scalar(pred), reg.scalar(pred)
    ptx.inst.vote.sync.all.pred(calm, moved, 0xFFFFFFFF)
    ptx.inst.not_.pred(needed, calm)
    return needed


def _shift(shift: Any, maximum: Any, scale_log2: Any, offset: float) -> None:
    """Write offset − scale · maximum."""
    negative = -scale_log2 if isinstance(scale_log2, float) else reg.scalar(f32)
    if not isinstance(scale_log2, float):
        ptx.inst.neg.f32(negative, scale_log2)
    if offset:
        ptx.inst.fma.rn.f32(shift, maximum, negative, offset)
    else:
        ptx.inst.mul.rn.f32(shift, maximum, negative)


def _both(a: Any, b: Any) -> Any:
    c = reg.scalar(pred)
    ptx.inst.and_.pred(c, a, b)
    return c


def rescale(accumulator: Any, state: RowState, needed: Any = None) -> None:
    """Multiply the output accumulator by alpha, row by row; skipped where the predicate `needed` is false."""
    if needed is not None:
        with ptx.if_(needed):
            rescale(accumulator, state)
        return
    for i in range(len(accumulator)):
        ptx.inst.mul.rn.f32(accumulator[i], accumulator[i], state.alpha[(i // 2) % 2])


def pack_probabilities(packed: Any, scores: Any, dtype: Any) -> None:
    """Round pairs of probabilities to 16 bits: the accumulator layout of two n8 blocks is the A layout of one k16 step."""
    for i in range(len(packed)):
        getattr(ptx.inst.cvt.rn, f"{dtype.name}x2").f32(packed[i], scores[2 * i + 1], scores[2 * i])
