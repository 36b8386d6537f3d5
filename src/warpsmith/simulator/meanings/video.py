"""SIMD video instructions (PTX ISA 9.7.20.2): on two halves or four bytes; what the scalar ones share with them.

A selector of a or b names the source of each lane, the highest first: digits count the lanes of a, then those of b (`a.h32`
takes both halves of b). A mask of d names the lanes that are written; the others come from c (with `.add`: are left out).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings.compare import comparison
from warpsmith.simulator.meanings.forms import Form

__all__ = ["BUILDERS", "operation", "signs", "simd", "values", "write"]

Array = NDArray[Any]
I64 = NDArray[np.int64]
Fn = Callable[..., None]
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def values(x: Any, signed: bool, bits: int = 32, at: int = 0) -> I64:
    """Return bits at … at+bits of 32-bit words as integers of their signedness."""
    word = (np.asarray(x).astype(np.int64) >> at) & ((1 << bits) - 1)
    return np.where(word >> (bits - 1) != 0, word - (1 << bits), word) if signed else word


def _clamp(x: I64, signed: bool, bits: int = 32) -> I64:
    return np.clip(x, -(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else np.clip(x, 0, (1 << bits) - 1)


def signs(form: Form) -> tuple[bool, bool, bool]:
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


def operation(form: Form) -> Callable[[I64, I64], I64]:
    """Return the operation on two integers; vset gives 1 or 0."""
    base = form.opcode.rstrip("24")
    if base != "vset":
        return _BINARY[base]
    compare = comparison(next(w for w in form.words if w in _COMPARISONS), False)
    return lambda a, b: compare(a, b).astype(np.int64)


def write(out: Array, value: I64) -> None:
    """Write the low word of `value`."""
    out[...] = (value & 0xFFFFFFFF).astype(np.uint32).view(out.dtype)


def _digits(member: str, otherwise: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers that a selector or a mask names, the lowest lane first."""
    return tuple(int(d) for d in reversed(member[1:])) or otherwise


def simd(form: Form, members: tuple[str, ...] = ("", "", "")) -> Fn:
    """Build v…2 and v…4: each lane by itself; `.add` sums the lanes' results and c. `members`: those of d, a and b."""
    op, (sd, sa, sb) = operation(form), signs(form)
    bits = 16 if form.opcode.endswith("2") else 8
    lanes = tuple(range(32 // bits))
    mask = _digits(members[0], lanes)
    from_a, from_b = _digits(members[1], lanes), _digits(members[2], tuple(n + len(lanes) for n in lanes))

    def lane(a: Array, b: Array, number: int, signed: bool) -> I64:
        return values(a if number < len(lanes) else b, signed, bits, bits * (number % len(lanes)))

    def fn(out: Array, a: Array, b: Array, c: Array) -> None:
        results: dict[int, I64] = {}
        for i in mask:
            r = op(lane(a, b, from_a[i], sa), lane(a, b, from_b[i], sb))
            results[i] = _clamp(r, sd, bits) if "sat" in form else r
        if "add" in form.words:
            total = values(c, sd)
            for r in results.values():
                total = total + r
            write(out, total)
            return
        word = values(c, False) if len(mask) < len(lanes) else np.zeros((), np.int64)
        for i, r in results.items():
            low = ((1 << bits) - 1) << (bits * i)
            word = (word & ~low) | ((r << (bits * i)) & low)
        write(out, word)

    return fn


BUILDERS: dict[str, Callable[[Form], Fn]] = {
    f"{op}{n}": simd for op in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset") for n in (2, 4)
}
"""Opcodes of the SIMD video instructions, for `arithmetic.py`."""
