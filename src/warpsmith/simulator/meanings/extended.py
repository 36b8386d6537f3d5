"""Extended-precision integer arithmetic (PTX ISA 9.7.2). The carry flag is a predicate of the thread.

`.cc` forms write it: `fn(out, carry_out, a, b)`; forms that read it (addc, subc, madc) take it last:
`fn(out, carry_out, a, b, carry_in)` with `.cc`, `fn(out, a, b, carry_in)` without. A subtraction adds the complement, as the
H200 does: a - b is a + ~b + 1, so that the flag it leaves (and takes) is that sum's carry, true where nothing is borrowed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.integer import mul_high, unsigned

__all__ = ["BUILDERS", "carry_operands", "extended"]

Array = NDArray[Any]
Fn = Callable[..., None]


def carry_operands(form: Form) -> tuple[bool, bool]:
    """Return (writes the carry flag, reads it)."""
    return "cc" in form, form.opcode in ("addc", "subc", "madc")


def _add(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    """Return (a + b + carry mod 2^n, carry out) of unsigned arrays."""
    partial = a + b
    total = partial + carry.astype(partial.dtype)
    return total, (partial < a) | (total < partial)


def _subtract(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    """Return (a + ~b + carry mod 2^n, carry out) of unsigned arrays."""
    return _add(a, ~b, carry)


def _summands(form: Form, operands: tuple[Array, ...]) -> tuple[Array, Array]:
    """Return the two unsigned summands of an extended instruction: mad's product is the first."""
    if form.opcode.startswith("mad"):
        a, b, c = operands
        product = mul_high(a, b) if "hi" in form else np.multiply(a, b)
        return unsigned(np.asarray(product)), unsigned(np.asarray(c))
    a, b = (unsigned(np.asarray(x)) for x in operands)
    return a, b


def extended(form: Form) -> Fn:
    """Build add.cc, addc, sub.cc, subc, mad.cc, madc."""
    writes, reads = carry_operands(form)
    subtracts = form.opcode.startswith("sub")
    step = _subtract if subtracts else _add

    def compute(operands: tuple[Array, ...]) -> tuple[Array, Array]:
        values, carry = (operands[:-1], np.asarray(operands[-1])) if reads else (operands, np.asarray(subtracts))
        return step(*_summands(form, values), carry)

    def with_carry(out: Array, carry_out: Array, *operands: Array) -> None:
        total, carry = compute(operands)
        out[...] = total.view(out.dtype)
        carry_out[...] = carry

    def plain(out: Array, *operands: Array) -> None:
        out[...] = compute(operands)[0].view(out.dtype)

    return with_carry if writes else plain


BUILDERS: dict[str, Callable[[Form], Fn]] = {"addc": extended, "subc": extended, "madc": extended}
"""Opcodes of this section alone; add.cc, sub.cc and mad.cc come through `arithmetic.py`."""
