"""Conversions (PTX ISA 9.7.9, cvt and cvt.pack): every pair of types, rounding mode and saturation.

A conversion is: read the source as exact float64 (64-bit integers apart), round to the destination's grid, apply
`.relu`, `.sat` and
`.satfinite`, encode. Packed forms do so for each element; the first operand lands in the upper half.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings import convert_packed, half
from warpsmith.simulator.meanings.convert_nan import nan_codes
from warpsmith.simulator.meanings.formats import FORMATS, encode
from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.integer import dtype_of
from warpsmith.simulator.meanings.registry import Refused
from warpsmith.simulator.meanings.rounding import force_odd, round_integral, round_to, two_sum
from warpsmith.simulator.meanings.single import NAN, canonical_nan, flush

__all__ = ["cvt"]

Array = NDArray[Any]
F64 = NDArray[np.float64]
Fn = Callable[..., None]

_TO_INTEGRAL = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}


def _is_integer(name: str) -> bool:
    return name[0] in "us" and name[1:].isdigit()


def cvt(form: Form) -> Fn | Refused:
    """Build cvt."""
    if form.words[0] == "pack":
        return convert_packed.pack(form)
    to, source = form.types[-2], form.types[-1]
    if convert_packed.handles(to, source):
        return convert_packed.packed(form)
    if _is_integer(to):
        return _integer_to_integer(form) if _is_integer(source) else _float_to_integer(form)
    return _integer_to_float(form) if _is_integer(source) else _float_to_float(form)


def _integer_to_integer(form: Form) -> Fn:
    """Extend, truncate, or clamp to the destination's range with `.sat`."""
    to, sat = dtype_of(form.types[-2]), "sat" in form
    low, high = int(np.iinfo(to).min), int(np.iinfo(to).max)

    def fn(out: Array, a: Array) -> None:
        a = np.asarray(a)
        if sat:
            info = np.iinfo(a.dtype)
            a = np.clip(a, a.dtype.type(max(low, int(info.min))), a.dtype.type(min(high, int(info.max))))
        out[...] = a.astype(to)

    return fn


def _load(form: Form, a: Any) -> F64:
    """Return a float operand as float64, subnormal f32 flushed with `.ftz` (which does nothing on the way to f16)."""
    source = form.types[-1]
    if source == "f64":
        return np.asarray(a)
    if source in ("f16", "bf16"):
        return half.load(a, source).astype(np.float64)
    return np.asarray(flush(a) if form.ftz and form.types[-2] != "f16" else a).astype(np.float64)


def _nan_integer(to: str, source: str) -> int:
    """What NaN becomes: 0, or the top bit alone when a 64-bit type takes part (H200; also the manual)."""
    bits = int(to[1:])
    return 1 << (bits - 1) if source == "f64" or bits == 64 else 0


def _float_to_integer(form: Form) -> Fn:
    """Round to an integer and clamp to the destination's range."""
    to, source = form.types[-2], form.types[-1]
    dtype, mode = dtype_of(to), _TO_INTEGRAL[form.rounding or "rzi"]
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    nan = np.array(_nan_integer(to, source), np.uint64).astype(dtype)

    def fn(out: Array, a: Array) -> None:
        x = round_integral(_load(form, a), mode)
        inside = (x > low) & (x < high)
        r = np.where(inside, x, 0.0).astype(dtype)
        r = np.where(x >= high, dtype.type(high), r)
        r = np.where(x <= low, dtype.type(low), r)
        out[...] = np.where(np.isnan(x), nan, r)

    return fn


def _wide_integer(a: Array) -> F64:
    """Return 64-bit integers rounded to odd in float64."""
    high = (a >> a.dtype.type(32)).astype(np.float64) * 2.0**32
    low = (a & a.dtype.type(0xFFFFFFFF)).astype(np.float64)
    s, e = two_sum(np.atleast_1d(high), np.atleast_1d(low))
    return force_odd(s, e).reshape(np.shape(a))


