"""Print the bits of floating immediates as the disassembler does.

Twenty significant digits (`%.20g`, and `%.20e` from 1e9 on for binary32); `+INF `, `-QNAN `, …, and `-0.0 ` end in a blank
of their own.
"""

from __future__ import annotations

import struct

__all__ = ["FLOAT_KINDS", "format_float"]

FLOAT_KINDS = {"f16": (16, 5), "bf16": (16, 8), "f32": (32, 8), "f64": (32, 11)}
"""Kind -> (bits of the field, bits of the exponent); `f64` is the upper half of a binary64, the lower half zero."""


def format_float(kind: str, bits: int) -> str:
    """Return the text of the immediate whose bits are `bits`."""
    width, exponent = FLOAT_KINDS[kind]
    mantissa = width - 1 - exponent
    sign = "-" if bits >> (width - 1) else "+"
    fraction = bits & ((1 << mantissa) - 1)
    if bits >> mantissa & ((1 << exponent) - 1) == (1 << exponent) - 1:
        if not fraction:
            return f"{sign}INF "
        return f"{sign}{'QNAN' if fraction >> (mantissa - 1) else 'SNAN'} "
    value = _value(kind, bits)
    if value == 0:
        return "-0.0 " if sign == "-" else "0"
    return f"{value:.20e}" if abs(value) >= 1e9 else f"{value:.20g}"


def _value(kind: str, bits: int) -> float:
    if kind == "f16":
        return struct.unpack("<e", bits.to_bytes(2, "little"))[0]
    if kind == "f64":
        return struct.unpack("<d", bytes(4) + bits.to_bytes(4, "little"))[0]
    return struct.unpack("<f", (bits << 16 if kind == "bf16" else bits).to_bytes(4, "little"))[0]
