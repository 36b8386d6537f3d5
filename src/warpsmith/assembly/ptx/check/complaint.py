"""A complaint about an instruction that does not yet know where the instruction stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.print_operands import print_operand
from warpsmith.assembly.ptx.spans import mnemonic_span, operand_spans
from warpsmith.base.errors import Problem

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.tree import Instruction

__all__ = ["Complaint", "to_problem"]

HERE = "{}"
"""Stands for the operand's text in a message: complaints are kept for every instruction of the same shape."""


@final
@dataclass(frozen=True, slots=True)
class Complaint:
    """What is wrong: `operand` is the index of the operand concerned, None for the mnemonic, -1 for the guard."""

    message: str
    operand: int | None = None
    hint: str = ""
    weight: int = 1
    """How far off the mark: the row with the lightest complaints is the one that was meant."""


def to_problem(complaint: Complaint, instruction: Instruction) -> Problem:
    """Place a complaint at `instruction`."""
    index = complaint.operand
    text = instruction.mnemonic
    if index is None:
        span = mnemonic_span(instruction)
    elif index < 0 or index >= len(instruction.operands):
        span = instruction.span
    else:
        span = operand_spans(instruction)[index] or instruction.span
        text = print_operand(instruction.operands[index])
    if index == -1 and instruction.predicate is not None:
        text = instruction.predicate.name
    return Problem(complaint.message.replace(HERE, text), span, complaint.hint.replace(HERE, text))
