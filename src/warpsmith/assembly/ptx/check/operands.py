"""Operands against the places of a matched row (PTX ISA 6, 9.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.check.register_types import WIDENING, constant_agrees, register_agrees, wanted
from warpsmith.assembly.ptx.tree import (
    AddressOperand,
    CallArguments,
    Immediate,
    Name,
    Operand,
    PairOperand,
    VectorOperand,
)
from warpsmith.base.ptx_types import TYPES, PtxType

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.check.symbols import Lookup, Symbol
    from warpsmith.assembly.ptx.isa import OperandSlot

__all__ = ["operand_fault"]

_MEMBERS = {"x": 0, "y": 1, "z": 2, "w": 3, "r": 0, "g": 1, "b": 2, "a": 3}
_SELECTORS = frozenset(("b0", "b1", "b2", "b3", "h0", "h1"))
_TAKES_SPECIAL = frozenset(("mov", "cvt"))


def operand_fault(operand: Operand, slot: OperandSlot, opcode: str, lookup: Lookup) -> str:
    """Return what is wrong with `operand` in the place `slot`, '' if nothing; `{}` stands for the operand's text."""
    if isinstance(operand, PairOperand):
        if slot.pair is None:
            return "`{}` is a pair, one destination is wanted"
        fault = ""
        for part, place in ((operand.first, replace(slot, pair=None)), (operand.second, slot.pair)):
            if not _is_sink(part):
                fault = fault or operand_fault(part, place, opcode, lookup)
        return fault
    if slot.pair is not None and not slot.pair.optional:
        return f"`{{}}` should be a pair `{slot.name}|{slot.pair.name}`"
    if slot.kind == "address":
        return _address_fault(operand, slot, lookup)
    if isinstance(operand, AddressOperand):
        return "`{}` is an address, a value is wanted here" if slot.kind != "label" else "`{}` is not a label"
    if isinstance(operand, CallArguments):
        return "" if slot.kind == "list" else "`{}` is an argument list"
    if slot.kind == "list":
        return "`{}` should be an argument list in parentheses"
    if slot.kind == "label":
        return _label_fault(operand, lookup)
    if slot.kind == "immediate":
        return _immediate_fault(operand, slot)
    return _value_fault(operand, slot, opcode, lookup)


def _is_sink(operand: Operand) -> bool:
    return isinstance(operand, Name) and operand.name == "_"


def _label_fault(operand: Operand, lookup: Lookup) -> str:
    symbol = lookup(operand.name) if isinstance(operand, Name) else None
    if symbol is None:
        return "`{}` is not a label of this function"
    return "" if symbol.kind in ("label", "targets", "function", "prototype") else "`{}` is not a label"


def _immediate_fault(operand: Operand, slot: OperandSlot) -> str:
    if not isinstance(operand, Immediate) or not isinstance(operand.value, int):
        return "`{}` should be an integer constant"
    if slot.choices and operand.value not in slot.choices:
        return f"`{{}}` should be one of {', '.join(map(str, slot.choices))}"
    if slot.range and not slot.range[0] <= operand.value <= slot.range[1]:
        return f"`{{}}` is outside {slot.range[0]} … {slot.range[1]}"
    return ""


# --- values ---------------------------------------------------------------------------------------------------------


def _value_fault(operand: Operand, slot: OperandSlot, opcode: str, lookup: Lookup) -> str:
    if isinstance(operand, VectorOperand):
        return _vector_fault(operand, slot, opcode, lookup)
    if slot.count is not None and (slot.count > 1 or not slot.bare):
        return _whole_vector_fault(operand, slot, opcode, lookup)
    if isinstance(operand, Immediate):
        return _constant_fault(operand, slot)
    assert isinstance(operand, Name)
    return _name_fault(operand, slot, opcode, lookup)


def _constant_fault(operand: Immediate, slot: OperandSlot) -> str:
    if slot.direction != "read":
        return "`{}` is a constant, a register to write is wanted"
    if slot.register_only:
        return "`{}` is a constant, only a register may stand here"
    if slot.type is None or constant_agrees(slot.type, operand):
        return ""
    kind = "an integer constant" if operand.kind == "int" else "a floating-point constant"
    return f"`{{}}` is {kind}, type .{slot.type} is wanted"


