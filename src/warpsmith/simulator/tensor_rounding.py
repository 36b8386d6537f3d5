"""The last step of a tensor core's sum: to the format of the accumulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    F32 = NDArray[np.float32]
    F64 = NDArray[np.float64]

__all__ = ["Rounding", "round_sums"]

Rounding = Literal["rz32", "rz_e8m13", "rne16"]


def round_sums(value: F64, rounding: Rounding) -> F32:
    """Round float64 sums to the accumulator's format; NaN becomes the canonical one and −0 becomes +0."""
    if rounding == "rne16":
        half = value.astype(np.float16)
        nan = np.isnan(half)
        out = half.astype(np.float32)
    else:
        drop = 29 if rounding == "rz32" else 39
        bits = value.view(np.int64) & ~((1 << drop) - 1)
        out = bits.view(np.float64).astype(np.float32)
        small = np.abs(value) < 2.0**-126
        if small.any():
            unit = 2.0**-149 if rounding == "rz32" else 2.0**-139
            out[small] = np.trunc(value[small] / unit) * unit
        nan = np.isnan(value)
    out += np.float32(0)
    if nan.any():
        out.view(np.uint32)[nan] = 0x7FFFFFFF
    return out
