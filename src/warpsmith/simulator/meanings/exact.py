"""Scalar f64 arithmetic with integers: exact, then rounded once.

For the few lanes that error-free transformations do not cover.
"""

from __future__ import annotations

import math

__all__ = ["add", "div", "fma", "mul", "round_fraction", "sqrt"]

_LARGEST = (2 - 2.0**-52) * 2.0**1023


def _parts(x: float) -> tuple[int, int]:
    """Return (m, e) with x = m * 2^e exactly."""
    numerator, denominator = x.as_integer_ratio()
    return numerator, -(denominator.bit_length() - 1)


def _away(mode: str, negative: bool, odd: bool, rest: int, half: int) -> bool:
    """Say whether a magnitude with remainder `rest` (of 2 * half) rounds away from zero."""
    if rest == 0:
        return False
    if mode == "rn":
        return rest > half or (rest == half and odd)
    return mode == ("rm" if negative else "rp")


def round_fraction(numerator: int, denominator: int, exponent: int, mode: str) -> float:
    """Return numerator / denominator * 2^exponent rounded to float64 (denominator > 0, numerator not 0)."""
    negative, size = numerator < 0, abs(numerator)
    shift = size.bit_length() - denominator.bit_length() + exponent
    quantum = max(shift - 53, -1074)
    scale = exponent - quantum
    top = size << max(scale, 0)
    bottom = denominator << max(-scale, 0)
    m, rest = divmod(top, bottom)
    while m.bit_length() > 53:
        bottom <<= 1
        quantum += 1
        m, rest = divmod(top, bottom)
    if _away(mode, negative, bool(m & 1), 2 * rest, bottom):
        m += 1
    if m.bit_length() + quantum > 1024:
        infinite = mode == "rn" or mode == ("rm" if negative else "rp")
        value = math.inf if infinite else _LARGEST
    else:
        value = math.ldexp(m, quantum)
    return -value if negative else value


def add(a: float, b: float, mode: str) -> float:
    """Return a + b of finite numbers whose sum is not zero."""
    return fma(a, 1.0, b, mode)


def mul(a: float, b: float, mode: str) -> float:
    """Return a * b of finite nonzero numbers."""
    (ma, ea), (mb, eb) = _parts(a), _parts(b)
    return round_fraction(ma * mb, 1, ea + eb, mode)


def fma(a: float, b: float, c: float, mode: str) -> float:
    """Return a * b + c of finite numbers, a * b not zero."""
    (ma, ea), (mb, eb), (mc, ec) = _parts(a), _parts(b), _parts(c)
    ep = ea + eb
    e = min(ep, ec)
    total = (ma * mb << (ep - e)) + (mc << (ec - e))
    if total == 0:
        return -0.0 if mode == "rm" else 0.0
    return round_fraction(total, 1, e, mode)


def div(a: float, b: float, mode: str) -> float:
    """Return a / b of finite nonzero numbers."""
    (ma, ea), (mb, eb) = _parts(a), _parts(b)
    if mb < 0:
        ma, mb = -ma, -mb
    return round_fraction(ma, mb, ea - eb, mode)


def sqrt(a: float, mode: str) -> float:
    """Return the square root of a positive finite number."""
    m, e = _parts(a)
    shift = 2 * max(0, 60 - m.bit_length() // 2) + (e & 1)
    m, e = m << shift, e - shift
    root = math.isqrt(m)
    sticky = 1 if root * root != m else 0
    return round_fraction(2 * root + sticky, 1, e // 2 - 1, mode)
