"""Values and brace vectors of them: lengths, elements, vector registers (PTX ISA 6.4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.check.context import is_sink
from warpsmith.assembly.ptx.check.values import constant_fault, name_fault, type_fault
from warpsmith.assembly.ptx.tree import Immediate, Name, VectorOperand
from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.check.context import Context
    from warpsmith.assembly.ptx.isa import OperandSlot
    from warpsmith.assembly.ptx.tree import Operand

__all__ = ["value_fault"]

_REGISTERS_ONLY = frozenset(("mma", "wmma", "wgmma"))
_SELECTORS = ("ida", "idb")
"""Vectors of mma that are no fragments: the byte-id and thread-id of scale factors, which may be constants."""
_VECTORS_OF_ONE = frozenset(("ld", "ldu", "mov", "st", "suld", "sust"))
"""Opcodes whose scalar may stand in braces."""


def value_fault(operand: Operand, slot: OperandSlot, at: Context) -> str:
    """Return what is wrong with a constant, a name or a vector in the place `slot`, '' if nothing."""
    if isinstance(operand, VectorOperand):
        return _vector_fault(operand, slot, at)
    if slot.count is not None and (slot.count > 1 or not slot.bare):
        return _whole_vector_fault(operand, slot, at)
    if isinstance(operand, Immediate):
        return constant_fault(operand, slot, at)
    assert isinstance(operand, Name)
    return name_fault(operand, slot, at)


def _vector_fault(operand: VectorOperand, slot: OperandSlot, at: Context) -> str:
    count = len(operand.elements)
    if slot.count is None and not (count == 1 and at.opcode in _VECTORS_OF_ONE and slot.type is at.own_type):
        return "`{}` is a vector, a scalar is wanted"
    if slot.count is not None and count != slot.count:
        return f"`{{}}` has {count} element{'s' * (count != 1)}, {slot.count} {'is' if slot.count == 1 else 'are'} wanted"
    kinds = {s.type for e in operand.elements if isinstance(e, Name) and (s := at.lookup(e.name)) and s.type}
    if len({t.bits for t in kinds}) > 1:
        return "the elements of `{}` differ in width"
    for k, element in enumerate(operand.elements):
        if is_sink(element):
            if slot.direction == "read":
                return "`{}`: `_` takes a result, it cannot be read"
            continue
        fault = _element_fault(element, slot, at, mixed=len(kinds) > 1)
        if fault:
            return f"element {k} of {fault}"
    if count and all(is_sink(e) for e in operand.elements):
        return "`{}` drops every element, one register at least must be written"
    return ""


def _element_fault(element: Operand, slot: OperandSlot, at: Context, *, mixed: bool) -> str:
    if isinstance(element, Immediate):
        if at.opcode in _REGISTERS_ONLY and slot.name not in _SELECTORS:
            return "`{}` is no register, which matrix fragments are held in"
        return constant_fault(element, slot, at)
    if not isinstance(element, Name):
        return "`{}` should be a register"
    fault = name_fault(element, slot, at)
    if fault and at.widening and _float_as_bits(element, slot, at):
        return ""
    if fault and mixed and slot.type is not None and (symbol := at.lookup(element.name)) is not None:
        # registers of different kinds and one width make a vector of untyped elements
        have = symbol.type
        if have is not None and symbol.kind == "register" and have.bits == TYPES[slot.type.reg].bits and have.kind != "pred":
            return ""
    return fault


def _float_as_bits(element: Name, slot: OperandSlot, at: Context) -> bool:
    """Say whether an integer register stands for a float in a vector of ld or st: ptxas looks at the width alone there."""
    symbol = at.lookup(element.name)
    have, want = symbol and symbol.type, slot.type
    return bool(have and want and want.kind == "float" and have.kind in ("unsigned", "signed") and have.bits == want.bits)


def _whole_vector_fault(operand: Operand, slot: OperandSlot, at: Context) -> str:
    """Check a `.v2` or `.v4` register that stands for a brace vector."""
    symbol = at.lookup(operand.name) if isinstance(operand, Name) else None
    if not isinstance(operand, Name) or (symbol is not None and symbol.vector == 1):
        return f"`{{}}` should be a vector of {slot.count} elements in braces"
    if symbol is None:
        return "`{}` is not declared"
    if symbol.vector != slot.count or symbol.kind != "register":
        return f"`{{}}` has {symbol.vector} elements, {slot.count} are wanted"
    return type_fault(operand, symbol, slot, at)
