"""Comparison and selection (PTX ISA 9.7.6, 9.7.7): setp, set, selp, slct for integers, floats and halves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings import half
from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.packed import elements, over_lanes, packed_dtype
from warpsmith.simulator.meanings.single import flush

__all__ = ["BUILDERS", "comparison", "set_", "setp"]

Array = NDArray[Any]
Bools = NDArray[np.bool_]
Fn = Callable[..., None]

_ORDERED: dict[str, np.ufunc] = {
    "eq": np.equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
_UNORDERED_NOT = {"equ": np.not_equal, "ltu": np.greater_equal, "leu": np.greater, "gtu": np.less_equal, "geu": np.less}
"""A comparison that is also true for NaN -> its complement among the ordered ones (`equ` apart)."""
_BOOL: dict[str, np.ufunc] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_FLOATS = ("f16", "bf16", "f32", "f64")


def _numeric_ne(a: Array, b: Array) -> Bools:
    return (a != b) & (a == a) & (b == b)


def _equal_or_nan(a: Array, b: Array) -> Bools:
    return (a == b) | (a != a) | (b != b)


def comparison(op: str, floating: bool) -> Callable[[Array, Array], Bools]:
    """Return the function of a comparison operator on values; NaN makes ordered ones false, unordered ones true."""
    if op in _ORDERED:
        return _ORDERED[op]
    if op == "ne":
        return _numeric_ne if floating else np.not_equal
    if op == "neu":
        return np.not_equal
    if op == "equ":
        return _equal_or_nan
    if op == "num":
        return lambda a, b: (a == a) & (b == b)
    if op == "nan":
        return lambda a, b: (a != a) | (b != b)
    complement = _UNORDERED_NOT[op]
    return lambda a, b: ~complement(a, b)


_OPERATORS = (*_ORDERED, *_UNORDERED_NOT, "ne", "neu", "num", "nan")


def _operators(form: Form) -> tuple[str, str | None]:
    """Return (comparison, Boolean operation or None)."""
    return next(w for w in form.words if w in _OPERATORS), next((w for w in form.words if w in _BOOL), None)


def _values(form: Form, kind: str) -> Callable[[Any], Array]:
    """Return how operand arrays of a type become comparable values."""
    if kind in ("f16", "bf16"):
        if form.ftz:
            return lambda x: half.load(half.flush(np.asarray(x), kind), kind)
        return lambda x: half.load(x, kind)
    if kind == "f32" and form.ftz:
        return flush
    return lambda x: x


def setp(form: Form) -> Fn:
    """Build setp: `fn(p, a, b)` or `fn(p, q, a, b)`, then c with a Boolean operation; p or q may be None.

    p is (a cmp b) op c, q the same of the negated comparison; of packed types p is the lower half's, q the upper one's.
    """
    op, boolean = _operators(form)
    kind = half.element_of(form.type)
    compare, combine = comparison(op, kind in _FLOATS), _BOOL[boolean] if boolean else None
    values, lane = _values(form, kind), packed_dtype(form.type)
    reads = 3 if boolean else 2

    def truths(a: Array, b: Array, two: bool) -> tuple[Bools, Bools]:
        if lane:
            shape = np.broadcast_shapes(np.shape(a), np.shape(b)) or (1,)
            both = compare(values(elements(a, lane, shape)), values(elements(b, lane, shape)))
            return both[..., ::2], both[..., 1::2]
        first = compare(values(a), values(b))
        return first, ~first if two else first

    def general(*operands: Any) -> None:
        outs, (a, b, *c) = operands[:-reads], operands[-reads:]
        results = truths(a, b, len(outs) > 1)
        joined = [r if combine is None else combine(r, c[0]) for r in results[: len(outs)]]
        for out, result in zip(outs, joined, strict=True):
            if out is not None:
                out[...] = result

    def plain(*operands: Any) -> None:
        if len(operands) == 3 and operands[0] is not None:
            compare(operands[1], operands[2], operands[0])  # type: ignore[call-arg]
        else:
            general(*operands)

    simple = combine is None and not form.ftz and kind not in ("f16", "bf16") and isinstance(compare, np.ufunc)
    return plain if simple else general


def _true_value(kind: str) -> Any:
    """What `set` writes for true: 1.0 for floats, all ones for integers."""
    codes = {"f32": np.float32(1), "f16": np.uint16(0x3C00), "bf16": np.uint16(0x3F80)}
    if kind in codes:
        return codes[kind]
    return np.int64(-1).astype(f"{'int' if kind[0] == 's' else 'uint'}{kind[1:]}")


def _set_elements(form: Form) -> Fn:
    """Build set of a packed type: all ones in each element whose comparison holds."""
    op, _ = _operators(form)
    compare, lane = comparison(op, floating=False), packed_dtype(form.type)
    assert lane is not None

    def fn(out: Array, a: Array, b: Array) -> None:
        out[...] = np.where(compare(a, b), lane.type(-1 if lane.kind == "i" else np.iinfo(lane).max), lane.type(0))

    return over_lanes(fn, lane)


def set_(form: Form) -> Fn:
    """Build set: `fn(out, a, b, c)`; with a packed source each half of the result is that half's truth."""
    if len(form.types) == 1:
        return _set_elements(form)
    op, boolean = _operators(form)
    to, source = form.types[-2], form.types[-1]
    kind = half.element_of(source)
    compare, combine = comparison(op, kind in _FLOATS), _BOOL[boolean] if boolean else None
    values, lane = _values(form, kind), packed_dtype(source)
    packed_result = packed_dtype(to) is not None
    true = _true_value(half.element_of(to)) if not lane or packed_result else np.uint16(0xFFFF)

    def scalar(out: Array, a: Array, b: Array, c: Bools | None = None) -> None:
        truth = compare(values(a), values(b))
        if combine is not None:
            truth = combine(truth, c)
        out[...] = np.where(truth, true, true.dtype.type(0))

    def packed(out: Array, a: Array, b: Array, c: Bools | None = None) -> None:
        both = None if c is None else np.repeat(np.broadcast_to(c, out.shape), 2, axis=-1)
        over_lanes(lambda o, x, y: scalar(o, x, y, both), np.dtype(np.uint16))(out, a, b)

    return packed if lane else scalar


def selp(form: Form) -> Fn:
    """Build selp: a where the predicate holds, else b."""

    def fn(out: Array, a: Array, b: Array, c: Bools) -> None:
        out[...] = np.where(c, a, b)

    return fn


def slct(form: Form) -> Fn:
    """Build slct: a where c >= 0 (-0 counts as 0, NaN does not), else b."""

    def fn(out: Array, a: Array, b: Array, c: Array) -> None:
        out[...] = np.where((flush(c) if form.ftz else c) >= 0, a, b)

    return fn


BUILDERS: dict[str, Callable[[Form], Fn]] = {"setp": setp, "set": set_, "selp": selp, "slct": slct}
