"""Operands against the places of a matched row (PTX ISA 6, 9.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

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
    from warpsmith.assembly.ptx.isa import Match, OperandSlot

__all__ = ["Context", "context", "operand_fault"]

_MEMBERS = {"x": 0, "y": 1, "z": 2, "w": 3, "r": 0, "g": 1, "b": 2, "a": 3}
_TAKES_SPECIAL = frozenset(("mov", "cvt"))
_LITERAL = frozenset(("mma", "wmma", "dp4a", "dp2a", "getctarank", "mapa", "cp"))
"""Opcodes whose integer operands take no .f16x2 register although the mnemonic names their type."""
_REGISTERS_ONLY = frozenset(("mma", "wmma", "wgmma"))
_VECTORS_OF_ONE = frozenset(("ld", "ldu", "st"))
"""Opcodes whose scalar may stand in braces."""
_KEEPS_RESULT = frozenset(("ld", "ldu"))
"""Opcodes whose only result may not be dropped, though elements of a vector may."""


@final
@dataclass(frozen=True, slots=True)
class Context:
    """What the verdict on an operand depends on besides the operand and its place."""

    opcode: str
    lookup: Lookup
    own_type: PtxType | None = None
    """The type the mnemonic ends with."""
    widening: bool = False
    """Registers may be wider than the type (9.4)."""
    integral: bool = True
    """All operands are integers or bits: then `cvt` reads special registers."""
    mnemonic: str = ""

    def names(self, want: PtxType) -> bool:
        """Say whether the mnemonic names the type: fixed integer operands (counts, barriers) take no .f16x2 register."""
        named = want.ptx in self.mnemonic or ".wide" in self.mnemonic or want.bits != 32
        return named and self.opcode not in _LITERAL


def context(match: Match, lookup: Lookup) -> Context:
    """Return the context of operands of `match`."""
    opcode = match.row.opcode
    name = match.get("type")
    own = TYPES[name] if isinstance(name, str) else match.row.literal_type
    widening = opcode in WIDENING and not match.mnemonic.startswith(("st.async", "st.bulk"))
    if opcode == "cvt":  # ptxas: conversions of packed types and of those kept in untyped registers are exact
        widening = all(s.type is None or (not s.type.register and s.type.kind != "packed") for s in match.operands)
    integral = all(s.type is None or s.type.kind in ("bits", "unsigned", "signed") for s in match.operands)
    return Context(opcode, lookup, own, widening, integral, match.mnemonic)


def operand_fault(operand: Operand, slot: OperandSlot, at: Context) -> str:
    """Return what is wrong with `operand` in the place `slot`, '' if nothing; `{}` stands for the operand's text."""
    if slot.name == "_" and not _is_sink(operand):
        return "`{}`: the result is dropped here, write `_`"
    if isinstance(operand, PairOperand):
        if _is_sink(operand.first) and _is_sink(operand.second):
            return "`{}` drops both results, one register at least must be written"
        if slot.pair is None:
            return "`{}` is a pair, one destination is wanted"
        fault = ""
        for part, place in ((operand.first, replace(slot, pair=None)), (operand.second, slot.pair)):
            if not _is_sink(part):
                fault = fault or operand_fault(part, place, at)
        return fault
    if slot.pair is not None and not slot.pair.optional:
        return f"`{{}}` should be a pair `{slot.name}|{slot.pair.name}`"
    if slot.kind == "address":
        return _address_fault(operand, slot, at)
    if isinstance(operand, AddressOperand):
        return "`{}` is an address, a value is wanted here" if slot.kind != "label" else "`{}` is not a label"
    if isinstance(operand, CallArguments):
        return "" if slot.kind == "list" else "`{}` is an argument list"
    if slot.kind == "list":
        return "`{}` should be an argument list in parentheses"
    if slot.kind == "label":
        return _label_fault(operand, at)
    if slot.kind == "immediate":
        return _immediate_fault(operand, slot)
    return _value_fault(operand, slot, at)


def _is_sink(operand: Operand) -> bool:
    return isinstance(operand, Name) and operand.name == "_"


def _label_fault(operand: Operand, at: Context) -> str:
    symbol = at.lookup(operand.name) if isinstance(operand, Name) else None
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


