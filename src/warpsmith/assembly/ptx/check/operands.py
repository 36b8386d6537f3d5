"""Operands against the places of a matched row (PTX ISA 6, 9.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.check.addresses import address_fault
from warpsmith.assembly.ptx.check.context import is_sink
from warpsmith.assembly.ptx.check.vectors import value_fault
from warpsmith.assembly.ptx.tree import AddressOperand, CallArguments, Immediate, Name, Operand, PairOperand

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.check.context import Context
    from warpsmith.assembly.ptx.isa import OperandSlot

__all__ = ["operand_fault"]


def operand_fault(operand: Operand, slot: OperandSlot, at: Context) -> str:
    """Return what is wrong with `operand` in the place `slot`, '' if nothing; `{}` stands for the operand's text."""
    if slot.name == "_" and not is_sink(operand):
        return "`{}`: the result is dropped here, write `_`"
    if isinstance(operand, PairOperand):
        if is_sink(operand.first) and is_sink(operand.second):
            return "`{}` drops both results, one register at least must be written"
        if slot.pair is None:
            return "`{}` is a pair, one destination is wanted"
        fault = ""
        for part, place in ((operand.first, replace(slot, pair=None)), (operand.second, slot.pair)):
            if not is_sink(part):
                fault = fault or operand_fault(part, place, at)
        return fault
    if slot.pair is not None and not slot.pair.optional:
        return f"`{{}}` should be a pair `{slot.name}|{slot.pair.name}`"
    if slot.kind == "address":
        return address_fault(operand, slot, at)
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
    return value_fault(operand, slot, at)


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
