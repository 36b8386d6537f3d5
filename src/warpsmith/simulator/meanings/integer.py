"""Integer arithmetic (PTX ISA 9.7.1): results modulo 2^n unless a form saturates. Arrays have the operand type's dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.packed import over_lanes, packed_dtype

__all__ = ["BUILDERS", "abs_", "add_sub", "divide", "min_max", "mul_high", "multiply", "neg"]

Array = NDArray[Any]
Fn = Callable[..., None]


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the dtype of an integer or bit type name."""
    return np.dtype(f"{'int' if name[0] == 's' else 'uint'}{name[1:]}")


def unsigned(a: Array) -> Array:
    """Reinterpret signed integers as unsigned ones of the same width."""
    return a.view(np.dtype(f"uint{a.dtype.itemsize * 8}")) if a.dtype.kind == "i" else a


def magnitude(a: Array) -> Array:
    """Return |a| as unsigned integers: the most negative value maps to 2^(n-1)."""
    if a.dtype.kind == "u":
        return a
    u = unsigned(a)
    return np.where(a < 0, np.negative(u), u)


def _saturating(op: np.ufunc) -> Fn:
    def sat(out: Array, a: Array, b: Array) -> None:
        wide = op(a.astype(np.int64), b.astype(np.int64))
        info = np.iinfo(out.dtype)
        out[...] = np.clip(wide, info.min, info.max)

    return sat


def add_sub(form: Form) -> Fn:
    """Build add or sub; `.sat` clamps (s32, and lanes of packed types)."""
    op: np.ufunc = np.add if form.opcode == "add" else np.subtract

    def fn(out: Array, a: Array, b: Array) -> None:
        op(a, b, out=out)

    plain = _saturating(op) if "sat" in form else fn
    lane = packed_dtype(form.type)
    return over_lanes(plain, lane) if lane else plain


def mul_high(a: Array, b: Array) -> Array:
    """Return the upper half of the double-width product."""
    bits = a.dtype.itemsize * 8
    if bits < 64:
        wide = np.dtype(f"{'int' if a.dtype.kind == 'i' else 'uint'}{2 * bits}")
        return np.right_shift(a.astype(wide) * b.astype(wide), wide.type(bits)).astype(a.dtype)
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    ua, ub = unsigned(np.asarray(a)), unsigned(np.asarray(b))
    al, ah, bl, bh = ua & mask, ua >> half, ub & mask, ub >> half
    middle = ah * bl + ((al * bl) >> half)
    cross = al * bh + (middle & mask)
    high = ah * bh + (middle >> half) + (cross >> half)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, ub, np.uint64(0)) - np.where(b < 0, ua, np.uint64(0))
    return high.view(a.dtype)


def multiply(form: Form) -> Fn:
    """Build mul or mad: `.lo`, `.hi`, `.wide`, and `mad.hi.sat.s32`."""
    mad = form.opcode == "mad"
    if "hi" in form:
        return _multiply_high(mad, "sat" in form)
    if "wide" in form:
        return _multiply_wide(form, mad)

    def low(out: Array, a: Array, b: Array) -> None:
        np.multiply(a, b, out=out)

    def low_add(out: Array, a: Array, b: Array, c: Array) -> None:
        np.add(np.multiply(a, b), c, out=out)

    return low_add if mad else low


def _multiply_high(mad: bool, sat: bool) -> Fn:
    def high(out: Array, a: Array, b: Array) -> None:
        out[...] = mul_high(a, b)

    def high_add(out: Array, a: Array, b: Array, c: Array) -> None:
        np.add(mul_high(a, b), c, out=out)

    def high_add_saturated(out: Array, a: Array, b: Array, c: Array) -> None:
        total = mul_high(a, b).astype(np.int64) + c
        out[...] = np.clip(total, -(2**31), 2**31 - 1)

    return (high_add_saturated if sat else high_add) if mad else high


def _multiply_wide(form: Form, mad: bool) -> Fn:
    narrow = dtype_of(form.type)
    wide = np.dtype(f"{'int' if narrow.kind == 'i' else 'uint'}{narrow.itemsize * 16}")

    def product(out: Array, a: Array, b: Array) -> None:
        np.multiply(a.astype(wide), b.astype(wide), out=out)

    def product_add(out: Array, a: Array, b: Array, c: Array) -> None:
        np.add(np.multiply(a.astype(wide), b.astype(wide)), c, out=out)

    return product_add if mad else product


def divide(form: Form) -> Fn:
    """Build div or rem: quotients truncate; both give all ones for a divisor of zero (as the H200 does)."""
    rem = form.opcode == "rem"

    def fn(out: Array, a: Array, b: Array) -> None:
        a, b = np.broadcast_arrays(a, b)
        ua, ub = magnitude(a), magnitude(b)
        zero = ub == 0
        divisor = np.where(zero, ub.dtype.type(1), ub)
        q = ua // divisor
        if rem:
            value, negative = ua - q * divisor, a < 0
        else:
            value, negative = q, (a < 0) != (b < 0)
        signed = np.where(negative, np.negative(value), value)
        out[...] = np.where(zero, np.iinfo(ub.dtype).max, signed).view(a.dtype)

    return fn


