"""Approximate functions (PTX ISA 9.7.3): ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh `.approx`, div `.approx` and `.full`.

On f32 they are what ptxas makes of them for sm_90: the multi-function unit (`mufu.py`, bit for bit) and the scaling around it
that lets the forms without `.ftz` take and give subnormals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings import half, mufu
from warpsmith.simulator.meanings.double import fused, nan_result
from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.packed import over_lanes, packed_dtype
from warpsmith.simulator.meanings.single import flush, settle

__all__ = ["BUILDERS", "FUNCTIONS", "approximate", "unary"]

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
_NEGATIVE = np.uint64(0xFFF8000000000000).view(np.float64)
"""What rsqrt.approx.f64 gives of negative numbers."""
Fn = Callable[..., None]


_LEAST_NORMAL, _HUGE = np.float32(2.0**-126), np.float32(2.0**126)


def _scaled(name: str, by: float, back: Callable[[F32], F32]) -> Callable[[F32, bool], F32]:
    """Return the function that multiplies subnormal operands by `by` first and mends the result with `back`, unless `.ftz`."""

    def function(x: F32, ftz: bool) -> F32:
        unit = getattr(mufu, name)
        if ftz:
            return unit(x)
        small = np.abs(x) < _LEAST_NORMAL
        r = unit(np.where(small, np.multiply(x, np.float32(by)), x))
        return np.where(small, back(r), r)

    return function


def _ex2(x: F32, ftz: bool) -> F32:
    if ftz:
        return mufu.ex2(x)
    low = x < np.float32(-126)
    r = mufu.ex2(np.where(low, np.multiply(x, np.float32(0.5)), x))
    return np.where(low, np.multiply(r, r), r)


def _rcp(x: F32, ftz: bool) -> F32:
    if ftz:
        return mufu.rcp(x)
    magnitude = np.abs(x)
    by = np.where(magnitude > _HUGE, np.float32(0.25), np.where(magnitude < _LEAST_NORMAL, np.float32(2.0**24), np.float32(1)))
    return np.multiply(by, mufu.rcp(np.multiply(x, by)))


FUNCTIONS: dict[str, Callable[[F32, bool], F32]] = {
    "ex2": _ex2,
    "lg2": _scaled("lg2", 2.0**24, lambda r: np.add(r, np.float32(-24))),
    "rcp": _rcp,
    "rsqrt": _scaled("rsq", 2.0**24, lambda r: np.multiply(r, np.float32(2.0**12))),
    "sqrt": _scaled("sqrt", 2.0**24, lambda r: np.multiply(r, np.float32(2.0**-12))),
    "sin": lambda x, ftz: mufu.sin(mufu.turns(flush(x) if ftz else x)),
    "cos": lambda x, ftz: mufu.cos(mufu.turns(flush(x) if ftz else x)),
    "tanh": lambda x, ftz: mufu.tanh(x),
}
"""Opcode -> the function of (f32 operand, whether `.ftz`), as ptxas expands it for sm_90."""


def approximate(form: Form) -> Fn:
    """Build a unary approximate function of f32."""
    function, ftz = FUNCTIONS[form.opcode], form.ftz
    if "2pi" in form:  # in turns already: ptxas 13.5 leaves the multiplication by 1/2π out
        turns = {"sin": mufu.sin, "cos": mufu.cos}[form.opcode]
        return lambda out, a: np.copyto(out, turns(flush(a)))

    def fn(out: F32, a: F32) -> None:
        out[...] = function(np.asarray(a), ftz)

    return fn


def approximate_half(form: Form) -> Fn:
    """Build ex2 or tanh of f16, bf16 and their packed forms: the f32 value rounded towards zero."""
    name, kind = form.opcode, half.element_of(form.type)

    def fn(out: Any, a: Any) -> None:
        bits = half.flush(a, kind) if form.ftz else a
        result = half.truncate(FUNCTIONS[name](half.load(bits, kind), False), kind)
        out[...] = half.flush(result, kind) if form.ftz else result

    lane = packed_dtype(form.type)
    return over_lanes(fn, lane) if lane else fn


def divide(form: Form) -> Fn:
    """Build div.approx or div.full of f32: a · RCP(b), after the scaling that ptxas puts before it."""
    ftz, full = form.ftz, "full" in form

    def fn(out: F32, a: F32, b: F32) -> None:
        a, b = (flush(a), flush(b)) if ftz else (np.asarray(a), np.asarray(b))
        by = np.where((np.abs(b) > _HUGE) & full, np.float32(0.25), np.float32(1))
        if not ftz:
            by = np.where(np.abs(b) < _LEAST_NORMAL, np.float32(2.0**24), by)
            out[...] = np.multiply(np.multiply(a, by), mufu.rcp(np.multiply(b, by)))
        else:
            out[...] = flush(flush(a * by) * mufu.rcp(flush(b * by)))
        settle(out, ftz, False)

    return fn


def _seed(unit: Callable[[Any], Any], x: F64) -> F64:
    """Apply a unit to the upper words of f64; the lower words of results are zero."""
    upper = np.asarray(unit((x.view(np.uint64) >> np.uint64(32)).astype(np.uint32)))
    return (upper.astype(np.uint64) << np.uint64(32)).view(np.float64)


def double_seed(form: Form) -> Fn:
    """Build rcp.approx.ftz.f64 or rsqrt.approx.ftz.f64: the low 32 bits are neither read nor given."""
    unit = mufu.rcp64h if form.opcode == "rcp" else mufu.rsq64h

    def fn(out: F64, a: F64) -> None:
        out[...] = _seed(unit, np.ascontiguousarray(a, np.float64))

    return fn


def double_root(form: Form) -> Fn:
    """Build rsqrt.approx.f64: the unit's value and one step of Halley's iteration; subnormals are scaled by 2⁵⁴ first."""

    def fn(out: F64, a: F64) -> None:
        a = np.ascontiguousarray(a, np.float64)
        small = np.abs(a) < 2.0**-1022
        x = np.where(small, a * 2.0**54, a)
        y = _seed(mufu.rsq64h, x)
        error = fused(x, -(y * y), np.ones_like(y), "rn")
        slope = fused(error, np.full_like(y, 0.375), np.full_like(y, 0.5), "rn")
        r = fused(slope, y * error, y, "rn")
        r = np.where(small, r * 2.0**27, r)
        r = np.where(a == 0, np.copysign(np.inf, a), np.where(a == np.inf, 0.0, r))
        out[...] = np.where(np.isnan(a), nan_result(a + a, a), np.where(a < 0, _NEGATIVE, r))

    return fn


def unary(form: Form) -> Fn:
    """Build the approximate function that the type calls for."""
    if form.type == "f64":
        return double_seed(form) if form.ftz else double_root(form)
    return approximate(form) if form.type == "f32" else approximate_half(form)


BUILDERS: dict[str, Callable[[Form], Fn]] = dict.fromkeys(("ex2", "lg2", "rsqrt", "sin", "cos", "tanh"), unary)
"""Opcodes that are approximate in every form; rcp, sqrt and div come through `arithmetic.py`."""
