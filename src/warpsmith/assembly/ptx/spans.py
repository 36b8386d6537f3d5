"""Find the places of an instruction's operands again: the reader's short path keeps only the instruction's own span."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.lexer import Lexer, Refused
from warpsmith.assembly.ptx.parse_operands import parse_operands

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.tree import Instruction
    from warpsmith.base.source import Span

__all__ = ["mnemonic_span", "operand_spans"]


def operand_spans(instruction: Instruction) -> list[Span | None]:
    """Return one span per operand, read again from the source text; None for each when there is no text."""
    nothing: list[Span | None] = [None] * len(instruction.operands)
    lx = _at_mnemonic(instruction)
    if lx is None:
        return nothing
    lx.advance()
    while lx.kind == "dot":
        lx.advance()
    try:
        operands = parse_operands(lx, call=instruction.opcode == "call")
    except Refused:
        return nothing
    return [o.span for o in operands] if len(operands) == len(nothing) else nothing


def mnemonic_span(instruction: Instruction) -> Span | None:
    """Return the span of the mnemonic, without guard and operands."""
    lx = _at_mnemonic(instruction)
    if lx is None:
        return instruction.span
    start = lx.start
    lx.advance()
    return lx.span(start)


def _at_mnemonic(instruction: Instruction) -> Lexer | None:
    span = instruction.span
    if span is None:
        return None
    lx = Lexer(span.source, span.start)
    if lx.take("@"):
        lx.take("!")
        lx.advance()
    return lx
