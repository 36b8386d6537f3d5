"""Opcodes that several sections share: the type decides which file computes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from warpsmith.base.ptx_types import TYPES
from warpsmith.simulator.meanings import (
    approx,
    compare,
    convert,
    double,
    extended,
    float,
    half,
    integer,
    logic,
    mixed,
    narrow,
    scalar_video,
    video,
)
from warpsmith.simulator.meanings.forms import ROUNDINGS, Form, form_of
from warpsmith.simulator.meanings.packed import over_lanes, packed_dtype
from warpsmith.simulator.meanings.registry import Refused, in_place, pure, refuse

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import Match

__all__ = ["build_form"]

Fn = Callable[..., Any]
_SHARED = ("add", "sub", "mul", "mad", "fma", "div", "rem", "rcp", "sqrt", "abs", "neg", "min", "max", "testp", "copysign")
_OWN: dict[str, Callable[[Form], Fn | Refused]] = {
    **integer.ONLY, **logic.BUILDERS, **extended.BUILDERS, **compare.BUILDERS, **approx.BUILDERS, **video.BUILDERS,
    **scalar_video.BUILDERS,
    "cvt": convert.cvt,
}  # fmt: skip
_SAME_FOR_ALL = {"testp": float.testp, "copysign": float.copysign}


def _shared(form: Form) -> Callable[[Form], Fn | Refused] | None:
    """Return the builder of a shared opcode by its type."""
    if form.opcode in _SAME_FOR_ALL:
        return _SAME_FOR_ALL[form.opcode]
    if "cc" in form.words:
        return extended.extended
    if "approx" in form or "full" in form:
        return approx.divide if form.opcode == "div" else approx.unary
    kind = form.type
    if form.types[0] in ("e4m3x4", "e5m2x4"):
        return narrow.narrow
    if len(form.types) > 2 and all(packed_dtype(t) is not None for t in form.types):
        return mixed.mixed_pairs
    if len(form.types) == 2 and form.types[0] == "f32" and kind in ("f16", "bf16"):
        return mixed.mixed
    if kind == "f32x2":
        return _pair
    return _table(kind).get(form.opcode)


def _table(kind: str) -> Mapping[str, Callable[[Form], Fn | Refused]]:
    """Return the builders of a type; none for a type without arithmetic."""
    if kind in ("f32", "f64"):
        return float.BUILDERS if kind == "f32" else double.BUILDERS
    if half.element_of(kind) in ("f16", "bf16"):
        return half.BUILDERS
    return integer.BUILDERS if kind[0] in "us" and kind[1].isdigit() else {}


def _pair(form: Form) -> Fn:
    """Build an operation of f32x2: the f32 one on both halves."""
    lane = packed_dtype("f32x2")
    assert lane is not None
    return over_lanes(float.BUILDERS[form.opcode](form), lane)


_MODIFIERS = frozenset((
    "ftz", "sat", "satfinite", "relu", "NaN", "abs", "xorsign", "approx", "full", "hi", "lo", "wide", "cc", "clamp",
    "wrap", "l", "r", "shiftamt", "pack", "po", "u2", "s2", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16", "add", "min",
    "max", "and", "or", "xor", "oob", "finite", "infinite", "number", "notanumber", "normal", "subnormal", "eq", "ne",
    "lt", "le", "gt", "ge", "ls", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan", "shr7", "shr15", "rs",
    "scaled::n1::ue8m0", "scaled::n2::ue8m0", "pzo", "2pi",
))  # fmt: skip
"""Modifiers that these meanings know; a form with another is refused."""


def _unknown(form: Form) -> str:
    """Return a modifier that these meanings do not know, or ''."""
    known = (w in _MODIFIERS or w in ROUNDINGS or w in TYPES for w in form.words)
    return next((w for w, ok in zip(form.words, known, strict=True) if not ok), "")


def build_form(form: Form) -> Fn | Refused:
    """Return the function of a form, or why it is refused."""
    if word := _unknown(form):
        return refuse(f"`.{word}` of {form.opcode} is not modelled")
    builder = _OWN.get(form.opcode) or _shared(form)
    if builder is None:
        return refuse(f"`{form.opcode}` of .{form.type} is not modelled")
    fn = builder(form)
    return fn if isinstance(fn, Refused) else in_place(fn)


@pure(*_SHARED, *_OWN)
def arithmetic(match: Match) -> Fn | Refused:
    """Build any elementwise instruction of these sections."""
    return build_form(form_of(match))
