"""Binary floating-point formats: their parameters, exact decoding to float64 and encoding of representable values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["FORMATS", "Format", "decode", "encode"]

Array = NDArray[Any]


@final
@dataclass(frozen=True, slots=True)
class Format:
    """A format: sign, `exponent_bits`, `precision` significant bits (the hidden one counted)."""

    name: str
    bits: int
    precision: int
    emin: int
    """Exponent of the smallest normal number."""
    largest: float
    """Largest finite value."""
    nan: int | None
    """Code of the NaN that instructions produce; None when the format has none."""
    infinity: int | None = None
    """Code of +infinity; None when the format has none."""
    signed: bool = True

    @property
    def sign(self) -> int:
        """The sign bit's mask, 0 for unsigned formats."""
        return 1 << (self.bits - 1) if self.signed else 0


def _table() -> dict[str, Format]:
    rows = [
        Format("f64", 64, 53, -1022, float(np.finfo(np.float64).max), 0x7FF8000000000000, 0x7FF0000000000000),
        Format("f32", 32, 24, -126, float(np.finfo(np.float32).max), 0x7FFFFFFF, 0x7F800000),
        Format("f16", 16, 11, -14, 65504.0, 0x7FFF, 0x7C00),
        Format("bf16", 16, 8, -126, (2.0 - 2.0**-7) * 2.0**127, 0x7FFF, 0x7F80),
        Format("tf32", 32, 11, -126, (2.0 - 2.0**-10) * 2.0**127, 0x7FFFFFFF, 0x7F800000),
        Format("e4m3", 8, 4, -6, 448.0, 0x7F),
        Format("e5m2", 8, 3, -14, 57344.0, 0x7F, 0x7C),
        Format("e2m3", 6, 4, 0, 7.5, None),
        Format("e3m2", 6, 3, -2, 28.0, None),
        Format("e2m1", 4, 2, 0, 6.0, None),
        Format("s2f6", 8, 7, 0, 127 / 64, None),  # fixed point: two's complement in units of 1/64
        Format("ue4m3", 8, 4, -6, 448.0, 0x7F, signed=False),
        Format("ue8m0", 8, 1, -127, 2.0**127, 0xFF, signed=False),
    ]
    return {f.name: f for f in rows}


FORMATS = _table()


def _decode_small(fmt: Format, code: int) -> float:
    """Value of one code of a format of at most 8 bits."""
    if fmt.name == "ue8m0":
        return float("nan") if code == 0xFF else 2.0 ** (code - 127)
    if fmt.name == "s2f6":
        return (code - 256 if code & fmt.sign else code) / 64
    mantissa_bits = fmt.precision - 1
    sign = -1.0 if code & fmt.sign else 1.0
    magnitude = code & ~fmt.sign & ((1 << fmt.bits) - 1)
    exponent, mantissa = magnitude >> mantissa_bits, magnitude & ((1 << mantissa_bits) - 1)
    if fmt.name in ("e4m3", "ue4m3") and magnitude & 0x7F == 0x7F:
        return float("nan")
    if fmt.name == "e5m2" and exponent == 31:
        return sign * (float("nan") if mantissa else float("inf"))
    if exponent == 0:
        return sign * mantissa * 2.0 ** (fmt.emin - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (fmt.emin + exponent - 1)


@cache
def _values(name: str) -> NDArray[np.float64]:
    """Values of all codes of a format of at most 8 bits, indexed by the byte that holds it (padding bits ignored)."""
    fmt = FORMATS[name]
    return np.array([_decode_small(fmt, code & ((1 << fmt.bits) - 1)) for code in range(256)])


@cache
def _codes(name: str) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """The non-negative finite values in ascending order and their codes."""
    fmt = FORMATS[name]
    codes = np.arange(1 << (fmt.bits - fmt.signed), dtype=np.uint8)
    values = _values(name)[codes]
    keep = np.isfinite(values)
    return values[keep], codes[keep]


def decode(bits: Array, name: str) -> NDArray[np.float64]:
    """Return the values of `bits` (uint8/16/32/64 holding one code each) as float64, exactly."""
    if name == "f64":
        return np.asarray(bits, np.uint64).view(np.float64)
    if name in ("f32", "tf32"):
        return np.asarray(bits, np.uint32).view(np.float32).astype(np.float64)
    if name == "f16":
        return np.asarray(bits, np.uint16).view(np.float16).astype(np.float64)
    if name == "bf16":
        return (np.asarray(bits, np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return _values(name)[np.asarray(bits, np.uint8)]


def encode(values: Array, name: str) -> Array:
    """Return the codes of float64 `values` that the format holds exactly; NaN and infinities as the format has them.

    Codes come in uint64, uint32, uint16 or uint8 by the format's width.
    """
    fmt = FORMATS[name]
    if name in ("f32", "tf32"):
        bits = values.astype(np.float32).view(np.uint32)
        return np.where(np.isnan(values), np.uint32(fmt.nan or 0), bits)
    if name == "f16":
        bits = values.astype(np.float16).view(np.uint16)
        return np.where(np.isnan(values), np.uint16(fmt.nan or 0), bits)
    if name == "bf16":
        bits = (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
        return np.where(np.isnan(values), np.uint16(fmt.nan or 0), bits)
    if name == "f64":
        return np.asarray(values, np.float64).view(np.uint64)
    grid, codes = _codes(name)
    magnitude = np.abs(values)
    out = codes[np.minimum(np.searchsorted(grid, magnitude), len(grid) - 1)]
    if fmt.infinity is not None:
        out = np.where(np.isinf(values), np.uint8(fmt.infinity), out)
    if fmt.signed:
        out = out | np.where(np.signbit(values), np.uint8(fmt.sign), np.uint8(0))
    if fmt.nan is not None:
        out = np.where(np.isnan(values), np.uint8(fmt.nan), out)
    return out
