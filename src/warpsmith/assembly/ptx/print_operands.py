"""Print operands and instructions."""

from __future__ import annotations

from warpsmith.assembly.ptx.tree import (
    AddressOperand,
    Immediate,
    Instruction,
    Name,
    Operand,
    PairOperand,
    VectorOperand,
)

__all__ = ["print_instruction", "print_operand"]


def print_instruction(instruction: Instruction) -> str:
    """Return the instruction with its guard and semicolon, on one line."""
    operands = instruction.operands
    text = instruction.mnemonic
    if operands:
        text = f"{text} \t{', '.join([print_operand(o) for o in operands])};"
    else:
        text += ";"
    guard = instruction.predicate
    if guard is not None:
        return f"@!{guard.name} {text}" if guard.negated else f"@{guard.name} {text}"
    return text


def print_operand(operand: Operand) -> str:
    """Return an operand as PTX writes it."""
    if isinstance(operand, Name):
        return _name(operand)
    if isinstance(operand, Immediate):
        return operand.text
    if isinstance(operand, AddressOperand):
        return _address(operand)
    if isinstance(operand, VectorOperand):
        return _vector(operand)
    if isinstance(operand, PairOperand):
        return f"{print_operand(operand.first)}|{print_operand(operand.second)}"
    return f"({', '.join([print_operand(a) for a in operand.arguments])})"


def _name(name: Name) -> str:
    text = name.name
    if name.member:
        text += "." + name.member
    if name.negated:
        text = "!" + text
    if name.minus:
        text = "-" + text
    if name.index is not None:
        text += f"[{name.index}]"
    if name.offset:
        text += f"+{name.offset}"
    return text


def _address(address: AddressOperand) -> str:
    text = print_operand(address.base)
    if address.offset or address.zero:
        text += f"+{address.offset}"
    return f"[{', '.join([text, *map(print_operand, address.inner)])}]"


def _vector(vector: VectorOperand) -> str:
    return f"{{{', '.join([print_operand(e) for e in vector.elements])}}}"
