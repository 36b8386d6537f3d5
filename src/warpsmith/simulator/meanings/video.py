"""Video instructions (PTX ISA 9.7.18): scalar ones on 32-bit values, SIMD ones on two halves or four bytes.

Operands arrive whole: whoever reads them refuses selectors (`a.b0`, `a.h1`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings.compare import comparison
from warpsmith.simulator.meanings.forms import Form

__all__ = ["BUILDERS", "unmodelled"]

Array = NDArray[Any]
I64 = NDArray[np.int64]
Fn = Callable[..., None]
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_SECOND: dict[str, Callable[[I64, I64], I64]] = {"add": np.add, "min": np.minimum, "max": np.maximum}


def _values(x: Any, signed: bool, bits: int = 32, at: int = 0) -> I64:
    """Return bits at … at+bits of 32-bit words as integers of their signedness."""
    word = (np.asarray(x).astype(np.int64) >> at) & ((1 << bits) - 1)
    return np.where(word >> (bits - 1) != 0, word - (1 << bits), word) if signed else word


def _clamp(x: I64, signed: bool, bits: int = 32) -> I64:
    return np.clip(x, -(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else np.clip(x, 0, (1 << bits) - 1)


def _saturate(x: I64, signed: bool) -> I64:
    """Saturate as the H200 does: from 34 bits; unsigned results have no upper bound but lose their upper bits."""
    x = (x << 30) >> 30
    return np.clip(x, -(1 << 31), (1 << 31) - 1) if signed else np.maximum(x, 0) & 0xFFFFFFFF


def _signs(form: Form) -> tuple[bool, bool, bool]:
    """Return whether d, a and b are signed; vset names no type for d (unsigned)."""
    types = form.types if len(form.types) > 2 else ("u32", *form.types)
    return types[0][0] == "s", types[1][0] == "s", types[2][0] == "s"


def _absolute_difference(a: I64, b: I64) -> I64:
    return np.abs(a - b)


def _average(a: I64, b: I64) -> I64:
    total = a + b
    return (total + (total >= 0)) >> 1


_BINARY: dict[str, Callable[[I64, I64], I64]] = {
    "vadd": np.add, "vsub": np.subtract, "vabsdiff": _absolute_difference, "vmin": np.minimum, "vmax": np.maximum,
    "vavrg": _average,
}  # fmt: skip


def _operation(form: Form) -> Callable[[I64, I64], I64]:
    base = form.opcode.rstrip("24")
    if base != "vset":
        return _BINARY[base]
    compare = comparison(next(w for w in form.words if w in _COMPARISONS), False)
    return lambda a, b: compare(a, b).astype(np.int64)


def _second(form: Form) -> Callable[[I64, I64], I64] | None:
    return next((_SECOND[w] for w in form.words if w in _SECOND), None)


def unmodelled(form: Form, reads: int) -> str:
    """Say why a scalar form with `reads` operands is refused, or ''.

    ptxas builds these forms from other instructions, with results (seen on an H200) that depend on the types in ways the
    manual does not give.
    """
    if form.opcode not in BUILDERS or form.opcode[-1] in "24":
        return ""
    if form.opcode == "vmad":
        return "vmad with .sat or a scale is not modelled" if {"sat", "shr7", "shr15"} & set(form.words) else ""
    if reads == 3 and _second(form) is None:
        return "merging a result into a part of the third operand is not modelled"
    if {"min", "max"} & set(form.words):
        return "min and max as second operation of a scalar video instruction are not modelled"
    return "vshl.sat is not modelled" if form.opcode == "vshl" and "sat" in form else ""


def _write(out: Array, value: I64) -> None:
    out[...] = (value & 0xFFFFFFFF).astype(np.uint32).view(out.dtype)


def scalar(form: Form) -> Fn:
    """Build vadd, vsub, vabsdiff, vmin, vmax, vset, with an optional second operation on c."""
    op, (sd, sa, sb) = _operation(form), _signs(form)
    second = _second(form)

    def fn(out: Array, a: Array, b: Array, c: Array | None = None) -> None:
        r = op(_values(a, sa), _values(b, sb))
        if "sat" in form:
            r = _saturate(r, sd)
        if second is not None:
            r = second(r, _values(c, True))
        _write(out, r)

    return fn


def shift(form: Form) -> Fn:
    """Build vshl or vshr: `.clamp` limits the amount to 32, `.wrap` takes it modulo 32."""
    (sd, sa, _), left = _signs(form), form.opcode == "vshl"
    second = _second(form)

    def fn(out: Array, a: Array, b: Array, c: Array | None = None) -> None:
        n = _values(b, False)
        n = n & 31 if "wrap" in form else np.minimum(n, 32)
        value = _values(a, sa)
        r: Any = value << n if left else value >> n
        if "sat" in form:
            r = _saturate(r, sd)
        if second is not None:
            r = second(r, _values(c, True))
        _write(out, r)

    return fn


def multiply_add(form: Form) -> Fn:
    """Build vmad: a * b + c (+ 1 with `.po`)."""
    _, sa, sb = _signs(form)
    more = int("po" in form)

    def fn(out: Array, a: Array, b: Array, c: Array) -> None:
        _write(out, _values(a, sa) * _values(b, sb) + _values(c, False) + more)

    return fn


def simd(form: Form) -> Fn:
    """Build v…2 and v…4: each lane by itself; `.add` sums the lanes' results and c."""
    op, (sd, sa, sb) = _operation(form), _signs(form)
    bits = 16 if form.opcode.endswith("2") else 8

    def fn(out: Array, a: Array, b: Array, c: Array) -> None:
        results: list[I64] = []
        for at in range(0, 32, bits):
            r = op(_values(a, sa, bits, at), _values(b, sb, bits, at))
            results.append(_clamp(r, sd, bits) if "sat" in form else r)
        if "add" in form.words:
            total = _values(c, sd)
            for r in results:
                total = total + r
            _write(out, total)
            return
        word = np.zeros((), np.int64)
        for i, r in enumerate(results):
            word = word | (r & ((1 << bits) - 1)) << (bits * i)
        _write(out, word)

    return fn


BUILDERS: dict[str, Callable[[Form], Fn]] = {
    **dict.fromkeys(("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset"), scalar),
    "vshl": shift, "vshr": shift, "vmad": multiply_add,
    **{f"{op}{n}": simd for op in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset") for n in (2, 4)},
}  # fmt: skip
