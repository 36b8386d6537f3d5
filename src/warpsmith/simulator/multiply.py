"""One matrix product of a tensor core, by the numerics the launch asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from warpsmith.base.arch import parse_arch
from warpsmith.base.errors import CapabilityError
from warpsmith.simulator import tensorcore
from warpsmith.simulator.operand_values import INTEGERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.machine import Machine

__all__ = ["multiply", "note_products"]


_CHECKED = 90
"""The compute capability whose tensor cores were compared in every form (docs/design/hardware-capture.md)."""


def note_products(machine: Machine, subject: str, how: str) -> None:
    """Say how the products of `subject` were computed, and whether the architecture's hardware was seen to do so."""
    if parse_arch(machine.device.arch).number == _CHECKED:
        machine.fidelity.note(subject, "hardware-checked", f"bit for bit what an H200 gave: {how}")
    else:
        machine.fidelity.note(subject, "published model", how)


def multiply(
    machine: Machine,
    a: NDArray[Any],
    b: NDArray[Any],
    c: NDArray[Any] | None,
    types: tuple[str, str, str, str],
    *,
    saturate: bool = False,
    wgmma: bool = False,
    volta_shape: bool = False,
    sparse: Literal["", "met", "spread"] = "",
) -> NDArray[Any]:
    """Return A·B + C for operand values (see `operand_values`); `types` are those of D, A, B, C. Leading axes are a batch.

    f16 results are float32 values that f16 holds. `sparse`: `a` is what is stored of A and `b` what each row "met" in B, or
    `a` is "spread" over twice the depth with zeros between.
    """
    d_type, a_type, b_type, c_type = types
    depth = a.shape[-1] // (2 if sparse == "spread" else 1)
    machine.counters.tensor_flops += 2 * int(np.prod(a.shape[:-1], dtype=np.int64)) * depth * b.shape[-1]
    if a_type in INTEGERS:
        return tensorcore.integer(a, b, c, saturate=saturate)
    if machine.numerics == "fast":
        machine.fidelity.note(
            f"{a_type} tensor cores",
            "approximate",
            'products were computed in float32 by numpy (numerics="fast"), not bit for bit',
        )
        return tensorcore.fast(a, b, c, half=d_type == "f16")
    capability = parse_arch(machine.device.arch).number
    try:
        rule = tensorcore.rule_for(capability, a_type, b_type, d_type, c_type, wgmma=wgmma, volta_shape=volta_shape)
    except KeyError:
        raise CapabilityError(f'simulator: {a_type} operands are not modelled exactly; use numerics="fast"') from None
    terms = "stored terms" if sparse else "terms"
    how = f"truncated fused dot products: {rule.block} {terms}, {rule.fraction} bits below the largest exponent"
    note_products(machine, f"{'sparse ' if sparse else ''}{a_type} tensor cores", how)
    if sparse == "spread":  # as many stored products a block; zeros change no sum, nor the exponent it is aligned to
        rule = replace(rule, block=2 * rule.block)
    return tensorcore.exact(a, b, c, rule)
