"""Values and brace vectors of them: lengths, elements, vector registers (PTX ISA 6.4.3)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.check.context import is_sink
from warpsmith.assembly.ptx.check.coordinates import coordinate_fault, coordinates_fault, holds_coordinates, no_register
from warpsmith.assembly.ptx.check.values import constant_fault, name_fault, type_fault
from warpsmith.assembly.ptx.tree import Immediate, Name, VectorOperand
from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.check.context import Context
    from warpsmith.assembly.ptx.isa import OperandSlot
    from warpsmith.assembly.ptx.tree import Operand
    from warpsmith.base.ptx_types import PtxType

__all__ = ["value_fault"]

_FRAGMENTS = frozenset(("mma", "wmma", "wgmma", "tcgen05"))
"""Opcodes whose elements may be constants where the register that holds them takes one, whatever the elements are."""
_SELECTORS = ("ida", "idb")
"""Vectors of mma that are no fragments: the byte-id and thread-id of scale factors."""
_HELD_IN_ONE = ("sa", "sb", "e")
"""Operands of mma in one register, which may stand in braces as fragments do: scale factors and metadata."""
_BRACES = ("multimem.", "tcgen05.", "mma.sp", "cvt.")
"""How mnemonics begin whose vectors no vector register stands for: ptxas refuses it, or ends without a word."""
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
    if slot.count is None and not (count == 1 and _takes_braces(slot, at)):
        return "`{}` is a vector, a scalar is wanted"
    if slot.count is not None and count != slot.count:
        return f"`{{}}` has {count} element{'s' * (count != 1)}, {slot.count} {'is' if slot.count == 1 else 'are'} wanted"
    if holds_coordinates(slot, at):
        return coordinates_fault(operand, slot, at)
    types = [s.type for e in operand.elements if isinstance(e, Name) and (s := at.lookup(e.name)) and s.type]
    kinds = set(types)
    if len({t.bits for t in kinds}) > 1:
        return "the elements of `{}` differ in width"
    if len(kinds) > 1 and any(not _alike(a, b) for a, b in pairwise(types)):
        return "the elements of `{}` are of different types"
    for k, element in enumerate(operand.elements):
        if is_sink(element):
            if slot.direction != "write" and not slot.sink:
                return "`{}`: `_` takes a result, it cannot be read"
            continue
        fault = _element_fault(element, slot, at, mixed=len(kinds) > 1)
        if fault:
            return f"element {k} of {fault}"
    if at.opcode in _FRAGMENTS and _constants_alone(operand, slot):
        return "`{}` holds constants alone, a register is wanted among them"
    if count and all(is_sink(e) for e in operand.elements):
        return "`{}` drops every element, one register at least must be written"
    return ""


def _alike(a: PtxType, b: PtxType) -> bool:
    """Say whether registers may stand next to each other in a vector: ptxas compares each element with the one before it."""
    integers = all(t.kind in ("unsigned", "signed") for t in (a, b))
    return a is b or integers or "bits" in (a.kind, b.kind)


def _takes_braces(slot: OperandSlot, at: Context) -> bool:
    """Say whether a scalar may stand in braces."""
    if at.opcode == "mma":
        return slot.name in _HELD_IN_ONE
    if at.opcode not in _VECTORS_OF_ONE or slot.type is not at.own_type or at.mnemonic.startswith("st.async"):
        return False
    return at.opcode != "mov" or (slot.type is not None and slot.type.kind == "bits")


def _element_fault(element: Operand, slot: OperandSlot, at: Context, *, mixed: bool) -> str:
    if isinstance(element, Immediate):
        if at.opcode in _FRAGMENTS and slot.type is not None and slot.name not in _SELECTORS:
            return _fragment_constant(element, slot.type, slot)
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


def _constants_alone(operand: VectorOperand, slot: OperandSlot) -> bool:
    """Say whether a fragment of untyped registers has none, so that nothing says what its constants are."""
    held = slot.type and TYPES[slot.type.reg]
    if held is None or held.kind not in ("bits", "unsigned") or slot.name in _SELECTORS:
        return False
    return all(isinstance(e, Immediate) for e in operand.elements)


def _fragment_constant(element: Immediate, want: PtxType, slot: OperandSlot) -> str:
    held = TYPES[want.reg]
    if held.kind == "float":
        agrees = element.kind == "f32" or (element.kind != "int" and held.name == "f64")
    else:
        agrees = held.kind == "bits" or (held.kind != "packed" and element.kind == "int")
    if slot.direction == "read" and agrees:
        return ""
    kind = "an integer" if element.kind == "int" else "a floating-point"
    return f"`{{}}` is {kind} constant, a register of type .{held} is wanted"


def _float_as_bits(element: Name, slot: OperandSlot, at: Context) -> bool:
    """Say whether an integer register stands for a float in a vector of ld or st: ptxas looks at the width alone there."""
    symbol = at.lookup(element.name)
    have, want = symbol and symbol.type, slot.type
    return bool(have and want and want.kind == "float" and have.kind in ("unsigned", "signed") and have.bits == want.bits)


def _whole_vector_fault(operand: Operand, slot: OperandSlot, at: Context) -> str:
    """Check a `.v2` or `.v4` register that stands for a brace vector."""
    if is_sink(operand) and slot.sink and at.opcode == "atom":  # a simple reduction
        return ""
    symbol = at.lookup(operand.name) if isinstance(operand, Name) else None
    braces = at.mnemonic.startswith(_BRACES) or no_register(slot, at)
    if braces or not isinstance(operand, Name) or (symbol is not None and symbol.vector == 1):
        return f"`{{}}` should be a vector of {slot.count} elements in braces"
    if symbol is None:
        return "`{}` is not declared"
    if symbol.kind == "special":
        return f"`{{}}` is a special register, name its elements in braces: `{operand.name}.x`"
    if symbol.vector != slot.count or symbol.kind != "register":
        return f"`{{}}` has {symbol.vector} elements, {slot.count} are wanted"
    return coordinate_fault(operand, slot, at) if holds_coordinates(slot, at) else type_fault(operand, symbol, slot, at)