def _integer_to_double(a: Array, mode: str) -> F64:
    """Return integers rounded to float64."""
    a = np.asarray(a)
    near = a.astype(np.float64)
    if mode == "rn" or a.dtype.itemsize < 8:
        return near
    high = (a >> a.dtype.type(32)).astype(np.float64) * 2.0**32
    low = (a & a.dtype.type(0xFFFFFFFF)).astype(np.float64)
    s, e = two_sum(high, low)
    up = np.nextafter(s, np.inf)
    down = np.nextafter(s, -np.inf)
    if mode == "rp":
        return np.where(e > 0, up, s)
    if mode == "rm":
        return np.where(e < 0, down, s)
    return np.where((e < 0) & (s > 0), down, np.where((e > 0) & (s < 0), up, s))


def _integer_to_float(form: Form) -> Fn:
    """Round an integer to a float type; `.sat` clamps to [0, 1]."""
    to, mode, sat = form.types[-2], form.rounding or "rn", "sat" in form

    def fn(out: Array, a: Array) -> None:
        a = np.asarray(a)
        if to == "f64":
            r: Any = _integer_to_double(a, mode)
        else:
            r = round_to(_wide_integer(a) if a.dtype.itemsize == 8 else a.astype(np.float64), FORMATS[to], mode)
        if sat:
            r = np.clip(r, 0.0, 1.0)
        out[...] = _encode(r, to).view(out.dtype)

    return fn


def _saturated(x: F64) -> F64:
    """Clamp to [0, 1]; NaN and -0 become +0."""
    return np.where(x > 0, np.minimum(x, 1.0), 0.0)


def _encode(x: F64, to: str) -> Array:
    if to == "f32":
        r = np.asarray(x).astype(np.float32)
        return np.where(np.isnan(r), NAN, r)
    return encode(np.asarray(x), to)


def _float_to_float(form: Form) -> Fn:
    """Widen, narrow, or round to an integral value of the same type."""
    if form.words == ("rn", "f16", "f32"):
        return _narrow_nearest("f16")
    if form.words == ("rn", "bf16", "f32"):
        return _narrow_nearest("bf16")
    if form.words == ("f32", "f16"):
        return _widen_half
    return _general(form)


def _narrow_nearest(kind: str) -> Fn:
    def fn(out: NDArray[np.uint16], a: NDArray[np.float32]) -> None:
        out[...] = half.store(np.asarray(a), kind)

    return fn


def _widen_half(out: NDArray[np.float32], a: NDArray[np.uint16]) -> None:
    out[...] = half.load(a, "f16")
    canonical_nan(out)


def _general(form: Form) -> Fn:
    to = form.types[-2]
    fmt, rounding = FORMATS[to], form.rounding or "rn"
    integral, special = _TO_INTEGRAL.get(rounding), nan_codes(form)

    def fn(out: Array, a: Array) -> None:
        x = _load(form, a)
        nan = np.isnan(x)
        if integral:
            x = np.where(np.isfinite(x), np.copysign(round_integral(x, integral), x), x)
        else:
            x = round_to(x, fmt, rounding)
        if "satfinite" in form:
            x = np.clip(x, -fmt.largest, fmt.largest)
        if "relu" in form:
            x = np.where(x > 0, x, np.where(np.isnan(x), x, 0.0))
        if "sat" in form:
            x = _saturated(x)
        if "pzo" in form:
            x = x + 0.0  # -0.0 becomes 0.0
        r = encode(x, to)
        if to == "f32" and form.ftz:
            r = flush(r.view(np.float32)).view(np.uint32)
        if nan.any() and "sat" not in form:
            codes = np.asarray(a).view(f"u{np.asarray(a).dtype.itemsize}")
            r = np.where(nan, special(codes).astype(r.dtype), r)
        out[...] = r.view(out.dtype)

    return fn
