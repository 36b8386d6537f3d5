"""Single-precision arithmetic (PTX ISA 9.7.3): every result is the exact one rounded once; NaN results are 0x7fffffff."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.rounding import odd_sum
from warpsmith.simulator.meanings.single import (
    NAN,
    TINY,
    canonical_nan,
    flush,
    flush_tiny,
    has_subnormal,
    near_tiny,
    ordinary,
    round_single,
    settle,
    sum_single,
)

__all__ = ["BUILDERS", "copysign", "fused_nearest", "min_max_single", "testp"]

Array = NDArray[Any]
F32 = NDArray[np.float32]
Fn = Callable[..., None]
_SIGN = np.uint32(0x80000000)
_FAR_FROM_TINY = np.float32(2.0**-100)
_TIE, _TIE_SHIFT = np.int64(-(2**63)), np.int64(35)


def _wide(a: F32) -> NDArray[np.float64]:
    return np.asarray(a).astype(np.float64)


def add_sub(form: Form) -> Fn:
    """Build add or sub."""
    op: np.ufunc = np.add if form.opcode == "add" else np.subtract
    ftz, sat, mode = form.ftz, "sat" in form, form.rounding or "rn"

    def plain(out: F32, a: F32, b: F32) -> None:
        op(a, b, out)
        canonical_nan(out)

    def nearest(out: F32, a: F32, b: F32) -> None:
        r: Any = op(a, b)
        # a subnormal operand cannot change a sum of this size, so that nothing needs flushing
        if not sat and np.minimum.reduce(np.abs(r), axis=None, initial=np.inf) >= _FAR_FROM_TINY:
            out[...] = r
            return
        if ftz:
            r = op(flush(a), flush(b))
        out[...] = r
        settle(out, ftz, sat)

    def directed(out: F32, a: F32, b: F32) -> None:
        if ftz:
            a, b = flush(a), flush(b)
        out[...] = sum_single(_wide(a), _wide(b) if op is np.add else -_wide(b), mode)
        settle(out, ftz, sat)

    if mode != "rn":
        return directed
    return nearest if ftz or sat else plain


def mul(form: Form) -> Fn:
    """Build mul."""
    ftz, sat, mode = form.ftz, "sat" in form, form.rounding or "rn"

    def plain(out: F32, a: F32, b: F32) -> None:
        np.multiply(a, b, out)
        canonical_nan(out)

    def general(out: F32, a: F32, b: F32) -> None:
        if ftz:
            a, b = flush(a), flush(b)
        r: Any = np.multiply(a, b) if mode == "rn" else round_single(_wide(a) * _wide(b), mode)
        if ftz and near_tiny(r):
            r = flush_tiny(r, _wide(a) * _wide(b), mode)
        out[...] = r
        settle(out, ftz, sat)

    return general if ftz or sat or mode != "rn" else plain


def _sum_of_product(a: F32, b: F32, c: F32) -> tuple[Any, bool]:
    """Return a * b + c through float64, and whether a second rounding may have spoilt it.

    The float64 sum of the exact product and c is rounded again only on the way to f32: harmless unless it lies half-way
    between two f32 values, or the result is subnormal (or zero: then nobody looked).
    """
    total: Any = np.multiply(a, b, dtype=np.float64)
    total = np.asarray(np.add(total, c))
    result: Any = total.astype(np.float32)
    bits = total.view(np.int64)
    ties = np.left_shift(bits, _TIE_SHIFT, bits)
    tie = np.minimum.reduce(ties, axis=None, initial=0) == _TIE
    return result, bool(tie) or not ordinary(result)


def _has_tie(a: F32, b: F32, c: F32) -> bool:
    """Say whether a float64 sum lies half-way between two f32 values."""
    total: Any = np.add(np.multiply(a, b, dtype=np.float64), c)
    return bool(np.minimum.reduce(np.left_shift(total.view(np.int64), _TIE_SHIFT), axis=None, initial=0) == _TIE)


def fused_nearest(a: F32, b: F32, c: F32) -> F32:
    """Return a * b + c rounded once to nearest even."""
    result, doubtful = _sum_of_product(a, b, c)
    return sum_single(_wide(a) * _wide(b), _wide(c), "rn") if doubtful else result


def fma(form: Form) -> Fn:
    """Build fma or mad of f32."""
    ftz, sat, mode = form.ftz, "sat" in form, form.rounding or "rn"

    def fn(out: F32, a: F32, b: F32, c: F32) -> None:
        if ftz:
            a, b, c = flush(a), flush(b), flush(c)
        if mode == "rn":
            r, doubtful = _sum_of_product(a, b, c)
            if not doubtful and not sat:
                out[...] = r
                return
            if doubtful and (has_subnormal(r) or _has_tie(a, b, c)):
                r = sum_single(_wide(a) * _wide(b), _wide(c), mode)
        else:
            r = sum_single(_wide(a) * _wide(b), _wide(c), mode)
        if ftz and near_tiny(r):
            r = flush_tiny(r, odd_sum(_wide(a) * _wide(b), _wide(c)), mode)
        out[...] = r
        settle(out, ftz, sat)

    return fn


def quotient(a: F32, b: F32, mode: str, ftz: bool) -> F32:
    """Return a / b rounded once: a float64 quotient of two 24-bit numbers is never half-way by rounding alone."""
    if ftz:
        a, b = flush(a), flush(b)
    exact = _wide(a) / _wide(b)
    out = round_single(exact, mode)
    if ftz and near_tiny(out):
        out = flush_tiny(out, exact, mode)
    settle(out, ftz, False)
    return out


def div(form: Form) -> Fn:
    """Build div with a rounding modifier."""
    ftz, mode = form.ftz, form.rounding or "rn"

    def fn(out: F32, a: F32, b: F32) -> None:
        out[...] = quotient(a, b, mode, ftz)

    return fn


def reciprocal(form: Form) -> Fn:
    """Build rcp with a rounding modifier."""
    ftz, mode, one = form.ftz, form.rounding or "rn", np.ones((), np.float32)

    def fn(out: F32, a: F32) -> None:
        out[...] = quotient(one, a, mode, ftz)

    return fn


def square_root(form: Form) -> Fn:
    """Build sqrt with a rounding modifier."""
    ftz, mode = form.ftz, form.rounding or "rn"

    def fn(out: F32, a: F32) -> None:
        if ftz:
            a = flush(a)
        result = round_single(np.sqrt(_wide(a)), mode)
        settle(result, ftz, False)
        out[...] = result

    return fn


def abs_(form: Form) -> Fn:
    """Build abs: the sign bit cleared; NaN becomes the canonical one."""

    def fn(out: F32, a: F32) -> None:
        np.absolute(flush(a) if form.ftz else a, out)
        canonical_nan(out)

    return fn


def neg(form: Form) -> Fn:
    """Build neg: the sign bit flipped; NaN becomes the canonical one."""

    def fn(out: F32, a: F32) -> None:
        np.negative(flush(a) if form.ftz else a, out)
        canonical_nan(out)

    return fn


def _pick(a: F32, b: F32, largest: bool, nan: bool) -> F32:
    """Return min or max with -0 below +0; one NaN gives the number, or NaN with `nan`."""
    a, b = np.asarray(a), np.asarray(b)
    r: Any = (np.fmax if largest else np.fmin)(a, b)
    if not r.all():
        combine = np.bitwise_and if largest else np.bitwise_or
        signs = combine(a.view(np.uint32), b.view(np.uint32)) & _SIGN
        r = np.where((a == 0) & (b == 0), signs.view(np.float32), r)
    if nan:
        r = np.where(np.isnan(a) | np.isnan(b), NAN, r)
    return r


def min_max_single(form: Form) -> Fn:
    """Build min or max of f32: `.NaN`, `.abs`, `.xorsign.abs`, two or three operands."""
    largest, nan, ftz = form.opcode == "max", "NaN" in form, form.ftz
    magnitude, xorsign = "abs" in form, "xorsign" in form

    def fn(out: F32, *operands: F32) -> None:
        values = [np.asarray(flush(x) if ftz else x) for x in operands]
        signs = np.uint32(0)
        if magnitude:
            if xorsign:
                for v in values:
                    signs = signs ^ (v.view(np.uint32) & _SIGN)
            values = [np.abs(v) for v in values]
        r = values[0]
        for v in values[1:]:
            r = _pick(r, v, largest, nan)
        if xorsign:
            r = (r.view(np.uint32) | signs).view(np.float32)
        out[...] = np.where(np.isnan(r), NAN, r)

    best: np.ufunc = np.fmax if largest else np.fmin

    def plain(out: F32, a: F32, b: F32) -> None:
        r: Any = best(a, b)
        if nan or not ordinary(r):
            r = _pick(a, b, largest, nan)
            out[...] = r
            canonical_nan(out)
        else:
            out[...] = r

    def two_or_three(out: F32, a: F32, b: F32, c: F32 | None = None) -> None:
        if c is None:
            (fn if ftz or magnitude else plain)(out, a, b)
        else:
            fn(out, a, b, c)

    return two_or_three


def testp(form: Form) -> Fn:
    """Build testp of f32 or f64: the class of a number, as a predicate."""
    tiny = TINY if form.type == "f32" else np.float64(2.0**-1022)
    op = form.words[0]

    def fn(out: Array, a: Array) -> None:
        finite, size = np.isfinite(a), np.abs(a)
        if op == "finite":
            r = finite
        elif op == "infinite":
            r = np.isinf(a)
        elif op == "number":
            r = ~np.isnan(a)
        elif op == "notanumber":
            r = np.isnan(a)
        elif op == "normal":
            r = finite & ((size >= tiny) | (size == 0))  # zero counts as normal on hardware
        else:
            r = (size > 0) & (size < tiny)
        out[...] = r

    return fn


def copysign(form: Form) -> Fn:
    """Build copysign: b with the sign of a."""

    def fn(out: Array, a: Array, b: Array) -> None:
        np.copysign(b, a, out)

    return fn


BUILDERS: dict[str, Callable[[Form], Fn]] = {
    "add": add_sub, "sub": add_sub, "mul": mul, "fma": fma, "mad": fma, "div": div, "rcp": reciprocal, "sqrt": square_root,
    "abs": abs_, "neg": neg, "min": min_max_single, "max": min_max_single,
}  # fmt: skip
"""Opcodes of f32, for `arithmetic.py`."""
