"""Scalar video instructions (PTX ISA 9.7.20.1): on 32-bit words or on selected bytes and halves of them.

No GPU of today has these; ptxas builds them from 64-bit arithmetic. Where its code and the manual differ (bounds of `.sat`,
signs in `.min`, `.max` and vmad) the meanings do what its code computes, as seen on an H200 and in its output for sm_90a.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings.forms import Form, form_of
from warpsmith.simulator.meanings.registry import in_place
from warpsmith.simulator.meanings.video import BUILDERS as SIMD
from warpsmith.simulator.meanings.video import operation, signs, simd, values, write

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import Match

__all__ = ["BUILDERS", "Part", "is_selector", "selected"]

Array = NDArray[Any]
I64 = NDArray[np.int64]
Fn = Callable[..., None]
_SECOND: dict[str, Callable[..., I64]] = {"min": np.minimum, "max": np.maximum}
_WORD = 0xFFFFFFFF
_PARTS = {"": (32, 0), "b0": (8, 0), "b1": (8, 8), "b2": (8, 16), "b3": (8, 24), "h0": (16, 0), "h1": (16, 16)}
"""(bits, lowest bit) of what a selector names."""


@final
@dataclass(frozen=True, slots=True)
class Part:
    """How an operand is written: with a selector, with a minus."""

    member: str = ""
    minus: bool = False

    def read(self, x: Any, signed: bool) -> I64:
        """Return the selected bits, extended by the sign of the operand's type."""
        return values(x, signed, *_PARTS[self.member])


_WHOLE = (Part(),) * 4


def _signed34(x: I64) -> I64:
    return (x << 30) >> 30


def _saturate(r: I64, form: Form, signed: bool) -> I64:
    """Saturate to a word: from 34 bits; unsigned results but those of vshl have a lower bound alone."""
    if signed:
        return np.clip(_signed34(r), -(1 << 31), (1 << 31) - 1)
    if form.opcode == "vshl":
        return np.clip(_signed34(r), 0, _WORD)
    return np.maximum(r, 0)


def _saturate_part(r: I64, signed: bool, bits: int) -> I64:
    """Saturate to a part: from above alone, and what is negative is above (ptxas compares unsigned; the manual differs)."""
    top = (1 << (bits - signed)) - 1
    return np.where((r < 0) | (r > top), top, r)


def _merge(r: I64, c: Any, part: Part) -> I64:
    bits, at = _PARTS[part.member]
    mask = ((1 << bits) - 1) << at
    return (values(c, False) & ~mask) | ((r << at) & mask)


def _second(form: Form, signed: bool) -> Callable[[I64, Any], I64] | None:
    """Return the second operation: `.min` and `.max` compare 64 bits, c extended by the type of d (of a for vset)."""
    if "add" in form:
        return lambda r, c: r + values(c, False)
    pick = next((_SECOND[w] for w in form.words if w in _SECOND), None)
    if pick is None:
        return None
    shift = form.opcode in ("vshl", "vshr")
    # a sum is kept in a word and sign-extended, whatever the type
    narrow = form.opcode in ("vadd", "vsub") or (shift and "sat" in form and not signed)
    kind = np.int64 if signed else np.uint64

    def second(r: I64, c: Any) -> I64:
        r = values(r & _WORD, True) if narrow else r
        return pick(r.astype(kind), values(c, signed).astype(kind)).astype(np.int64)

    return second


def _finish(form: Form, signed: bool, d: Part) -> Callable[[Array, I64, Array | None], None]:
    """Return what follows the operation: saturation, then the second operation or the merge into c."""
    second, bits = _second(form, signed), _PARTS[d.member][0]
    by_part = bits < 32 and form.opcode not in ("vshl", "vshr")

    def finish(out: Array, r: I64, c: Array | None) -> None:
        if "sat" in form:
            r = _saturate_part(r, signed, bits) if by_part else _saturate(r, form, signed)
        if second is not None:
            r = second(r, c)
        elif d.member:
            r = _merge(r, c, d)
        write(out, r)

    return finish


def arithmetic(form: Form, parts: tuple[Part, ...] = _WHOLE) -> Fn:
    """Build vadd, vsub, vabsdiff, vmin, vmax, vset; a third operand without a part of d to merge into is ignored."""
    op, (sd, sa, sb) = operation(form), signs(form)
    finish = _finish(form, sa if form.opcode == "vset" else sd, parts[0])

    def fn(out: Array, a: Array, b: Array, c: Array | None = None) -> None:
        finish(out, op(parts[1].read(a, sa), parts[2].read(b, sb)), c)

    return fn


def shift(form: Form, parts: tuple[Part, ...] = _WHOLE) -> Fn:
    """Build vshl or vshr: `.clamp` limits the amount to 32, `.wrap` takes it modulo 32."""
    (sd, sa, _), left = signs(form), form.opcode == "vshl"
    finish = _finish(form, sd, parts[0])

    def fn(out: Array, a: Array, b: Array, c: Array | None = None) -> None:
        n = parts[2].read(b, False)
        n = n & 31 if "wrap" in form else np.minimum(n, 32)
        value = parts[1].read(a, sa)
        finish(out, value << n if left else value >> n, c)

    return fn


def multiply_add(form: Form, parts: tuple[Part, ...] = _WHOLE) -> Fn:
    """Build vmad: ±a·b ± c (+ 1 with `.po`), scaled by an arithmetic shift (a logical one where all is unsigned).

    Whole factors and c are taken as signed words in the 64-bit sum, whatever their types.
    """
    _, sa, sb = signs(form)
    _, pa, pb, pc = parts
    negative = pa.minus != pb.minus
    signed = sa or sb or negative or pc.minus
    scale = 7 if "shr7" in form else 15 if "shr15" in form else 0
    low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, _WORD)

    def fn(out: Array, a: Array, b: Array, c: Array) -> None:
        product = pa.read(a, sa or not pa.member) * pb.read(b, sb or not pb.member)
        addend = values(c, True)
        r = (-product if negative else product) + (-addend if pc.minus else addend) + int("po" in form)
        if scale:
            r = r >> scale if signed else (r.astype(np.uint64) >> np.uint64(scale)).astype(np.int64)
        write(out, np.clip(r, low, high) if "sat" in form else r)

    return fn


BUILDERS: dict[str, Callable[..., Fn]] = {
    **dict.fromkeys(("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset"), arithmetic),
    "vshl": shift, "vshr": shift, "vmad": multiply_add,
}  # fmt: skip
"""Opcodes of the scalar video instructions: the form, and how d, a, b and c are written."""


def is_selector(member: str) -> bool:
    """Say whether a member (`a.b0`, `a.h10`, `a.b7650`) is a selector or a mask of a video instruction."""
    return member[:1] in ("b", "h") and member[1:].isdecimal()


def selected(match: Match, parts: tuple[Part, ...]) -> Fn:
    """Build an instruction whose operands have selectors or signs."""
    form = form_of(match)
    if form.opcode in SIMD:
        return in_place(simd(form, tuple(p.member for p in parts[:3])))
    return in_place(BUILDERS[form.opcode](form, (*parts, *_WHOLE)[:4]))
