"""Products that ptxas builds from other instructions where the architecture lacks them, as seen in its output and on an H200.

`mma` of 8-bit floats, sm_90 to sm_110: the operands become f16, two products of half the depth are chained from zero, and C
is added last, rounding to nearest. The first takes elements 0 and 1 of every four (for a sparse A, of what is stored), the
second elements 2 and 3.

`mma.m8n8k4` of f16, from sm_80 on: f32 arithmetic. With an f32 result a chain of fused multiply-adds from zero, then C is
added; with an f16 one ((C + pair) + other pair), a pair being one rounded product and one fused multiply-add.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warpsmith.base.arch import parse_arch
from warpsmith.simulator.meanings.single import sum_single
from warpsmith.simulator.multiply import note_products
from warpsmith.simulator.tensorcore import exact, round_sums, rule_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.machine import Machine

    F32 = NDArray[np.float32]
    F64 = NDArray[np.float64]
    Types = tuple[str, str, str, str]

__all__ = ["bytes_as_halves", "chained", "lacks_bytes", "lacks_volta_shape", "volta_product"]


def lacks_bytes(machine: Machine, type_: str) -> bool:
    """Say whether the device's `mma` computes 8-bit floats as f16."""
    exact_numerics = machine.numerics == "exact"
    return exact_numerics and type_ in ("e4m3", "e5m2") and 90 <= parse_arch(machine.device.arch).number < 120


def lacks_volta_shape(machine: Machine) -> bool:
    """Say whether the device's `mma.m8n8k4` of f16 is computed without tensor cores."""
    return machine.numerics == "exact" and parse_arch(machine.device.arch).number >= 80


def chained(a: F32, b: F32, d_type: str, capability: int) -> F32:
    """Return A·B of 8-bit floats as two chained f16 products; `a[…, m, k]` as stored, `b[…, k, n]` what it meets."""
    rule = rule_for(capability, "f16", "f16", d_type, d_type)
    place = np.arange(a.shape[-1]) % 4
    total: F32 | None = None
    for k in (np.flatnonzero(place < 2), np.flatnonzero(place >= 2)):
        total = exact(a[..., k], b[..., k, :], total, rule)
    assert total is not None
    return total


def bytes_as_halves(machine: Machine, a: F32, b: F32, c: F32, types: Types, columns: NDArray[np.intp] | None) -> F32:
    """Return A·B + C of 8-bit floats; `columns` are those of a sparse A's stored elements."""
    capability = parse_arch(machine.device.arch).number
    machine.counters.tensor_flops += 2 * int(np.prod(a.shape)) * b.shape[-1]
    note_products(
        machine, f"{'' if columns is None else 'sparse '}{types[1]} tensor cores", "8-bit floats as f16, C added last"
    )
    if columns is None:
        product = chained(a, b, types[0], capability)
    else:  # one row at a time meets the elements of B that it names
        met = np.take_along_axis(b[..., None, :, :], columns[..., None], axis=-2)
        product = chained(a[..., None, :], met, types[0], capability)[..., 0, :]
    with np.errstate(all="ignore"):
        total = product.astype(np.float64) + c.astype(np.float64)
        if types[0] == "f16":
            return round_sums(total, "rne16")
        return _canonical(product + c)


def volta_product(machine: Machine, a: F32, b: F32, c: F32, types: Types) -> F32:
    """Return A·B + C of `a[…, 8, 4]` and `b[…, 4, 8]` as f32 arithmetic gives it."""
    machine.counters.tensor_flops += 2 * int(np.prod(a.shape)) * b.shape[-1]
    note_products(machine, "mma.m8n8k4 of f16", "f32 multiply-adds without tensor cores")
    left, right = a.astype(np.float64), b.astype(np.float64)
    terms = [left[..., k, None] * right[..., k, None, :] for k in range(4)]  # exact: 22 bits
    third = np.broadcast_to(c, terms[0].shape).astype(np.float32)
    with np.errstate(all="ignore"):
        if types[0] == "f32":
            total = sum_single(terms[0], np.zeros_like(terms[0]), "rn")
            for term in terms[1:]:
                total = sum_single(term, total.astype(np.float64), "rn")
            return _canonical(total + third)
        pairs = [sum_single(terms[i + 1], terms[i].astype(np.float32).astype(np.float64), "rn") for i in (0, 2)]
        return round_sums(((third + pairs[0]) + pairs[1]).astype(np.float64), "rne16")


def _canonical(x: F32) -> F32:
    x.view(np.uint32)[np.isnan(x)] = 0x7FFFFFFF
    return x