def _name_fault(operand: Name, slot: OperandSlot, opcode: str, lookup: Lookup) -> str:
    if operand.name == "_":
        if slot.direction == "read":
            return "`_` takes a result, it cannot be read"
        sink = slot.sink or slot.pair is not None or slot.name == "_"
        return "" if sink else "the result may not be dropped with `_` here"
    symbol = lookup(operand.name)
    if symbol is None:
        return "`{}` is not declared"
    if symbol.kind not in ("register", "special"):
        return _symbol_fault(symbol, slot)
    if operand.negated and (symbol.type is not TYPES["pred"] or slot.direction != "read"):
        return "`{}`: only a predicate that is read may be negated with `!`"
    if operand.minus and not opcode.startswith("v"):
        return "`{}`: the sign of a register may be changed in vmad only"
    if symbol.kind == "special":
        return _special_fault(symbol, slot, opcode)
    return _type_fault(operand, symbol, slot, opcode)


def _symbol_fault(symbol: Symbol, slot: OperandSlot) -> str:
    if not slot.symbol or slot.direction != "read":
        return f"`{{}}` is a {symbol.kind}, a register is wanted"
    if symbol.kind == "label":
        return "`{}` is a label, it has no address"
    if slot.type is not None and (slot.type.kind in ("float", "packed", "pred") or slot.type.bits < 32):
        return f"`{{}}` is an address, type .{slot.type} is wanted"
    return ""


def _special_fault(symbol: Symbol, slot: OperandSlot, opcode: str) -> str:
    if slot.direction != "read":
        return "`{}` is a special register, it cannot be written"
    if opcode not in _TAKES_SPECIAL:
        return f"`{{}}` is a special register, `{opcode}` does not read one"
    have = symbol.type
    assert have is not None
    if symbol.vector > 1:
        return "`{}` is a vector, name an element: `{}.x`"
    if slot.type is None or ((have.kind == "pred") == (slot.type.kind == "pred") and _special_width(slot.type, have, opcode)):
        return ""
    return f"`{{}}` is a .{have} special register, type .{slot.type} is wanted"


def _special_width(want: PtxType, have: PtxType, opcode: str) -> bool:
    if want.kind == "float":
        return False
    if opcode == "cvt" or want.bits == have.bits:
        return want.bits <= have.bits
    return (want.bits, have.bits) in ((16, 32), (32, 64))


def _type_fault(operand: Name, symbol: Symbol, slot: OperandSlot, opcode: str) -> str:
    have = symbol.type
    assert have is not None
    if operand.member:
        if operand.member in _SELECTORS and opcode.startswith("v"):
            pass
        elif symbol.vector == 1:
            return f"`{{}}`: `{operand.name}` is not a vector register"
        elif _MEMBERS.get(operand.member) is None:
            return f"`{{}}`: a vector register has no element `{operand.member}`"
    elif symbol.vector > 1 and slot.count is None and not _packs(slot, opcode):
        return "`{}` is a vector register, a scalar is wanted"
    want = slot.type
    widening = opcode in WIDENING
    if want is None:
        return "" if have.kind != "pred" or slot.untyped else "`{}` is a predicate, a value is wanted"
    if slot.untyped and slot.kind == "value":
        return "" if have.bits == want.bits and have.kind != "pred" else f"`{{}}` is .{have}, {want.bits} bits are wanted"
    if register_agrees(want, have, widening):
        return ""
    return f"`{{}}` is .{have}, an operand of type .{want} is wanted ({wanted(want, widening)})"


def _packs(slot: OperandSlot, opcode: str) -> bool:
    return opcode == "mov" and slot.type is not None and slot.type.kind == "bits"


# --- vectors --------------------------------------------------------------------------------------------------------


def _vector_fault(operand: VectorOperand, slot: OperandSlot, opcode: str, lookup: Lookup) -> str:
    count = len(operand.elements)
    if slot.count is None and not (count == 1 and opcode in WIDENING):
        return "`{}` is a vector, a scalar is wanted"
    if slot.count is not None and count != slot.count:
        return f"`{{}}` has {count} element{'s' * (count != 1)}, {slot.count} {'is' if slot.count == 1 else 'are'} wanted"
    kinds = {s.type for e in operand.elements if isinstance(e, Name) and (s := lookup(e.name)) is not None}
    for k, element in enumerate(operand.elements):
        if _is_sink(element):
            if slot.direction == "read":
                return "`{}`: `_` takes a result, it cannot be read"
            continue
        fault = _element_fault(element, slot, opcode, lookup, mixed=len(kinds) > 1)
        if fault:
            return f"element {k} of {fault}"
    if count and all(_is_sink(e) for e in operand.elements):
        return "`{}` drops every element, one register at least must be written"
    return ""


