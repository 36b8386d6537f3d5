"""Half-precision arithmetic (PTX ISA 9.7.4): f16 and bf16, scalar and packed, on unsigned bits.

Sums, differences and products are computed in f32 and rounded once more; the second rounding is innocuous because f32
has more than twice the precision plus two bits. Only fused operations need a longer sum. NaN results are 0x7fff.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings.formats import FORMATS, encode
from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.packed import over_lanes, packed_dtype
from warpsmith.simulator.meanings.rounding import odd_sum, quantize, round_to
from warpsmith.simulator.meanings.single import has_nan

__all__ = ["BUILDERS", "element_of", "load", "store", "truncate"]

Array = NDArray[Any]
U16 = NDArray[np.uint16]
F32 = NDArray[np.float32]
Fn = Callable[..., None]
_NAN, _SIGN, _MAGNITUDE = np.uint16(0x7FFF), np.uint16(0x8000), np.uint16(0x7FFF)
_1, _16, _BELOW_HALF = np.uint32(1), np.uint32(16), np.uint32(0x7FFF)
_F16_OVERFLOW = np.float32(65536)
_OUT_OF_BOUNDS = np.uint16(0x7FF7)
"""The NaN of either sign that `fma.oob` takes for an element out of bounds, of f16 and of bf16 (found on an H200)."""
_INFINITY = {"f16": np.uint16(0x7C00), "bf16": np.uint16(0x7F80)}


def element_of(name: str) -> str:
    """Return the element type: bf16x2 -> bf16."""
    return name.partition("x")[0]


def load(bits: Any, kind: str) -> F32:
    """Return the values of f16 or bf16 codes as f32, exactly."""
    bits = np.asarray(bits, np.uint16)
    if kind == "f16":
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def store(x: F32, kind: str) -> U16:
    """Round f32 values to nearest even and return their codes; NaN gives 0x7fff."""
    if kind == "f16":
        bits = x.astype(np.float16).view(np.uint16)
    else:
        word = np.asarray(x).view(np.uint32)
        odd = np.bitwise_and(np.right_shift(word, _16), _1)
        bits = np.right_shift(np.add(word, np.add(odd, _BELOW_HALF)), _16).astype(np.uint16)
    if not has_nan(x):
        return bits
    return np.where(np.isnan(x), _NAN, bits)


def truncate(x: F32, kind: str) -> U16:
    """Round f32 values towards zero and return their codes; NaN gives 0x7fff, from 65536 on f16 gives infinity."""
    if kind == "bf16":
        bits = np.right_shift(np.ascontiguousarray(x).view(np.uint32), _16).astype(np.uint16)
    else:
        with np.errstate(over="ignore"):
            near = x.astype(np.float16)
        above = (np.abs(near.astype(np.float32)) > np.abs(x)) & (np.abs(x) < _F16_OVERFLOW)
        bits = near.view(np.uint16) - above.astype(np.uint16)
    return np.where(np.isnan(x), _NAN, bits)


def is_nan(bits: U16, kind: str) -> NDArray[np.bool_]:
    """Say which codes are NaN."""
    return (bits & _MAGNITUDE) > _INFINITY[kind]


def flush(bits: U16, kind: str) -> U16:
    """Replace subnormal codes by zero of the same sign."""
    exponent = _INFINITY[kind]
    return np.where((bits & exponent) == 0, bits & _SIGN, bits)


def flush_tiny(bits: U16, exact: NDArray[np.float64]) -> U16:
    """Flush f16 results that are below 2^-14 before the exponent's lower bound is applied (as `single.flush_tiny`)."""
    small = np.abs(exact) <= 2.0**-14
    if not small.any():
        return bits
    tiny = np.abs(quantize(exact, 11, -1000, "rn")) < 2.0**-14
    return np.where(tiny, bits & _SIGN, bits)


def finish(bits: U16, form: Form, kind: str) -> U16:
    """Apply `.ftz`, `.sat` and `.relu` to result codes."""
    if form.ftz:
        bits = flush(bits, kind)
    if "sat" in form:
        one = np.uint16(0x3C00 if kind == "f16" else 0x3F80)
        low = is_nan(bits, kind) | (bits >= _SIGN)
        bits = np.where(low, np.uint16(0), np.minimum(bits, one))
    if "relu" in form:
        bits = np.where((bits >= _SIGN) & ~is_nan(bits, kind), np.uint16(0), bits)
    return bits


def _spread(fn: Fn, form: Form) -> Fn:
    """Apply a function on codes to packed registers when the type is packed."""
    lane = packed_dtype(form.type)
    return over_lanes(fn, lane) if lane else fn


