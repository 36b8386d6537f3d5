"""Conversions between packed registers: f16x2, bf16x2 and the 8-, 6- and 4-bit formats, and cvt.pack of integers.

With `.scaled::n2::ue8m0` the last operand holds a power of two for each element: conversions to bf16 multiply the converted
value by it, those to s2f6 divide before they convert. With `.scaled::n1::ue8m0` it holds one power of two by which all elements
are divided, subnormal ones flushed before. Either is exact in float64, so one rounding follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings import half
from warpsmith.simulator.meanings.convert_fixed import to_fixed
from warpsmith.simulator.meanings.convert_stochastic import stochastic
from warpsmith.simulator.meanings.formats import FORMATS, Format, decode, encode
from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.integer import dtype_of
from warpsmith.simulator.meanings.registry import Refused, refuse
from warpsmith.simulator.meanings.rounding import quantize, round_to
from warpsmith.simulator.meanings.single import flush, has_nan

__all__ = ["handles", "pack", "packed"]

Array = NDArray[Any]
F64 = NDArray[np.float64]
Fn = Callable[..., None]
_1, _16, _BELOW_HALF, _UPPER = np.uint32(1), np.uint32(16), np.uint32(0x7FFF), np.uint32(0xFFFF0000)
_SMALL = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "ue8m0", "ue4m3")
_SCALED, _DIVIDED = "scaled::n2::ue8m0", "scaled::n1::ue8m0"
_SMALLEST = {"f32": 2.0**-126, "f16": 2.0**-14, "bf16": 2.0**-126}
"""The smallest normal number of a source."""


def handles(to: str, source: str) -> bool:
    """Say whether a type pair is packed or small."""
    return "x" in to or "x" in source or to in _SMALL or source in _SMALL


def _lanes(kind: str) -> int:
    return int(kind.rpartition("x")[2]) if "x" in kind else 1


def _slot_bits(element: str) -> int:
    """Bits an element occupies in its register: a 6-bit code lives in a byte."""
    return 8 if FORMATS[element].bits == 6 else FORMATS[element].bits


def _code_dtype(bits: int) -> np.dtype[Any]:
    return np.dtype(np.uint16) if bits == 16 else np.dtype(np.uint8)


def unpack(register: Array, kind: str) -> list[F64]:
    """Return the element values of a packed register, lowest first."""
    element = half.element_of(kind)
    bits = _slot_bits(element)
    word = np.asarray(register)
    mask = (1 << bits) - 1
    dtype = _code_dtype(bits)
    return [
        decode((word >> word.dtype.type(bits * i) & word.dtype.type(mask)).astype(dtype), element) for i in range(_lanes(kind))
    ]


def join(codes: list[Array], element: str, dtype: np.dtype[Any]) -> Array:
    """Pack element codes, lowest first, into registers."""
    bits = _slot_bits(element)
    out = codes[0].astype(np.uint64)
    for i, code in enumerate(codes[1:], 1):
        out = out | code.astype(np.uint64) << np.uint64(bits * i)
    return out.astype(dtype)


def _power_of_two(x: F64, mode: str, satfinite: bool) -> Array:
    """Return ue8m0 codes: the exponent, rounded towards zero or up; the sign is dropped."""
    size = np.abs(x)
    r = quantize(size, 1, -127, "rp" if mode == "rp" else "rz")
    r = np.where((r < 2.0**-127) & np.isfinite(x), 2.0**-127, r)
    limit = 2.0**127
    over = r > limit
    r = np.where(over, limit if satfinite else np.nan, r)
    exponent = np.frexp(np.where(np.isnan(r), 1.0, r))[1] - 1
    return np.where(np.isnan(r), 0xFF, exponent + 127).astype(np.uint8)


def narrow(x: F64, fmt: Format, form: Form) -> Array:
    """Round float64 values to the codes of one element type."""
    if fmt.name == "s2f6":
        return to_fixed(x, form)
    mode, satfinite = form.rounding or "rn", "satfinite" in form
    if fmt.name == "ue8m0":
        return _power_of_two(x, mode, satfinite)
    r = round_to(x, fmt, mode)
    if satfinite or fmt.infinity is None:
        r = np.clip(r, -fmt.largest, fmt.largest)
    if "relu" in form:
        r = np.where(r > 0, r, np.where(np.isnan(r), r, 0.0))
    if fmt.nan is None:
        r = np.where(np.isnan(r), fmt.largest, r)  # no NaN code: the largest value
    if "pzo" in form:
        r = r + 0.0  # -0.0 becomes 0.0
    return encode(r, fmt.name)


def packed(form: Form) -> Fn | Refused:
    """Build a conversion that writes or reads a packed or small register."""
    to, source = form.types[-2], form.types[-1]
    if form.rounding == "rs":
        return stochastic(form)
    element = half.element_of(to)
    for kind in (element, half.element_of(source)):
        if kind not in FORMATS:
            return refuse(f"conversions of .{kind} are not modelled: its exponent bias is not in the manual")
    if form.words in (("rn", "f16x2", "f32"), ("rn", "bf16x2", "f32")):
        return _nearest_pair(element)
    fmt = FORMATS[element]

    def from_f32(out: Array, *operands: Array) -> None:
        values = [np.asarray(flush(x) if form.ftz else x).astype(np.float64) for x in reversed(operands)]
        out[...] = join([narrow(v, fmt, form) for v in values], element, out.dtype)

    def from_packed(out: Array, a: Array) -> None:
        out[...] = join([narrow(v, fmt, form) for v in unpack(a, source)], element, out.dtype)

    def scaled(out: Array, *operands: Array) -> None:
        *inputs, factors = operands
        if source == "f32":
            values = [np.asarray(x).astype(np.float64) for x in reversed(inputs)]
        else:
            values = unpack(inputs[0], source)
        by = unpack(factors, "ue8m0x2")
        values = [v / s if element == "s2f6" else v * s for v, s in zip(values, by, strict=True)]
        out[...] = join([narrow(v, fmt, form) for v in values], element, out.dtype)

    def divided(out: Array, *operands: Array) -> None:
        *inputs, factor = operands
        if source == "f32":
            values = [np.asarray(x).astype(np.float64) for x in reversed(inputs)]
        else:
            values = unpack(inputs[0], source)
        by, smallest = decode(np.asarray(factor) & 0xFF, "ue8m0"), _SMALLEST[half.element_of(source)]
        values = [np.where(np.abs(v) < smallest, np.copysign(0.0, v), v) / by for v in values]
        out[...] = join([narrow(v, fmt, form) for v in values], element, out.dtype)

    if _DIVIDED in form:
        return divided
    if _SCALED in form:
        return scaled
    return from_f32 if source == "f32" else from_packed


def _rounded_up(x: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return f32 bits such that their upper half is the value rounded to bf16."""
    word = np.asarray(x).view(np.uint32)
    r: Any = np.right_shift(word, _16)
    r = np.bitwise_and(r, _1)
    r = np.add(r, _BELOW_HALF)
    r = np.add(r, word)
    if has_nan(x):
        r = np.where(np.isnan(x), np.uint32(0x7FFF0000), r)
    return r


