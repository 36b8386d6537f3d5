"""Recognise a field from what single bit flips did to one token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.sass.floats import FLOAT_KINDS, format_float
from warpsmith.assembly.sass.row import Bits, Field
from warpsmith.assembly.sass.tokens import kind_of, number_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

__all__ = ["field_of", "runs"]


def runs(bits: Sequence[int]) -> Bits:
    """Join single bits, least significant first, into runs."""
    out: list[tuple[int, int]] = []
    for bit in bits:
        if out and out[-1][0] + out[-1][1] == bit:
            out[-1] = (out[-1][0], out[-1][1] + 1)
        else:
            out.append((bit, 1))
    return tuple(out)


def field_of(base: int, token: str, flips: Mapping[int, str], spare: Collection[int]) -> Field | None:
    """Return the field whose text is `token` in `base` and `flips[b]` where bit b is inverted; None if no kind of field
    does that.

    `spare` are bits whose flip is illegal: one may be the missing low bit of a register.
    """
    kind = kind_of(token)
    if kind in ("x", "r"):
        return _integer(base, token, kind, flips)
    if kind == "f":
        return _float(base, token, flips)
    return _register(base, token, kind, flips, spare)


def _register(base: int, token: str, kind: str, flips: Mapping[int, str], spare: Collection[int]) -> Field | None:
    numbers = {bit: number_of(text, kind) for bit, text in flips.items()}
    known = [n for n in (*numbers.values(), number_of(token, kind)) if n is not None]
    if not known:
        return None
    ones = 0
    for n in known:
        ones |= n
    ones = (1 << max(ones.bit_length(), 1)) - 1
    full = lambda n: ones if n is None else n  # noqa: E731
    start = full(number_of(token, kind))
    weights: dict[int, int] = {}
    for bit, n in numbers.items():
        delta = full(n) ^ start
        if delta & (delta - 1) or not delta or delta.bit_length() - 1 in weights:
            return None
        weights[delta.bit_length() - 1] = bit
    count = ones.bit_length()
    for weight in reversed(range(count)):  # a low bit that must stay even has no legal flip
        if weight not in weights and weight + 1 in weights and weights[weight + 1] - 1 in spare:
            weights[weight] = weights[weight + 1] - 1
    if sorted(weights) != list(range(count)):
        return None
    found = Field(runs([weights[k] for k in range(count)]), kind)
    return found if found.text(base, 0) == token else None


def _integer(base: int, token: str, kind: str, flips: Mapping[int, str]) -> Field | None:
    start = number_of(token, kind) or 0
    weights: dict[int, int] = {}
    signed = False
    for bit, text in flips.items():
        delta = (number_of(text, kind) or 0) - start
        if not delta or abs(delta) & (abs(delta) - 1) or abs(delta).bit_length() - 1 in weights:
            return None
        weights[abs(delta).bit_length() - 1] = bit
        if (delta < 0) != bool(base >> bit & 1):
            signed = True
    low, top = min(weights), max(weights)
    if sorted(weights) != list(range(low, top + 1)):
        return None
    bits = runs([weights[k] for k in range(low, top + 1)])
    letter = "r" if kind == "r" else "s" if signed else "u"
    plain = Field(bits, letter, low)
    return Field(bits, letter, low, start - plain.number(base))


def _float(base: int, token: str, flips: Mapping[int, str]) -> Field | None:
    order = sorted(flips)
    for kind, (width, _) in FLOAT_KINDS.items():
        if width != len(order):
            continue
        found = Field(runs(order), kind)
        value = lambda word, f=found: sum((word >> b & 1) << i for i, b in enumerate(order))  # noqa: E731
        if format_float(kind, value(base)) == token and all(
            format_float(kind, value(base ^ 1 << b)) == text for b, text in flips.items()
        ):
            return found
    return None