def abs_(form: Form) -> Fn:
    """Build abs (two's complement: the most negative value maps to itself)."""

    def fn(out: Array, a: Array) -> None:
        np.absolute(a, out=out)

    lane = packed_dtype(form.type)
    return over_lanes(fn, lane) if lane else fn


def neg(form: Form) -> Fn:
    """Build neg."""

    def fn(out: Array, a: Array) -> None:
        np.negative(a, out=out)

    lane = packed_dtype(form.type)
    return over_lanes(fn, lane) if lane else fn


def min_max(form: Form) -> Fn:
    """Build min or max of integers, packed ones too; `.relu` clamps negative results to 0; two or three operands."""
    op: np.ufunc = np.minimum if form.opcode == "min" else np.maximum
    relu = "relu" in form

    def fn(out: Array, a: Array, b: Array, c: Array | None = None) -> None:
        r = op(a, b)
        if c is not None:
            r = op(r, c)
        if relu:
            r = np.maximum(r, r.dtype.type(0))
        out[...] = r

    lane = packed_dtype(form.type)
    return over_lanes(fn, lane) if lane else fn


def sad(form: Form) -> Fn:
    """Build sad: c + |a - b|."""

    def fn(out: Array, a: Array, b: Array, c: Array) -> None:
        np.add(np.subtract(np.maximum(a, b), np.minimum(a, b)), c, out=out)

    return fn


def _product24(a: Array, b: Array, high: bool) -> Array:
    """48-bit product of the low 24 bits (sign-extended for s32): bits 47..16 or 31..0."""
    if a.dtype.kind == "i":
        wide = (np.left_shift(a, np.int32(8)) >> np.int32(8)).astype(np.int64) * (
            np.left_shift(b, np.int32(8)) >> np.int32(8)
        ).astype(np.int64)
    else:
        mask = np.uint32(0xFFFFFF)
        wide = (a & mask).astype(np.uint64) * (b & mask).astype(np.uint64)
    return (wide >> wide.dtype.type(16) if high else wide).astype(a.dtype)


def multiply24(form: Form) -> Fn:
    """Build mul24 or mad24."""
    high, sat = "hi" in form, "sat" in form

    def mul24(out: Array, a: Array, b: Array) -> None:
        out[...] = _product24(a, b, high)

    def mad24(out: Array, a: Array, b: Array, c: Array) -> None:
        if sat:
            out[...] = np.clip(_product24(a, b, high).astype(np.int64) + c, -(2**31), 2**31 - 1)
        else:
            np.add(_product24(a, b, high), c, out=out)

    return mad24 if form.opcode == "mad24" else mul24


def _field(x: Array, signed: bool, at: int, bits: int) -> Array:
    """Bits at … at+bits of 32-bit words as int64."""
    word = unsigned(np.asarray(x)).astype(np.int64) >> at & ((1 << bits) - 1)
    return np.where(word >> (bits - 1) != 0, word - (1 << bits), word) if signed else word


def dp4a(form: Form) -> Fn:
    """Build dp4a: c + the sum of four products of bytes."""
    sa, sb = (t[0] == "s" for t in form.types[:2])

    def fn(out: Array, a: Array, b: Array, c: Array) -> None:
        total = np.asarray(c).astype(np.int64)
        for i in range(4):
            total = total + _field(a, sa, 8 * i, 8) * _field(b, sb, 8 * i, 8)
        out[...] = total.astype(out.dtype)

    return fn


def dp2a(form: Form) -> Fn:
    """Build dp2a: c + two products of a's halves with b's low or high bytes."""
    sa, sb = (t[0] == "s" for t in form.types[:2])
    base = 16 if "hi" in form else 0

    def fn(out: Array, a: Array, b: Array, c: Array) -> None:
        total = np.asarray(c).astype(np.int64)
        for i in range(2):
            total = total + _field(a, sa, 16 * i, 16) * _field(b, sb, base + 8 * i, 8)
        out[...] = total.astype(out.dtype)

    return fn


def carryless(form: Form) -> Fn:
    """Build clmad: half of the carry-less product of a and b, exclusive-or c."""
    high = "hi" in form

    def fn(out: Array, a: Array, b: Array, c: Array) -> None:
        total: Array = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)), np.uint64)
        for i in range(1 if high else 0, 64):
            part = np.right_shift(a, np.uint64(64 - i)) if high else np.left_shift(a, np.uint64(i))
            total ^= np.where((b >> np.uint64(i)) & np.uint64(1) != 0, part, np.uint64(0))
        out[...] = total ^ c

    return fn


BUILDERS: dict[str, Callable[[Form], Fn]] = {
    "add": add_sub, "sub": add_sub, "mul": multiply, "mad": multiply, "div": divide, "rem": divide,
    "abs": abs_, "neg": neg, "min": min_max, "max": min_max,
}  # fmt: skip
"""Opcodes shared with floating point, for `arithmetic.py`."""

ONLY: dict[str, Callable[[Form], Fn]] = {
    "sad": sad, "mul24": multiply24, "mad24": multiply24, "dp4a": dp4a, "dp2a": dp2a, "clmad": carryless,
}  # fmt: skip
"""Opcodes of integers alone."""
