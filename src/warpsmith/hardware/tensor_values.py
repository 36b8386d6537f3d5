"""Operands for tensor cores: codes of a type from a counter-based generator, in regimes that strain a sum differently.

| regime | floating values | integers |
|---|---|---|
| 0 near | exponents within 3 of 1 | any |
| 1 wide | every finite exponent | any |
| 2 spread | exponents within 12 of 1 | extremes |
| 3 tiny | subnormals and the least normals | any |
| 4 special | one in eight a zero, an infinity, a NaN or an extreme | extremes |
| 5 huge | the three greatest exponents | any |
| 6 bits | any code | any |
| 7 short | few significant bits, one in four zero | small |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["REGIMES", "SUMS", "WIDTHS", "codes", "metadata", "mix", "sums"]

REGIMES = 8
SUMS = 6
"""Regimes of C: near, zero, wide, spread, special, huge."""
_OF_SUMS = (0, 7, 1, 2, 4, 5)
_FLOATS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 23), "f32": (8, 23), "e4m3": (4, 3), "e5m2": (5, 2), "f64": (11, 52)}
"""Type -> bits of exponent and of fraction."""
WIDTHS = {**{t: 1 + sum(p) for t, p in _FLOATS.items()}, "u8": 8, "s8": 8, "u4": 4, "s4": 4, "b1": 1, "s32": 32}
"""Bits of an element."""
_U = np.uint64


def mix(index: NDArray[np.uint64], stream: int) -> NDArray[np.uint64]:
    """Return 64 random bits for each index: splitmix64's output function."""
    z = (index + _U(stream << 40)) * _U(0x9E3779B97F4A7C15)
    z = (z ^ (z >> _U(30))) * _U(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> _U(27))) * _U(0x94D049BB133111EB)
    return z ^ (z >> _U(31))


def codes(type_: str, index: NDArray[np.uint64], regime: NDArray[np.intp], stream: int) -> NDArray[np.uint64]:
    """Return the codes of elements `index` of a stream, each in its regime."""
    r, how = mix(index, 2 * stream), mix(index, 2 * stream + 1)
    if type_ in _FLOATS:
        return _floats(type_, r, how, regime)
    return _integers(WIDTHS[type_], r, how, regime)


def sums(type_: str, index: NDArray[np.uint64], regime: NDArray[np.intp], stream: int) -> NDArray[np.uint64]:
    """Return the codes of C in the regimes of `SUMS`."""
    if type_ == "s32":
        r = mix(index, 2 * stream)
        near = (r >> _U(44)) ^ np.where(r & _U(1) != 0, _U(0x7FFFFFFF), _U(0x80000000))
        chosen = np.choose(regime % 4, [r >> _U(44), np.zeros_like(r), r >> _U(32), near])
        return chosen & _U(0xFFFFFFFF)
    found = codes(type_, index, np.asarray(_OF_SUMS)[regime], stream)
    return np.where(regime == 1, _U(0), found)


def _floats(type_: str, r: Any, how: Any, regime: NDArray[np.intp]) -> NDArray[np.uint64]:
    exponent, fraction = _FLOATS[type_]
    bias, top = (1 << exponent - 1) - 1, (1 << exponent) - 1
    high = top if type_ == "e4m3" else top - 1
    span = how >> _U(8)

    def between(low: int, last: int) -> Any:
        low, last = max(low, 0), min(last, high)
        return _U(low) + span % _U(last - low + 1)

    near, tiny, huge = between(bias - 3, bias + 3), between(0, 2), between(high - 2, high)
    chosen = [
        near,
        between(0, high),
        between(bias - 12, bias + 12),
        tiny,
        near,
        huge,
        span & _U(top),
        between(bias - 6, bias + 6),
    ]
    e = np.choose(regime, chosen)
    m = r & _U((1 << fraction) - 1)
    m = np.where(regime == 7, m & ~_U((1 << max(0, fraction - 2)) - 1), m)
    sign = (r >> _U(63)) << _U(exponent + fraction)
    value = sign | e << _U(fraction) | m
    if type_ == "tf32":  # the thirteen low bits are not the type's: they stay random in one regime
        value = np.where(regime == 6, value, value & ~_U(0x1FFF))
    value = np.where((regime == 7) & (how & _U(3) == _U(0)), sign, value)
    special = np.asarray(_specials(type_), np.uint64)[(span % _U(10)).astype(np.intp)]
    return np.where((regime == 4) & (how & _U(7) == _U(0)), special, value)


def _specials(type_: str) -> list[int]:
    exponent, fraction = _FLOATS[type_]
    sign, one = 1 << exponent + fraction, ((1 << exponent - 1) - 1) << fraction
    infinite = ((1 << exponent) - 1) << fraction
    if type_ == "e4m3":
        return [0, sign, 0x7E, 0xFE, 0x7F, 0xFF, 1, 0x81, one, one | sign]
    nan = infinite | (1 << fraction - 1) | 1
    least = 1 << 13 if type_ == "tf32" else 1
    return [0, sign, infinite, infinite | sign, nan, nan | sign, infinite - least, (infinite - least) | sign, least, one]


def _integers(bits: int, r: Any, how: Any, regime: NDArray[np.intp]) -> NDArray[np.uint64]:
    mask = (1 << bits) - 1
    value = r & _U(mask)
    top = 1 << bits - 1
    extremes = np.asarray([top, top - 1, mask, top], np.uint64)[(how & _U(3)).astype(np.intp)] & _U(mask)
    value = np.where((regime == 2) | (regime == 4), extremes, value)
    return np.where(regime == 7, value & _U(min(mask, 3)), value)


def metadata(type_: str, index: NDArray[np.uint64], stream: int) -> NDArray[np.uint32]:
    """Return words of eight codes that the manual defines for a sparse A of a type."""
    allowed = np.asarray((4, 14) if type_ == "tf32" else (4, 8, 9, 12, 13, 14), np.uint64)
    r = mix(index, 2 * stream)
    word = np.zeros(index.shape, np.uint64)
    for k in range(8):
        word |= allowed[((r >> _U(8 * k)) % _U(len(allowed))).astype(np.intp)] << _U(4 * k)
    return word.astype(np.uint32)
