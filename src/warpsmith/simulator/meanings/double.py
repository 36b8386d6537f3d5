"""Double-precision arithmetic (PTX ISA 9.7.3): every result is the exact one rounded once, in all four modes.

Sums, products and quotients come with their exact remainder from error-free transformations, which then decides the
direction. Where
those do not hold (near overflow and underflow) the lanes concerned are computed with integers in `exact.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings import exact
from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.rounding import force_odd, two_product, two_sum

__all__ = ["BUILDERS", "nan_result"]

F64 = NDArray[np.float64]
Fn = Callable[..., None]
_SIGN = np.uint64(1 << 63)
_QUIET = np.uint64(0x0008000000000000)
NAN: Any = np.array([0xFFF8000000000000], np.uint64).view(np.float64)[0]
"""What an invalid f64 operation gives."""


def nan_result(out: F64, *operands: F64) -> F64:
    """Give NaN results their payload: that of the last NaN among `operands`, made quiet; else the default NaN."""
    bad = np.isnan(out)
    if not bad.any():
        return out
    result = np.where(bad, NAN, out)
    for x in operands:
        x = np.asarray(x)
        quiet = (x.view(np.uint64) | _QUIET).view(np.float64)
        result = np.where(bad & np.isnan(x), quiet, result)
    return result


def _directed(s: F64, e: F64, mode: str) -> F64:
    """Round s + e in a mode, s being the nearest float64 and e the remainder (or anything of its sign)."""
    up = (e > 0) & (s != np.inf)
    down = (e < 0) & (s != -np.inf)
    if mode == "rm":
        return np.where(down, np.nextafter(s, -np.inf), s)
    if mode == "rp":
        return np.where(up, np.nextafter(s, np.inf), s)
    inward = (up & (s < 0)) | (down & (s > 0))
    return np.where(inward, np.nextafter(s, 0.0), s)


def _unsafe(*values: F64) -> NDArray[np.bool_]:
    """Lanes where a magnitude is finite, nonzero and outside 2^-450 … 2^450."""
    bad = np.zeros((), np.bool_)
    for v in values:
        size = np.abs(v)
        bad = bad | ((size != 0) & (size < 2.0**-450)) | ((size > 2.0**450) & np.isfinite(size))
    return bad


def _patch(result: F64, lanes: NDArray[np.bool_], scalar: Callable[..., float], mode: str, *operands: F64) -> F64:
    """Replace `lanes` of `result` by the scalar function's values."""
    lanes = np.broadcast_to(lanes, result.shape)
    if not lanes.any():
        return result
    result = result.copy()
    chosen = [np.broadcast_to(x, result.shape)[lanes] for x in operands]
    result[lanes] = [scalar(*(float(v) for v in values), mode) for values in zip(*chosen, strict=True)]
    return result


def _finite(*values: F64) -> NDArray[np.bool_]:
    ok = np.ones((), np.bool_)
    for v in values:
        ok = ok & np.isfinite(v)
    return ok


def sum_double(a: F64, b: F64, mode: str) -> F64:
    """Return a + b rounded in a directed mode."""
    a, b = np.broadcast_arrays(a, b)
    s, e = two_sum(a, b)
    r = np.where(_finite(a, b, s), _directed(s, e, mode), s)
    r = _patch(r, _finite(a, b) & ~np.isfinite(s), exact.add, mode, a, b)
    if mode == "rm":
        positive = (a == 0) & (b == 0) & ~np.signbit(a) & ~np.signbit(b)
        r = np.where((s == 0) & ~positive, -0.0, r)
    return r


def add_sub(form: Form) -> Fn:
    """Build add or sub."""
    negate, mode = form.opcode == "sub", form.rounding or "rn"

    def fn(out: F64, a: F64, b: F64) -> None:
        if mode == "rn":
            r = np.subtract(a, b) if negate else np.add(a, b)
        else:
            r = sum_double(np.asarray(a), -np.asarray(b) if negate else np.asarray(b), mode)
        out[...] = nan_result(r, a, b)

    return fn


def mul(form: Form) -> Fn:
    """Build mul."""
    mode = form.rounding or "rn"

    def fn(out: F64, a: F64, b: F64) -> None:
        p: Any = np.multiply(a, b)
        if mode != "rn":
            a, b = np.broadcast_arrays(a, b)
            r = np.where(_finite(a, b), _directed(*two_product(a, b), mode), p)
            p = _patch(r, _finite(a, b) & _unsafe(a, b) & (a != 0) & (b != 0), exact.mul, mode, a, b)
        out[...] = nan_result(p, a, b)

    return fn