def _value_fault(operand: Operand, slot: OperandSlot, at: Context) -> str:
    if isinstance(operand, VectorOperand):
        return _vector_fault(operand, slot, at)
    if slot.count is not None and (slot.count > 1 or not slot.bare):
        return _whole_vector_fault(operand, slot, at)
    if isinstance(operand, Immediate):
        return _constant_fault(operand, slot, at)
    assert isinstance(operand, Name)
    return _name_fault(operand, slot, at)


def _constant_fault(operand: Immediate, slot: OperandSlot, at: Context) -> str:
    if slot.direction != "read":
        return "`{}` is a constant, a register to write is wanted"
    if slot.register_only:
        return "`{}` is a constant, only a register may stand here"
    if slot.type is None or (
        constant_agrees(slot.type, operand) and (operand.kind == "int" or slot.type.kind != "bits" or slot.type is at.own_type)
    ):
        return ""
    kind = "an integer constant" if operand.kind == "int" else "a floating-point constant"
    return f"`{{}}` is {kind}, type .{slot.type} is wanted"


def _name_fault(operand: Name, slot: OperandSlot, at: Context) -> str:
    if operand.name == "_":
        if slot.direction == "read":
            return "`_` takes a result, it cannot be read"
        keeps = at.opcode in _KEEPS_RESULT and slot.count is None
        sink = (slot.sink and not keeps) or slot.pair is not None or slot.name == "_"
        return "" if sink else "the result may not be dropped with `_` here"
    symbol = at.lookup(operand.name)
    if symbol is None:
        return "`{}` is not declared"
    if symbol.kind not in ("register", "special"):
        return _symbol_fault(symbol, slot)
    if operand.negated and (symbol.type is not TYPES["pred"] or slot.direction != "read"):
        return "`{}`: only a predicate that is read may be negated with `!`"
    if operand.minus and not slot.signed:
        return "`{}`: the sign of a register may be changed in vmad only"
    if symbol.kind == "special":
        return _special_fault(operand, symbol, slot, at)
    return _type_fault(operand, symbol, slot, at)


def _symbol_fault(symbol: Symbol, slot: OperandSlot) -> str:
    if not slot.symbol or slot.direction != "read":
        return f"`{{}}` is a {symbol.kind}, a register is wanted"
    if symbol.kind == "label":
        return "`{}` is a label, it has no address"
    if slot.type is not None and (slot.type.kind in ("float", "packed", "pred") or slot.type.bits < 32):
        return f"`{{}}` is an address, type .{slot.type} is wanted"
    return ""


def _special_fault(operand: Name, symbol: Symbol, slot: OperandSlot, at: Context) -> str:
    if slot.direction != "read":
        return "`{}` is a special register, it cannot be written"
    if at.opcode not in _TAKES_SPECIAL:
        return f"`{{}}` is a special register, `{at.opcode}` does not read one"
    if at.opcode == "cvt" and not at.integral:
        return "`{}` is a special register, this conversion does not read one"
    have = symbol.type
    assert have is not None
    if symbol.vector > 1:
        return "`{}` is a vector, name an element: `{}.x`"
    if slot.type is None or (
        (have.kind == "pred") == (slot.type.kind == "pred") and _special_width(slot.type, have, operand.name, at)
    ):
        return ""
    return f"`{{}}` is a .{have} special register, type .{slot.type} is wanted"


def _special_width(want: PtxType, have: PtxType, name: str, at: Context) -> bool:
    if want.kind == "float":
        return False
    if at.opcode == "cvt" or want.bits == have.bits:
        return want.bits <= have.bits
    return (want.bits, have.bits) == (16, 32) or (want.bits == 32 and name == "%gridid")


def _type_fault(operand: Name, symbol: Symbol, slot: OperandSlot, at: Context) -> str:
    have = symbol.type
    assert have is not None
    if operand.member:
        if operand.member in slot.selectors:
            pass
        elif symbol.vector == 1:
            return f"`{{}}`: `{operand.name}` is not a vector register"
        elif _MEMBERS.get(operand.member) is None:
            return f"`{{}}`: a vector register has no element `{operand.member}`"
    elif symbol.vector > 1 and slot.count is None and not _packs(slot, at):
        return "`{}` is a vector register, a scalar is wanted"
    want = slot.type
    if want is None:
        return "" if have.kind != "pred" or slot.untyped else "`{}` is a predicate, a value is wanted"
    if slot.untyped and slot.kind == "value":
        return "" if have.bits == want.bits and have.kind != "pred" else f"`{{}}` is .{have}, {want.bits} bits are wanted"
    if have.name == "f16x2" and want.kind in ("unsigned", "signed") and not at.names(want):
        return f"`{{}}` is .{have}, an operand of type .{want} is wanted ({wanted(want, at.widening)})"
    if register_agrees(want, have, at.widening):
        return ""
    return f"`{{}}` is .{have}, an operand of type .{want} is wanted ({wanted(want, at.widening)})"


