"""Approximate functions (PTX ISA 9.7.3): ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh `.approx`, div `.approx` and `.full`.

Each is one function from f32 to f32 in `FUNCTIONS`, here the correctly rounded value (fidelity "approximate"): a table
captured on
hardware takes its place by replacing the entry. The sign, zero, infinity and flushing rules around it are the hardware's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings import half
from warpsmith.simulator.meanings.double import nan_result
from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.packed import over_lanes, packed_dtype
from warpsmith.simulator.meanings.single import flush, round_single, settle

__all__ = ["BUILDERS", "FUNCTIONS", "approximate"]

F32 = NDArray[np.float32]
_UPPER_WORD = np.uint64(0xFFFFFFFF00000000)
Fn = Callable[..., None]


def _rounded(fn: Callable[[NDArray[np.float64]], Any]) -> Callable[[F32], F32]:
    """Return the f32 function that rounds a float64 one."""
    return lambda x: np.asarray(fn(np.asarray(x).astype(np.float64))).astype(np.float32)


_PER_TURN = np.array([0x3E22F983], np.uint32).view(np.float32)[0]
"""1 / (2 pi) in f32."""


def _circular(fn: Callable[[NDArray[np.float64]], Any]) -> Callable[[F32], F32]:
    """Return sin or cos of an angle that the hardware first turns into a number of turns: f32, rounded towards zero."""

    def of(x: F32) -> F32:
        turns = round_single(np.multiply(x, _PER_TURN, dtype=np.float64), "rz").astype(np.float64)
        part = turns - np.rint(turns)
        part = np.where(np.abs(part) < 2.0**-25, np.copysign(0.0, x), part)
        return np.asarray(fn(part * (2 * np.pi))).astype(np.float32)

    return of


FUNCTIONS: dict[str, Callable[[F32], F32]] = {
    "ex2": _rounded(np.exp2),
    "lg2": _rounded(np.log2),
    "rcp": _rounded(np.reciprocal),
    "rsqrt": _rounded(lambda x: 1 / np.sqrt(x)),
    "sqrt": _rounded(np.sqrt),
    "sin": _circular(np.sin),
    "cos": _circular(np.cos),
    "tanh": _rounded(np.tanh),
}
"""Opcode -> the function on f32 values, without flushing."""


def approximate(form: Form) -> Fn:
    """Build a unary approximate function of f32."""
    function, ftz = FUNCTIONS[form.opcode], form.ftz
    flushes = ftz and form.opcode != "ex2"  # 2^x is 1 for every subnormal x

    def fn(out: F32, a: F32) -> None:
        out[...] = function(flush(a) if flushes else a)
        settle(out, ftz, False)

    return fn


def approximate_half(form: Form) -> Fn:
    """Build ex2 or tanh of f16, bf16 and their packed forms: the f32 value rounded to the type."""
    name, kind = form.opcode, half.element_of(form.type)

    def fn(out: Any, a: Any) -> None:
        bits = half.flush(a, kind) if form.ftz else a
        result = half.store(FUNCTIONS[name](half.load(bits, kind)), kind)
        out[...] = half.flush(result, kind) if form.ftz else result

    lane = packed_dtype(form.type)
    return over_lanes(fn, lane) if lane else fn


def divide(form: Form) -> Fn:
    """Build div.approx or div.full of f32: the correctly rounded quotient; `.approx` gives 0 for divisors beyond 2^126."""
    ftz, beyond = form.ftz, "approx" in form

    def fn(out: F32, a: F32, b: F32) -> None:
        if ftz:
            a, b = flush(a), flush(b)
        r = (np.asarray(a).astype(np.float64) / np.asarray(b)).astype(np.float32)
        if beyond:
            huge = (np.abs(b) > np.float32(2.0**126)) & np.isfinite(b)
            r = np.where(huge, np.where(np.isfinite(a), np.copysign(np.float32(0), r), np.float32(np.nan)), r)
        out[...] = r
        settle(out, ftz, False)

    return fn


def double_seed(form: Form) -> Fn:
    """Build rcp.approx.ftz.f64 or rsqrt.approx.ftz.f64: the low 32 bits are neither read nor given."""
    reciprocal = form.opcode == "rcp"

    def fn(out: NDArray[np.float64], a: NDArray[np.float64]) -> None:
        x = (np.asarray(a).view(np.uint64) & _UPPER_WORD).view(np.float64)
        x = np.where(np.abs(x) < 2.0**-1022, np.copysign(0.0, x), x)
        r: Any = np.reciprocal(x) if reciprocal else 1 / np.sqrt(x)
        r = np.where(np.abs(r) < 2.0**-1022, np.copysign(0.0, r), r)
        r = (r.view(np.uint64) & _UPPER_WORD).view(np.float64)
        out[...] = np.where(np.isnan(r), np.uint64(0x7FFFFFFF00000000).view(np.float64), r)

    return fn


def double_root(form: Form) -> Fn:
    """Build rsqrt.approx.f64: two roundings of the exact value."""

    def fn(out: NDArray[np.float64], a: NDArray[np.float64]) -> None:
        out[...] = nan_result(1 / np.sqrt(np.asarray(a)), a)

    return fn


def unary(form: Form) -> Fn:
    """Build the approximate function that the type calls for."""
    if form.type == "f64":
        return double_seed(form) if form.ftz else double_root(form)
    return approximate(form) if form.type == "f32" else approximate_half(form)


BUILDERS: dict[str, Callable[[Form], Fn]] = dict.fromkeys(("ex2", "lg2", "rsqrt", "sin", "cos", "tanh"), unary)
"""Opcodes that are approximate in every form; rcp, sqrt and div come through `arithmetic.py`."""
