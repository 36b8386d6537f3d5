"""Mixed-precision arithmetic (PTX ISA 9.7.5): f16 or bf16 factors and summands with an f32 sum, rounded once to f32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from warpsmith.simulator.meanings import float as single
from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.half import load

__all__ = ["mixed"]

Fn = Callable[..., None]


def mixed(form: Form) -> Fn:
    """Build add, sub or fma of `.f32.f16` or `.f32.bf16`: the last operand is f32, those before it are halves."""
    kind = form.types[1]
    inner = single.BUILDERS[form.opcode](replace(form, types=("f32",)))

    def fn(out: Any, *operands: Any) -> None:
        *halves, last = operands
        inner(out, *(load(h, kind) for h in halves), last)

    return fn