def _packs(slot: OperandSlot, at: Context) -> bool:
    return at.opcode == "mov" and slot.type is not None and slot.type.kind == "bits"


# --- vectors --------------------------------------------------------------------------------------------------------


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
        if _is_sink(element):
            if slot.direction == "read":
                return "`{}`: `_` takes a result, it cannot be read"
            continue
        fault = _element_fault(element, slot, at, mixed=len(kinds) > 1)
        if fault:
            return f"element {k} of {fault}"
    if count and all(_is_sink(e) for e in operand.elements):
        return "`{}` drops every element, one register at least must be written"
    return ""


def _element_fault(element: Operand, slot: OperandSlot, at: Context, *, mixed: bool) -> str:
    if isinstance(element, Immediate):
        if at.opcode in _REGISTERS_ONLY:
            return "`{}` is no register, which matrix fragments are held in"
        return _constant_fault(element, slot, at)
    if not isinstance(element, Name):
        return "`{}` should be a register"
    fault = _name_fault(element, slot, at)
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
    return _type_fault(operand, symbol, slot, at)


# --- addresses ------------------------------------------------------------------------------------------------------


def _address_fault(operand: Operand, slot: OperandSlot, at: Context) -> str:
    if isinstance(operand, Name) and operand.index is not None:
        return _base_fault(operand, slot, at)
    if not isinstance(operand, AddressOperand):
        return "`{}` should be an address in brackets"
    fault = _base_fault(operand.base, slot, at)
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
        fault = operand_fault(part, place, at)
        if fault:
            return f"in `{{}}`, {fault}" if "{}" not in fault else fault
    return ""


def _base_fault(base: Name | Immediate, slot: OperandSlot, at: Context) -> str:
    if isinstance(base, Immediate):
        return "" if slot.space == "local" else "`{}`: a constant address is allowed in .local only"
    symbol = at.lookup(base.name)
    if symbol is None:
        return f"`{{}}`: `{base.name}` is not declared"
    if symbol.kind == "register":
        have = symbol.type
        assert have is not None
        if have.kind not in ("bits", "unsigned", "signed") or not 32 <= have.bits <= 64:
            return f"`{{}}`: an address is held in an integer register of 32 or 64 bits, `{base.name}` is .{have}"
        if have.bits == 64 and slot.space == "tmem":
            return f"`{{}}`: a tensor memory address has 32 bits, `{base.name}` is .{have}"
        if have.bits == 32 and slot.space in (None, "global"):
            return f"`{{}}`: a {slot.space or 'generic'} address has 64 bits, `{base.name}` is .{have}"
        return ""
    if symbol.kind not in ("variable", "parameter", "result"):
        return f"`{{}}`: `{base.name}` is a {symbol.kind} and no variable"
    if symbol.type is None:  # .texref and the like
        return ""
    want, space = slot.space, symbol.space
    if want is None and space.partition("::")[0] in ("const", "param"):
        return f"`{{}}`: `{base.name}` is in .{space}, which a generic address does not reach by name"
    if want is not None and not _same_space(want, space):
        return f"`{{}}`: `{base.name}` is in .{space}, the instruction addresses .{want}"
    if at.opcode == "ld" and symbol.kind == "result":
        return f"`{{}}`: `{base.name}` is a result of the function, it cannot be read"
    if at.opcode == "st" and symbol.kind == "parameter":
        return f"`{{}}`: `{base.name}` is an input parameter, it cannot be written"
    return ""


def _same_space(want: str, have: str) -> bool:
    """Say whether a variable in space `have` may be addressed as `want` (`param` covers both its kinds)."""
    if want.startswith("param::") and have.startswith("param::"):
        return want == have
    return want.partition("::")[0] == have.partition("::")[0].partition("[")[0]
