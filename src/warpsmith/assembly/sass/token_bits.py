"""Numbers of a text to the bits of a field: the inverse of `Field.text`."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.floats import FLOAT_KINDS, format_float
from warpsmith.assembly.sass.row import scatter

if TYPE_CHECKING:
    from warpsmith.assembly.sass.row import Field

__all__ = ["REGISTERS", "FieldBits", "field_bits", "integer", "nearest_float"]

REGISTERS = {"R": "Z", "UR": "Z", "P": "T", "UP": "T"}
"""Kind of a register -> what stands for all ones."""

_NONFINITE = ("INF", "QNAN", "SNAN")
_MANY = 100_000
_FAR = 400
"""Powers of ten beyond all floats, and below the least of them."""


def field_bits(f: Field, token: str, sign: str = "", address: int = 0) -> int | None:
    """Return the bits of a field for a number of the text, None if no value of the field prints like it.

    `token` is the number as `lex.split` cuts it (`12` or `Z` of a register, `0x10`, `0.5`, `INF`), `sign` what is before it.
    """
    if f.kind in FLOAT_KINDS:
        return _float_bits(f.kind, token, sign)
    ones = (1 << f.width) - 1
    if f.kind in REGISTERS:
        if token == REGISTERS[f.kind]:
            return ones
        return int(token) if token.isdecimal() and len(token) <= 9 and int(token) < ones else None
    number = integer(token, sign)
    if number is None:
        return None
    number -= f.offset + (address if f.kind == "r" else 0)
    if number & ((1 << f.shift) - 1):
        return None
    number >>= f.shift
    low, high = (0, ones) if f.kind == "u" else (-(ones + 1 >> 1), ones >> 1)
    return number & ones if low <= number <= high else None


def integer(token: str, sign: str) -> int | None:
    """Return the number of a token, decimal or hexadecimal; None for what is no integer."""
    try:
        number = int(token, 16 if token[:2] in ("0x", "0X") else 10)
    except ValueError:
        return None
    return -number if sign == "-" else number


def _float_bits(kind: str, token: str, sign: str) -> int | None:
    width, exponent = FLOAT_KINDS[kind]
    mantissa = width - 1 - exponent
    top = 1 << (width - 1) if sign == "-" else 0
    if token in _NONFINITE:
        infinite = ((1 << exponent) - 1) << mantissa
        return top | infinite | {"INF": 0, "QNAN": (1 << mantissa) - 1, "SNAN": 1}[token]
    bits = _quick(kind, token)
    if bits is not None and format_float(kind, bits) == token:
        return top | bits
    try:
        bits = nearest_float(kind, token)
    except ValueError:
        return None
    if bits is None or (format_float(kind, bits) != token and _exact(kind, bits) != _decimal(token)):
        return None
    return top | bits


def _quick(kind: str, token: str) -> int | None:
    """Return what a text that the disassembler wrote most likely stands for."""
    try:
        value = float(token)
        if kind == "f16":
            return int.from_bytes(struct.pack("<e", value), "little")
        if kind == "f64":
            return int.from_bytes(struct.pack("<d", value), "little") >> 32
        bits = int.from_bytes(struct.pack("<f", value), "little")
    except (ValueError, OverflowError):
        return None
    return bits >> 16 if kind == "bf16" else bits


def nearest_float(kind: str, token: str) -> int | None:
    """Return the bits of the value of a kind nearest to a decimal number without sign; None for one beyond all.

    Raises `ValueError` for what is no decimal number.
    """
    value = _decimal(token)
    width, exponent = FLOAT_KINDS[kind]
    low, high = 0, ((1 << exponent) - 1) << (width - 1 - exponent)  # zero, infinity
    while high - low > 1:  # bit patterns are ordered as the values are
        middle = (low + high) // 2
        low, high = (middle, high) if _exact(kind, middle) <= value else (low, middle)
    if high == ((1 << exponent) - 1) << (width - 1 - exponent):
        below = _exact(kind, low)
        return low if value - below < (below - _exact(kind, low - 1)) / 2 else None
    below, above = value - _exact(kind, low), _exact(kind, high) - value
    return low if below < above or (below == above and not low & 1) else high


def _decimal(token: str) -> Fraction:
    """Return the value of a decimal number, one as far beyond all floats in the place of one with a larger exponent."""
    digits, e, power = token.lower().partition("e")
    if not e:
        return Fraction(token)
    limit = _FAR + len(digits)
    return Fraction(f"{digits}e{min(max(int(power), -limit), limit)}")


def _exact(kind: str, bits: int) -> Fraction:
    """Return the value of finite bits without sign."""
    width, exponent = FLOAT_KINDS[kind]
    mantissa = width - 1 - exponent
    power, fraction = bits >> mantissa, bits & ((1 << mantissa) - 1)
    if power:
        fraction |= 1 << mantissa
    return Fraction(fraction) * Fraction(2) ** (max(power, 1) - (1 << (exponent - 1)) + 1 - mantissa)


@final
class FieldBits(dict[str, "int | None"]):
    """Number of a text -> bits of a field, in place; worked out when first asked for."""

    __slots__ = ("field", "sign")

    def __init__(self, field: Field, sign: str) -> None:
        super().__init__()
        self.field = field
        self.sign = sign

    def __missing__(self, token: str) -> int | None:
        if len(self) > _MANY:
            self.clear()
        bits = field_bits(self.field, token, self.sign)
        placed = self[token] = None if bits is None else scatter(bits, self.field.bits)
        return placed
