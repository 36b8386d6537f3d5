"""Instruction descriptors of tcgen05.mma: 32 bits that say shapes and types (PTX ISA 9.7.18.4.2).

bits   f16, tf32, f8f6f4, i8             mxf8f6f4, mxf4, mxf4nvf4
1:0    sparsity selector                 0
2      sparse                            sparse
3      saturate (i8)                     0
5:4    type of D                         scale factor id of B
9:7    type of A                         type of A
12:10  type of B                         type of B (mxf4: 11:10)
13 14  negate A, B                       negate A, B
15 16  A, B along M, N ("transpose")     A, B along M, N
22:17  N / 8                             N / 8
23     0                                 type of scale factors: 0 ue4m3, 1 ue8m0
28:24  M / 16                            28:27  M / 128
30:29  31:30 largest shift (.ws)         scale factor id of A
31                                       K is 96
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

from warpsmith.base.errors import CapabilityError

__all__ = ["KINDS", "InstructionDescriptor", "decode"]

_NARROW = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
_TYPES: dict[str, tuple[dict[int, str], dict[int, str]]] = {
    "f16": ({0: "f16", 1: "f32"}, {0: "f16", 1: "bf16"}),
    "tf32": ({1: "f32"}, {2: "tf32"}),
    "f8f6f4": ({0: "f16", 1: "f32"}, _NARROW),
    "i8": ({2: "s32"}, {0: "u8", 1: "s8"}),
    "mxf8f6f4": ({}, _NARROW),
    "mxf4": ({}, {1: "e2m1"}),
    "mxf4nvf4": ({}, {1: "e2m1"}),
}
"""Kind -> types of D, and of A and B, by their numbers."""
KINDS = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
"""Kind -> K of a dense product; twice that of a sparse one."""


@final
@dataclass(frozen=True, slots=True)
class InstructionDescriptor:
    """The fields of a descriptor."""

    kind: str
    m: int
    n: int
    d: str
    a: str
    b: str
    sparse: bool = False
    selector: int = 0
    saturate: bool = False
    negate_a: bool = False
    negate_b: bool = False
    a_mn_major: bool = False
    b_mn_major: bool = False
    shift: int = 0
    """Largest shift of B in `.ws`."""
    factor: str = ""
    """Type of the scale factors; empty without block scaling."""
    factor_a: int = 0
    """Scale factor id of A: the first byte of a word that holds its factors."""
    factor_b: int = 0

    @property
    def k(self) -> int:
        """The depth of the product."""
        return KINDS[self.kind] * (2 if self.sparse else 1)

    @property
    def packed(self) -> bool:
        """Whether two elements share a byte."""
        return self.kind in ("mxf4", "mxf4nvf4")


@lru_cache(maxsize=1024)
def decode(bits: int, kind: str) -> InstructionDescriptor:
    """Return the fields of a 32-bit descriptor; raise `CapabilityError` for a type number without meaning."""
    scaled = kind.startswith("mx")
    d_types, types = _TYPES[kind]
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
    if bits >> 31:
        raise CapabilityError(f"simulator: K = 96 of .kind::{kind} (instruction descriptor {bits:#010x}) is not modelled")
    factor = "ue8m0" if bits >> 23 & 1 else "ue4m3"
    if factor == "ue4m3" and kind != "mxf4nvf4":
        raise CapabilityError(
            f"simulator: instruction descriptor {bits:#010x}: .kind::{kind} takes scale factors of type ue8m0 (bit 23 set)"
        )
    m = (bits >> 27 & 3) * 128
    return InstructionDescriptor(
        kind, m, n, "f32", a, b, factor=factor, factor_a=bits >> 29 & 3, factor_b=bits >> 4 & 3, **common
    )  # fmt: skip


def _named(bits: int, kind: str, matrix: str, number: int, types: dict[int, str]) -> str:
    if number not in types:
        known = ", ".join(f"{n} ({t})" for n, t in types.items())
        raise CapabilityError(
            f"simulator: instruction descriptor {bits:#010x}: type {number} of {matrix} has no meaning for .kind::{kind}; "
            f"use {known}"
        )
    return types[number]