def _binary(op: np.ufunc) -> Callable[[Form], Fn]:
    def build(form: Form) -> Fn:
        kind = element_of(form.type)

        def fn(out: U16, a: U16, b: U16) -> None:
            if form.ftz:
                a, b = flush(a, kind), flush(b, kind)
            exact = op(load(a, kind), load(b, kind))
            r = store(exact, kind)
            if form.ftz:
                r = flush_tiny(r, exact.astype(np.float64))
            out[...] = finish(r, form, kind)

        return _spread(fn, form)

    return build


def fused(a: U16, b: U16, c: U16, kind: str) -> U16:
    """Return the codes of a * b + c rounded once.

    For f16 the float64 sum is exact wherever it comes near a tie, so its second rounding is innocuous.
    """
    x, y, z = (load(v, kind).astype(np.float64) for v in (a, b, c))
    if kind == "f16":
        bits = (x * y + z).astype(np.float16).view(np.uint16)
        return np.where((bits & _MAGNITUDE) > _INFINITY[kind], _NAN, bits)
    total = odd_sum(*np.broadcast_arrays(x * y, z))
    return encode(round_to(total, FORMATS[kind]), kind)


def fma(form: Form) -> Fn:
    """Build fma: `.relu` clamps negative results to 0; `.oob` gives +0 where a factor is out of bounds, whatever c is."""
    kind = element_of(form.type)

    def fn(out: U16, a: U16, b: U16, c: U16) -> None:
        if form.ftz:
            a, b, c = flush(a, kind), flush(b, kind), flush(c, kind)
        r = fused(a, b, c, kind)
        if form.ftz:
            r = flush_tiny(r, load(a, kind).astype(np.float64) * load(b, kind) + load(c, kind))
        r = finish(r, form, kind)
        if "oob" in form:
            outside = ((a & _MAGNITUDE) == _OUT_OF_BOUNDS) | ((b & _MAGNITUDE) == _OUT_OF_BOUNDS)
            r = np.where(outside, np.uint16(0), r)
        out[...] = r

    return _spread(fn, form)


def neg(form: Form) -> Fn:
    """Build neg: the sign bit flipped; NaN becomes the canonical one."""
    kind = element_of(form.type)

    def fn(out: U16, a: U16) -> None:
        r = (flush(a, kind) if form.ftz else a) ^ _SIGN
        out[...] = np.where(is_nan(r, kind), _NAN, r)

    return _spread(fn, form)


def abs_(form: Form) -> Fn:
    """Build abs: the sign bit cleared; NaN becomes the canonical one."""
    kind = element_of(form.type)

    def fn(out: U16, a: U16) -> None:
        r = (flush(a, kind) if form.ftz else a) & _MAGNITUDE
        out[...] = np.where(is_nan(r, kind), _NAN, r)

    return _spread(fn, form)


def _order(bits: U16) -> NDArray[np.int16]:
    """Map codes to integers in the order of their values, -0 below +0."""
    signed = bits.view(np.int16)
    return np.where(signed < 0, signed ^ np.int16(0x7FFF), signed)


def _pick(a: U16, b: U16, kind: str, largest: bool, nan: bool) -> U16:
    ka, kb = _order(a), _order(b)
    r = np.where((ka >= kb) if largest else (ka <= kb), a, b)
    na, nb = is_nan(a, kind), is_nan(b, kind)
    if nan:
        return np.where(na | nb, _NAN, r)
    return np.where(na, np.where(nb, _NAN, b), np.where(nb, a, r))


def min_max(form: Form) -> Fn:
    """Build min or max: `.NaN`, `.xorsign.abs`, two or three operands."""
    kind, largest, nan = element_of(form.type), form.opcode == "max", "NaN" in form

    def fn(out: U16, *operands: U16) -> None:
        values = [np.asarray(v) for v in operands if v is not None]
        if form.ftz:
            values = [flush(v, kind) for v in values]
        signs = np.uint16(0)
        if "abs" in form:
            for v in values:
                signs = signs ^ (v & _SIGN)
            values = [v & _MAGNITUDE for v in values]
        r = values[0]
        for v in values[1:]:
            r = _pick(r, v, kind, largest, nan)
        if "xorsign" in form:
            r = r | signs
        out[...] = np.where(is_nan(r, kind), _NAN, r)

    return _spread(fn, form)


BUILDERS: dict[str, Callable[[Form], Fn]] = {
    "add": _binary(np.add), "sub": _binary(np.subtract), "mul": _binary(np.multiply), "fma": fma,
    "neg": neg, "abs": abs_, "min": min_max, "max": min_max,
}  # fmt: skip
"""Opcodes of f16 and bf16, for `arithmetic.py`."""
