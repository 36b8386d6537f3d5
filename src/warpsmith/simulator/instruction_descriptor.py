"""What the simulator makes of an instruction descriptor of tcgen05.mma (PTX ISA 9.7.18.4.2; the bits stand in `base`).

Reserved bits are ignored here, as the machine must run what other compilers wrote; `base`'s own `decode` refuses them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from warpsmith.base.errors import CapabilityError
from warpsmith.base.instruction_descriptor import TYPES, InstructionDescriptor

__all__ = ["decode"]


@lru_cache(maxsize=1024)
def decode(bits: int, kind: str) -> InstructionDescriptor:
    """Return the fields of a 32-bit descriptor; raise `CapabilityError` for a type number without meaning."""
    scaled = kind.startswith("mx")
    d_types, types = TYPES[kind]
    a = _named(bits, kind, "A", bits >> 7 & 7, types)
    b = _named(bits, kind, "B", bits >> 10 & (3 if kind in ("mxf4", "mxf4nvf4") else 7), types)
    common: Any = {
        "sparse": bool(bits >> 2 & 1), "negate_a": bool(bits >> 13 & 1), "negate_b": bool(bits >> 14 & 1),
        "a_mn_major": bool(bits >> 15 & 1), "b_mn_major": bool(bits >> 16 & 1),
    }  # fmt: skip
    n = (bits >> 17 & 63) * 8
    if not scaled:
        d = _named(bits, kind, "D", bits >> 4 & 3, d_types)
        return InstructionDescriptor(
            kind,
            (bits >> 24 & 31) * 16,
            n,
            d,
            a,
            b,
            selector=bits & 3,
            saturate=bool(bits >> 3 & 1),
            shift=bits >> 30,
            **common,
        )
    k96 = bool(bits >> 31)
    if k96 and (kind not in ("mxf4", "mxf4nvf4") or bits >> 2 & 1):
        raise CapabilityError(
            f"simulator: instruction descriptor {bits:#010x}: K = 96 (bit 31) is of dense .kind::mxf4 and mxf4nvf4"
        )
    factor = "ue8m0" if bits >> 23 & 1 else "ue4m3"
    if factor == "ue4m3" and kind != "mxf4nvf4":
        raise CapabilityError(
            f"simulator: instruction descriptor {bits:#010x}: .kind::{kind} takes scale factors of type ue8m0 (bit 23 set)"
        )
    m = (bits >> 27 & 3) * 128
    return InstructionDescriptor(
        kind, m, n, "f32", a, b, factor=factor, factor_a=bits >> 29 & 3, factor_b=bits >> 4 & 3, k96=k96, **common
    )  # fmt: skip


def _named(bits: int, kind: str, matrix: str, number: int, types: dict[int, str]) -> str:
    if number not in types:
        known = ", ".join(f"{n} ({t})" for n, t in types.items())
        raise CapabilityError(
            f"simulator: instruction descriptor {bits:#010x}: type {number} of {matrix} has no meaning for .kind::{kind}; "
            f"use {known}"
        )
    return types[number]