def _nearest_pair(element: str) -> Fn:
    """Build cvt.rn.{f16x2,bf16x2}.f32 d, a, b: a in the upper half."""

    def bf16(out: NDArray[np.uint32], a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
        upper = np.bitwise_and(_rounded_up(a), _UPPER)
        np.bitwise_or(upper, np.right_shift(_rounded_up(b), _16), out)

    if element == "bf16":
        return bf16

    def fn(out: NDArray[np.uint32], a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
        upper, lower = half.store(np.asarray(a), element), half.store(np.asarray(b), element)
        if out.strides[-1] == out.itemsize:
            halves = out.view(np.uint16)
            halves[..., ::2] = lower
            halves[..., 1::2] = upper
        else:
            out[...] = upper.astype(np.uint32) << np.uint32(16) | lower

    return fn


def pack(form: Form) -> Fn:
    """Build cvt.pack: clamp a and b, join them (a above b), and with c shift c's low part above them."""
    to, source = form.words[2], form.words[3]
    bits = int(to[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if to[0] == "s" else (0, (1 << bits) - 1)
    kind = dtype_of(source)

    def clamp(x: Array) -> NDArray[np.int64]:
        return np.clip(np.asarray(x).view(kind).astype(np.int64), low, high) & ((1 << bits) - 1)

    def fn(out: Array, a: Array, b: Array, c: Array | None = None) -> None:
        both = clamp(a) << bits | clamp(b)
        if c is not None:
            both = both | np.asarray(c).astype(np.int64) << (2 * bits)
        out[...] = (both & 0xFFFFFFFF).astype(np.uint32).view(out.dtype)

    return fn
