"""Descriptors of matrices and of tensor core instructions, field by field, as text.

A 64-bit value is a matrix in shared memory: of tcgen05 when bits 48:46 hold 1 (PTX ISA 9.7.18.4.1), else of wgmma
(9.7.15.5.1). A 32-bit value with `kind=` is an instruction descriptor of tcgen05.mma (9.7.18.4.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from warpsmith.base.errors import InputError
from warpsmith.base.instruction_descriptor import KINDS, decode, fields_of

__all__ = ["TCGEN05_SWIZZLES", "explain_descriptor"]

TCGEN05_SWIZZLES = {"none": 0, "128B_atom_32B": 1, "128B": 2, "64B": 4, "32B": 6}
"""Swizzles of tcgen05's descriptors and their numbers in bits 63:61; 3, 5 and 7 are invalid."""
_WGMMA_SWIZZLES = {"none": 0, "128B": 1, "64B": 2, "32B": 3}


@final
@dataclass(frozen=True, slots=True)
class _Layout:
    name: str
    swizzle_low: int
    swizzles: dict[str, int]
    constant: int
    """What the reserved bits hold."""
    reserved: int
    """Mask of the reserved bits."""


def _mask(*ranges: tuple[int, int]) -> int:
    return sum(((1 << width) - 1) << low for low, width in ranges)


_WGMMA = _Layout("wgmma descriptor", 62, _WGMMA_SWIZZLES, 0, _mask((14, 2), (30, 2), (46, 3), (52, 10)))
_TCGEN05 = _Layout("tcgen05 descriptor", 61, TCGEN05_SWIZZLES, 1 << 46, _mask((14, 2), (30, 2), (46, 3), (53, 8)))


def explain_descriptor(bits: int, kind: str | None = None) -> str:
    """Return the fields of a descriptor as text, a line each; a last line names reserved bits that are wrong.

    `kind` is that of the `tcgen05.mma` an instruction descriptor is for. Raise `InputError` for what is no such value.
    """
    if kind is not None:
        return _instruction(bits, kind)
    if not 0 <= bits < 1 << 64:
        raise InputError(f"explain_descriptor: {bits:#x} is no 64-bit descriptor; give what make_descriptor computes")
    tcgen05 = bits >> 46 & 7 == 1
    how = _TCGEN05 if tcgen05 else _WGMMA
    number = bits >> how.swizzle_low
    swizzle = {n: name for name, n in how.swizzles.items()}.get(number, f"{number}, which is invalid")
    lines = [
        f"{how.name} {bits:#018x}",
        f"  13:0   start address             {(bits & 0x3FFF) << 4:#x}",
        f"  29:16  leading dimension {_leading(bits, tcgen05)}",
        f"  45:32  stride dimension offset   {(bits >> 32 & 0x3FFF) << 4} bytes",
        *(["  48:46  constant                  1"] if tcgen05 else []),
        f"  51:49  base offset               {bits >> 49 & 7}",
        *([f"  52     leading dimension mode    {'absolute' if bits >> 52 & 1 else 'relative'}"] if tcgen05 else []),
        f"  63:{how.swizzle_low}  swizzle                   {swizzle}",
    ]
    stray = [i for i in range(64) if (bits ^ how.constant) & how.reserved & 1 << i]
    if stray:
        lines.append(f"  reserved bits that must be 0: {', '.join(map(str, stray))}")
    return "\n".join(lines)


def _leading(bits: int, tcgen05: bool) -> str:
    value = (bits >> 16 & 0x3FFF) << 4
    return f"address {value:#x}" if tcgen05 and bits >> 52 & 1 else f"offset  {value} bytes"


def _instruction(bits: int, kind: str) -> str:
    if kind not in KINDS:
        raise InputError(f"explain_descriptor: kind is one of {', '.join(KINDS)}, not {kind!r}")
    if not 0 <= bits < 1 << 32:
        raise InputError(f"explain_descriptor: {bits:#x} is no 32-bit instruction descriptor; leave kind out for a matrix's")
    lines = [f"tcgen05.mma .kind::{kind} instruction descriptor {bits:#010x}"]
    for f in fields_of(kind):
        if f.attribute or f.number(bits):
            lines.append(f"  {f.place:6} {f.name:25} {f.text(bits) if f.attribute else f'{f.number(bits)}, must be 0'}")
    try:
        d = decode(bits, kind)
    except ValueError as e:
        return "\n".join([*lines, f"  invalid: {e}"])
    return "\n".join([*lines, f"  D {d.m}x{d.n} {d.d} = A {d.m}x{d.k} {d.a} · B {d.k}x{d.n} {d.b}"])
