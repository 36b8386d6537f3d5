"""Values: constants, registers, special registers, variables whose address is taken (PTX ISA 6, 9.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.check.register_types import constant_agrees, register_agrees, wanted
from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.check.context import Context
    from warpsmith.assembly.ptx.check.symbols import Symbol
    from warpsmith.assembly.ptx.isa import OperandSlot
    from warpsmith.assembly.ptx.tree import Immediate, Name
    from warpsmith.base.ptx_types import PtxType

__all__ = ["BIT_FIELDS", "constant_fault", "name_fault", "type_fault"]

_MEMBERS = {"x": 0, "y": 1, "z": 2, "w": 3, "r": 0, "g": 1, "b": 2, "a": 3}
_TAKES_SPECIAL = frozenset(("mov", "cvt"))
BIT_FIELDS = {"bfe": ("b", "c"), "bfi": ("c", "d")}
"""Operands that name a position or a length, of which the instruction reads eight bits: ptxas takes constants to 255 only."""
_NAMES_SPACE = frozenset(("cvta", "mapa", "getctarank"))
"""Opcodes that take the address of a variable in the space that they name."""
_COUNTED = ("bar.", "barrier.", "fabric.", "multimem.cp.")
"""How mnemonics begin whose integer sources (barriers, counts, sizes) take no .f16x2 register, whatever type comes last."""
_PLACES = {"tex": "e", "tld4": "e", "sured": "c"}
"""Opcode -> its operand that takes none either: offsets in texels, coordinates of a surface."""
_POLICY = "c"
"""The cache policy of a load or store, whose register is not wider than itself though that of the data may be."""
_KEEPS_RESULT = frozenset(("ld", "ldu"))
"""Opcodes whose only result may not be dropped, though elements of a vector may."""


def constant_fault(operand: Immediate, slot: OperandSlot, at: Context) -> str:
    """Return what is wrong with a constant in the place `slot`, '' if nothing."""
    if slot.direction != "read":
        return "`{}` is a constant, a register to write is wanted"
    if slot.register_only:
        return "`{}` is a constant, only a register may stand here"
    if slot.name in BIT_FIELDS.get(at.opcode, ()) and not 0 <= operand.value <= 255:
        return "`{}` is outside 0 … 255"
    if slot.type is None or (
        constant_agrees(slot.type, operand) and (operand.kind == "int" or slot.type.kind != "bits" or slot.type is at.own_type)
    ):
        return ""
    kind = "an integer constant" if operand.kind == "int" else "a floating-point constant"
    return f"`{{}}` is {kind}, type .{slot.type} is wanted"


def name_fault(operand: Name, slot: OperandSlot, at: Context) -> str:
    """Return what is wrong with a name in the place `slot`, '' if nothing."""
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
        return _symbol_fault(symbol, slot, at)
    if operand.negated and (symbol.type is not TYPES["pred"] or slot.direction != "read"):
        return "`{}`: only a predicate that is read may be negated with `!`"
    if operand.minus and not slot.signed:
        return "`{}`: the sign of a register may be changed in vmad only"
    if symbol.kind == "special":
        return _special_fault(operand, symbol, slot, at)
    return type_fault(operand, symbol, slot, at)


def _symbol_fault(symbol: Symbol, slot: OperandSlot, at: Context) -> str:
    if not slot.symbol or slot.direction != "read":
        return f"`{{}}` is a {symbol.kind}, a register is wanted"
    if symbol.kind == "label":
        return "`{}` is a label, it has no address"
    if slot.type is not None and (slot.type.kind in ("float", "packed", "pred") or slot.type.bits < 32):
        return f"`{{}}` is an address, type .{slot.type} is wanted"
    space = symbol.space.partition("::")[0]
    if at.opcode in _NAMES_SPACE and symbol.kind == "variable" and space not in _spaces(at.mnemonic):
        return f"`{{}}` is in .{space}, the instruction takes the address of a variable elsewhere"
    if space == "global" and slot.type is not None and slot.type.bits == 32:
        return "`{}` is in .global, its address has 64 bits"
    return ""


def _spaces(mnemonic: str) -> list[str]:
    return [w.partition("::")[0] for w in mnemonic.split(".")]


def _special_fault(operand: Name, symbol: Symbol, slot: OperandSlot, at: Context) -> str:
    if slot.direction != "read":
        return "`{}` is a special register, it cannot be written"
    if at.opcode not in _TAKES_SPECIAL or at.mnemonic.startswith("cvt.pack"):
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


def type_fault(operand: Name, symbol: Symbol, slot: OperandSlot, at: Context) -> str:
    """Return what is wrong with the type of a register in the place `slot`, '' if nothing."""
    have = symbol.type
    assert have is not None
    if operand.member:
        if operand.member in slot.selectors:
            pass
        elif symbol.vector == 1:
            return f"`{{}}`: `{operand.name}` is not a vector register"
        elif _MEMBERS.get(operand.member, symbol.vector) >= symbol.vector:
            count = f"with {symbol.vector} elements " if operand.member in _MEMBERS else ""
            return f"`{{}}`: a vector register {count}has no element `{operand.member}`"
    elif symbol.vector > 1 and slot.count is None and not _packs(slot, at, have.bits * symbol.vector):
        return "`{}` is a vector register, a scalar is wanted"
    want = slot.type
    if want is None:
        return "" if have.kind != "pred" or slot.untyped else "`{}` is a predicate, a value is wanted"
    if slot.untyped and slot.kind == "value":
        return "" if have.bits == want.bits and have.kind != "pred" else f"`{{}}` is .{have}, {want.bits} bits are wanted"
    widening = at.widening and (slot.name != _POLICY or at.opcode == "cvt")
    named = at.names(want) and not (slot.direction == "read" and _plain(slot, at))
    integer = want.kind in ("unsigned", "signed")
    if have.name == "f16x2" and integer and not named:
        return f"`{{}}` is .{have}, an operand of type .{want} is wanted ({wanted(want, widening, False)})"
    if slot.bits and have.kind != "bits":
        return f"`{{}}` is .{have}, a register of type .{want} is wanted"
    if register_agrees(want, have, widening):
        return ""
    packed = named or not integer
    return f"`{{}}` is .{have}, an operand of type .{want} is wanted ({wanted(want, widening, packed)})"


def _plain(slot: OperandSlot, at: Context) -> bool:
    """Say whether the place takes no .f16x2 register, whatever types the mnemonic names."""
    return at.mnemonic.startswith(_COUNTED) or slot.name in _PLACES.get(at.opcode, ())


def _packs(slot: OperandSlot, at: Context, bits: int) -> bool:
    """Say whether a vector register of so many bits may be packed or unpacked here (PTX ISA 9.7.10.4)."""
    return at.opcode == "mov" and slot.type is not None and slot.type.kind == "bits" and slot.type.bits == bits
