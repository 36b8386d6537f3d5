"""Which register or constant may stand for an operand of a type (PTX ISA 9.2 agreement, 9.4 wider operands).

ptxas has the last word where it is stricter or laxer than the manual: types that are kept in an untyped register (bf16, tf32,
e4m3x2, …) take that untyped register only; a register declared .f16x2 counts as untyped where integers are wanted.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from warpsmith.base.ptx_types import TYPES, PtxType

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.tree import Immediate

__all__ = ["REGISTER_TYPES", "WIDENING", "constant_agrees", "register_agrees", "wanted"]

REGISTER_TYPES = frozenset(
    (
        *("b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"),
        *("f16", "f16x2", "f32", "f64", "pred"),
    )
)
"""Types a register may be declared with, as ptxas has it."""
WIDENING = frozenset(("ld", "ldu", "st", "cvt", "suld", "sust", "sured"))
"""Opcodes whose registers may be wider than the instruction's type (9.4.1)."""


@cache
def register_agrees(want: PtxType, have: PtxType, widening: bool = False) -> bool:
    """Say whether a register of type `have` may stand where the instruction's type is `want`."""
    if want.kind == "pred" or have.kind == "pred":
        return want is have
    if want.register and want.register != want.name:
        storage = TYPES[want.register]
        if want.name in ("s16x2", "u16x2", "s8x4", "u8x4") and have.name == "f16x2":
            return True
        return have.kind == "bits" and have.bits == storage.bits
    if have.bits < want.bits or (have.bits > want.bits and not widening):
        return False
    if want.kind == "bits" or have.kind == "bits":
        return True
    if want.kind in ("unsigned", "signed"):
        return have.kind in ("unsigned", "signed") or have.name == "f16x2"
    return have is want


@cache
def wanted(want: PtxType, widening: bool = False, packed: bool = True) -> str:
    """Say which registers agree with `want`, for a message: `.b32, .f32`; without .f16x2 where the place takes none."""
    among = [t for t in TYPES.values() if t.name in REGISTER_TYPES and (packed or t.name != "f16x2")]
    agreeing = [t.ptx for t in among if register_agrees(want, t, widening)]
    return ", ".join(agreeing)


def constant_agrees(want: PtxType, constant: Immediate) -> bool:
    """Say whether a constant may stand where the instruction's type is `want` (4.5, as ptxas has it)."""
    if constant.kind == "int":
        return want.kind in ("bits", "unsigned", "signed", "pred") and not want.register
    if want.name in ("f32", "f64"):
        return True
    if want.name == "b32":
        return constant.kind == "f32"
    return want.name == "b64" and constant.kind != "f32"