def fused(a: F64, b: F64, c: F64, mode: str) -> F64:
    """Return a * b + c rounded once (Boldo and Melquiond's algorithm where it holds)."""
    a, b, c = np.broadcast_arrays(a, b, c)
    uh, ul = two_product(a, b)
    th, tl = two_sum(c, ul)
    vh, vl = two_sum(uh, th)
    z, ze = two_sum(tl, vl)
    z = force_odd(np.atleast_1d(z), np.atleast_1d(ze)).reshape(z.shape)
    s, e = two_sum(vh, z)
    r = s if mode == "rn" else _directed(s, e, mode)
    if mode == "rm":
        positive = (a * b == 0) & (c == 0) & ~np.signbit(a * b) & ~np.signbit(c)
        r = np.where((s == 0) & ~positive, -0.0, r)
    simple = ~_finite(a, b, c) | (a == 0) | (b == 0)
    product = np.where(_finite(a, b) & ~np.isfinite(c), 0.0, a * b)  # an overflowing product does not meet an infinite c
    r = np.where(simple, sum_double(product, c, mode) if mode != "rn" else product + c, r)
    return _patch(r, ~simple & _unsafe(a, b, c, uh), exact.fma, mode, a, b, c)


def fma(form: Form) -> Fn:
    """Build fma or mad of f64."""
    mode = form.rounding or "rn"

    def fn(out: F64, a: F64, b: F64, c: F64) -> None:
        out[...] = nan_result(fused(a, b, c, mode), a, c, b)

    return fn


def quotient(a: F64, b: F64, mode: str) -> F64:
    """Return a / b rounded once."""
    a, b = np.broadcast_arrays(a, b)
    q = a / b
    if mode == "rn":
        return q
    h, low = two_product(q, b)
    remainder = (a - h) - low
    r = np.where(_finite(a, b, q) & (b != 0), _directed(q, np.where(b < 0, -remainder, remainder), mode), q)
    return _patch(r, _finite(a, b) & (a != 0) & (b != 0) & _unsafe(a, b, q), exact.div, mode, a, b)


def div(form: Form) -> Fn:
    """Build div."""
    mode = form.rounding or "rn"

    def fn(out: F64, a: F64, b: F64) -> None:
        out[...] = nan_result(quotient(a, b, mode), b, a)

    return fn


def reciprocal(form: Form) -> Fn:
    """Build rcp with a rounding modifier."""
    mode, one = form.rounding or "rn", np.ones((), np.float64)

    def fn(out: F64, a: F64) -> None:
        out[...] = nan_result(quotient(one, a, mode), a)

    return fn


def square_root(form: Form) -> Fn:
    """Build sqrt."""
    mode = form.rounding or "rn"

    def fn(out: F64, a: F64) -> None:
        s: Any = np.sqrt(a)
        if mode != "rn":
            h, low = two_product(s, s)
            ok = np.isfinite(s) & (s > 0)
            r = np.where(ok, _directed(s, (a - h) - low, mode), s)
            s = _patch(r, ok & _unsafe(a), exact.sqrt, mode, a)
        out[...] = nan_result(s, a)

    return fn


def abs_(form: Form) -> Fn:
    """Build abs; NaN keeps its sign and is made quiet."""

    def fn(out: F64, a: F64) -> None:
        out[...] = nan_result(np.absolute(a), a)

    return fn


def neg(form: Form) -> Fn:
    """Build neg; NaN keeps its sign and is made quiet."""

    def fn(out: F64, a: F64) -> None:
        out[...] = nan_result(np.negative(a), a)

    return fn


def min_max(form: Form) -> Fn:
    """Build min or max: the number when one operand is NaN; -0 is below +0."""
    largest = form.opcode == "max"

    def fn(out: F64, a: F64, b: F64) -> None:
        a, b = np.asarray(a), np.asarray(b)
        r = (np.fmax if largest else np.fmin)(a, b)
        combine = np.bitwise_and if largest else np.bitwise_or
        signs = combine(a.view(np.uint64), b.view(np.uint64)) & _SIGN
        r = np.where((a == 0) & (b == 0), signs.view(np.float64), r)
        out[...] = nan_result(r, a, b)

    return fn


BUILDERS: dict[str, Callable[[Form], Fn]] = {
    "add": add_sub, "sub": add_sub, "mul": mul, "fma": fma, "mad": fma, "div": div, "rcp": reciprocal, "sqrt": square_root,
    "abs": abs_, "neg": neg, "min": min_max, "max": min_max,
}  # fmt: skip
"""Opcodes of f64, for `arithmetic.py`."""
