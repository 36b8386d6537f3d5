"""Which declared row an instruction is: the mnemonic's matches, told apart by the operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.isa import Match, OperandSlot, match
from warpsmith.assembly.ptx.tree import (
    AddressOperand,
    CallArguments,
    Immediate,
    Instruction,
    Name,
    Operand,
    PairOperand,
    VectorOperand,
)
from warpsmith.base.errors import CapabilityError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["refused", "select", "where"]


def select(instruction: Instruction, width: Callable[[Name], int | None]) -> Match:
    """Return the row of `instruction`. `width(name)` gives the bits of a register (1 for a predicate), None otherwise."""
    matches = match(instruction.mnemonic)
    if not matches:
        raise InputError(f"{where(instruction)}no such instruction: `{instruction.mnemonic}`")
    if len(matches) == 1:
        return matches[0]
    best: Match | None = None
    best_score = -1
    for m in matches:
        score = _score(m.operands, instruction.operands, width)
        if score > best_score:
            best, best_score = m, score
    if best is None:
        raise InputError(f"{where(instruction)}`{instruction.mnemonic}` does not take these operands")
    return best


def where(instruction: Instruction) -> str:
    """Return the place of an instruction as the head of a message."""
    at = instruction.place or instruction.span
    return f"{at}: " if at else ""


def _score(slots: tuple[OperandSlot, ...], operands: list[Operand], width: Callable[[Name], int | None]) -> int:
    """Return -1 where the operands do not fit, else the number of operands that fit exactly."""
    required = sum(not s.optional for s in slots)
    if not required <= len(operands) <= len(slots):
        return -1
    total = 0
    for slot, operand in zip(slots, operands, strict=False):
        one = _fits(slot, operand, width)
        if one < 0:
            return -1
        total += one
    return total


def _fits(slot: OperandSlot, operand: Operand, width: Callable[[Name], int | None]) -> int:
    if isinstance(operand, PairOperand):
        if slot.pair is None:
            return -1
        a, b = _fits_one(slot, operand.first, width), _fits_one(slot.pair, operand.second, width)
        return -1 if a < 0 or b < 0 else a + b
    if slot.pair is not None and not slot.pair.optional:
        return -1
    return _fits_one(slot, operand, width)


def _fits_one(slot: OperandSlot, operand: Operand, width: Callable[[Name], int | None]) -> int:
    if slot.kind == "address":
        if not isinstance(operand, AddressOperand):
            return -1
        required = sum(not s.optional for s in slot.inner)
        return 1 if required <= len(operand.inner) <= len(slot.inner) else -1
    if slot.kind == "list":
        return 1 if isinstance(operand, CallArguments) else -1
    if slot.kind == "label":
        return 1 if isinstance(operand, Name) else -1
    if slot.kind == "immediate":
        if not isinstance(operand, Immediate):
            return -1
        inside = not slot.choices or operand.value in slot.choices
        if slot.range is not None:
            inside = inside and slot.range[0] <= operand.value <= slot.range[1]
        return 1 if inside else -1
    if isinstance(operand, VectorOperand):
        return 1 if slot.count == len(operand.elements) or slot.untyped else -1
    if slot.count is not None and slot.count > 1:
        return 0 if isinstance(operand, Name) and width(operand) is None else -1
    if isinstance(operand, AddressOperand | CallArguments):
        return -1
    if isinstance(operand, Immediate):
        return -1 if slot.register_only or slot.direction != "read" else 1
    return _fits_name(slot, operand, width)


def _fits_name(slot: OperandSlot, operand: Operand, width: Callable[[Name], int | None]) -> int:
    if not isinstance(operand, Name):
        return -1
    bits = width(operand)
    if slot.kind == "predicate":
        return 1 if bits == 1 else -1
    if bits is None or slot.type is None:
        return 0
    if bits == 1:
        return -1
    return 1 if bits == max(slot.type.bits, 8) else 0


def refused(instruction: Instruction, reason: str) -> CapabilityError:
    """Return the error for an instruction that is recognised and not modelled."""
    return CapabilityError(f"{where(instruction)}simulator: `{instruction.mnemonic}` is not modelled: {reason}")