def _element_fault(element: Operand, slot: OperandSlot, opcode: str, lookup: Lookup, *, mixed: bool) -> str:
    if isinstance(element, Immediate):
        return _constant_fault(element, slot)
    if not isinstance(element, Name):
        return "`{}` should be a register"
    fault = _name_fault(element, slot, opcode, lookup)
    if fault and mixed and slot.type is not None and (symbol := lookup(element.name)) is not None:
        # registers of different kinds and one width make a vector of untyped elements
        have = symbol.type
        if have is not None and symbol.kind == "register" and have.bits == TYPES[slot.type.reg].bits and have.kind != "pred":
            return ""
    return fault


def _whole_vector_fault(operand: Operand, slot: OperandSlot, opcode: str, lookup: Lookup) -> str:
    """Check a `.v2` or `.v4` register that stands for a brace vector."""
    symbol = lookup(operand.name) if isinstance(operand, Name) else None
    if not isinstance(operand, Name) or (symbol is not None and symbol.vector == 1):
        return f"`{{}}` should be a vector of {slot.count} elements in braces"
    if symbol is None:
        return "`{}` is not declared"
    if symbol.vector != slot.count or symbol.kind != "register":
        return f"`{{}}` has {symbol.vector} elements, {slot.count} are wanted"
    return _type_fault(operand, symbol, slot, opcode)


# --- addresses ------------------------------------------------------------------------------------------------------


def _address_fault(operand: Operand, slot: OperandSlot, lookup: Lookup) -> str:
    if isinstance(operand, Name) and operand.index is not None:
        return _base_fault(operand, slot, lookup)
    if not isinstance(operand, AddressOperand):
        return "`{}` should be an address in brackets"
    fault = _base_fault(operand.base, slot, lookup)
    if fault:
        return fault
    given = [x for x in (operand.sampler, operand.coordinates) if x is not None]
    optional = sum(s.optional for s in slot.inner)
    if not len(slot.inner) - optional <= len(given) <= len(slot.inner):
        return (
            f"`{{}}` should hold {1 + len(slot.inner)} parts, separated by commas"
            if slot.inner
            else "`{}` takes no coordinates"
        )
    for part, place in zip(given, slot.inner[-len(given) :] if given else (), strict=True):
        fault = operand_fault(part, place, "", lookup)
        if fault:
            return f"in `{{}}`, {fault}" if "{}" not in fault else fault
    return ""


def _base_fault(base: Name | Immediate, slot: OperandSlot, lookup: Lookup) -> str:
    if isinstance(base, Immediate):
        return "" if slot.space == "local" else "`{}`: a constant address is allowed in .local only"
    symbol = lookup(base.name)
    if symbol is None:
        return f"`{{}}`: `{base.name}` is not declared"
    if symbol.kind == "register":
        ok = symbol.type is not None and symbol.type.kind in ("bits", "unsigned", "signed") and symbol.type.bits <= 64
        return "" if ok else f"`{{}}`: an address is held in an integer register, `{base.name}` is .{symbol.type}"
    if symbol.kind not in ("variable", "parameter"):
        return f"`{{}}`: `{base.name}` is a {symbol.kind} and no variable"
    if symbol.type is None:  # .texref and the like
        return ""
    want, have = slot.space, symbol.space
    if want is None:
        return "" if have not in ("reg",) else f"`{{}}`: `{base.name}` is a register parameter"
    if want.partition("::")[0] != have.partition("::")[0].partition("[")[0]:
        return f"`{{}}`: `{base.name}` is in .{have}, the instruction addresses .{want}"
    if slot.direction != "read" and symbol.kind == "parameter" and have == "param":
        return f"`{{}}`: `{base.name}` is an input parameter, it cannot be written"
    return ""
