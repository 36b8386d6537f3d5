"""Elements of tensor-core operands: from the bits in registers and memory to values that numpy can multiply."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["INTEGERS", "WIDTH", "values"]

WIDTH = {
    "f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "u8": 8, "s8": 8, "u4": 4, "s4": 4, "b1": 1, "f64": 64,
    "e2m3": 8, "e3m2": 8, "e2m1": 8,
}  # fmt: skip
"""Bits of an element in a register or in shared memory (6- and 4-bit floats sit in bytes)."""
INTEGERS = ("u8", "s8", "u4", "s4", "b1")


@cache
def _table(type_: str) -> NDArray[np.float32]:
    """Return the value of every byte."""
    byte = np.arange(256, dtype=np.uint8)
    if type_ == "e4m3":
        return byte.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    if type_ == "e5m2":
        return byte.view(ml_dtypes.float8_e5m2).astype(np.float32)
    exponent, mantissa = {"e3m2": (3, 2), "e2m3": (2, 3), "e2m1": (2, 1)}[type_]
    code = (byte & 0x3F).astype(np.int64) >> (5 - exponent - mantissa)
    bias = (1 << exponent - 1) - 1
    e = code >> mantissa & (1 << exponent) - 1
    m = (code & (1 << mantissa) - 1) + ((e > 0) << mantissa)
    value = m * 2.0 ** (np.maximum(e, 1) - bias - mantissa)
    return np.where(code >> exponent + mantissa & 1, -value, value).astype(np.float32)


def values(bits: NDArray[Any], type_: str) -> NDArray[Any]:
    """Return elements as float32 (float64 for f64, int8 or uint8 for integers); `bits` are unsigned, one element each."""
    if type_ == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    if type_ == "f16":
        return np.ascontiguousarray(bits).view(np.float16).astype(np.float32)
    if type_ == "tf32":
        return (bits & np.uint32(0xFFFFE000)).view(np.float32)
    if type_ == "f64":
        return np.ascontiguousarray(bits).view(np.float64)
    if type_ in ("u8", "u4", "b1"):
        return bits.astype(np.uint8)
    if type_ == "s8":
        return bits.astype(np.uint8).view(np.int8)
    if type_ == "s4":
        return ((bits.astype(np.uint8) << 4).view(np.int8) >> 4).astype(np.int8)
    return _table(type_)[bits]
