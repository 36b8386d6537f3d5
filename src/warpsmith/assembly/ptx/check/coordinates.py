"""Coordinates, offsets and gradients of textures and surfaces (PTX ISA 9.7.12.3, 9.7.12.4, 9.7.13).

Of an array the first coordinate is the index of the layer: an integer in a register of 32 bits, or an integer constant. The
others have one type. ptxas compares each with the one before it, constants too, and does not mind integer registers in braces
where floats are wanted (it reads their bits); constants are of the wanted kind.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.check.register_types import register_agrees, wanted
from warpsmith.assembly.ptx.check.values import constant_fault, name_fault
from warpsmith.assembly.ptx.tree import Immediate, Name
from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.ptx.check.context import Context
    from warpsmith.assembly.ptx.isa import OperandSlot
    from warpsmith.assembly.ptx.tree import Operand, VectorOperand
    from warpsmith.base.ptx_types import PtxType

__all__ = ["coordinate_fault", "coordinates_fault", "holds_coordinates", "no_register"]

_SAMPLED = frozenset(("tex", "tld4"))
_COORDINATES = "c"
_MARKED = frozenset("cexy")
"""Operands that are coordinates, offsets and gradients."""


def holds_coordinates(slot: OperandSlot, at: Context) -> bool:
    """Say whether the place is that of the coordinates of a texture."""
    return slot.name == _COORDINATES and at.opcode in _SAMPLED


def no_register(slot: OperandSlot, at: Context) -> bool:
    """Say whether no vector register may stand for the vector: ptxas ends without a word where one does."""
    return at.opcode in _SAMPLED and slot.name in _MARKED and (slot.first is not None or slot.name != _COORDINATES)


def coordinates_fault(operand: VectorOperand, slot: OperandSlot, at: Context) -> str:
    """Return what is wrong with the elements of a vector of coordinates of the right length, '' if nothing."""
    elements: Sequence[Operand] = operand.elements
    start = 0
    if slot.first is not None:
        fault = _layer_fault(elements[0], slot.first, slot, at)
        if fault:
            return f"element 0 of {fault}"
        start = 1
    types = [_type(e, at) for e in elements[start:]]
    if any(a and b and not _alike(a, b) for a, b in pairwise(types)):
        return "the elements of `{}` are of different types"
    for k, element in enumerate(elements[start:], start):
        fault = coordinate_fault(element, slot, at, mixed=len(set(types)) > 1)
        if fault:
            return f"element {k} of {fault}"
    return ""


def _layer_fault(element: Operand, want: PtxType, slot: OperandSlot, at: Context) -> str:
    if isinstance(element, Immediate):
        return "" if element.kind == "int" else f"`{{}}` is a floating-point constant, type .{want} is wanted"
    if not isinstance(element, Name):
        return "`{}` should be a register"
    have = _type(element, at)
    if have is None or have.kind == "pred":
        return name_fault(element, slot, at)
    if register_agrees(want, have) and have.kind != "packed":
        return ""
    return f"`{{}}` is .{have}, the index of a layer of type .{want} is wanted (.b32, .u32, .s32)"


def coordinate_fault(element: Operand, slot: OperandSlot, at: Context, *, mixed: bool = False) -> str:
    """Return what is wrong with one coordinate, or with a vector register that holds all, '' if nothing."""
    assert slot.type is not None
    if isinstance(element, Immediate):
        return constant_fault(element, slot, at)
    if not isinstance(element, Name):
        return "`{}` should be a register"
    have = _type(element, at)
    if have is None or have.kind == "pred" or have.bits != slot.type.bits:
        return name_fault(element, slot, at)
    integer = have.kind in ("bits", "unsigned", "signed")
    if integer or mixed or have is slot.type or (have.name == "f16x2" and slot.type.kind == "signed"):
        return ""
    return f"`{{}}` is .{have}, an operand of type .{slot.type} is wanted ({wanted(slot.type)})"


def _type(element: Operand, at: Context) -> PtxType | None:
    if isinstance(element, Immediate):
        return TYPES["s32" if element.kind == "int" else "f32"]
    symbol = at.lookup(element.name) if isinstance(element, Name) else None
    return symbol.type if symbol and symbol.kind == "register" else None


def _alike(a: PtxType, b: PtxType) -> bool:
    integers = ("unsigned", "signed")
    return a is b or "bits" in (a.kind, b.kind) or (a.kind in integers and b.kind in integers)
