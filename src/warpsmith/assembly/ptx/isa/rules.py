"""Constraints that the columns of a row cannot express, by name (`rule=name`).

A rule is given the match and the operands of the instruction and yields what is wrong: message, index of the operand
concerned (None for the mnemonic) and what to write instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.tree import Immediate, Name, VectorOperand
from warpsmith.base.errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from warpsmith.assembly.ptx.isa.row import Match
    from warpsmith.assembly.ptx.tree import Operand

    Rule = Callable[[Match, Sequence[Operand]], Iterator["RuleProblem"]]

__all__ = ["RULES", "RuleProblem", "rule"]

RULES: dict[str, Rule] = {}


@final
@dataclass(frozen=True, slots=True)
class RuleProblem:
    """What a rule found."""

    message: str
    operand: int | None = None
    hint: str = ""


def rule(function: Rule) -> Rule:
    """Register a rule under its name."""
    if function.__name__ in RULES:
        raise DeclarationError(f"two rules are called {function.__name__!r}")
    RULES[function.__name__] = function
    return function


@rule
def one_negation(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """Allow a minus on one factor or on the addend of vmad, not on both (PTX ISA 9.7.20.1.3)."""
    minus = [n for n, o in enumerate(operands) if isinstance(o, Name) and o.minus]
    if len(minus) > 1:
        hint = "negate one of the factors, or the addend"
        yield RuleProblem(f"{match.row.opcode} negates more than one operand", minus[1], hint)


@rule
def one_vector(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """`mov` packs or unpacks: one of its operands is a vector, not both (9.7.10.4)."""
    if all(isinstance(o, VectorOperand) for o in operands):
        yield RuleProblem(f"`{match.mnemonic}` has two vectors", 1, "write one of them without braces, or move each element")


@rule
def eights(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """Want a constant size of `st.bulk` in multiples of 8 bytes (PTX ISA 9.7.10.14)."""
    size = operands[1] if len(operands) > 1 else None
    if isinstance(size, Immediate) and isinstance(size.value, int) and size.value % 8:
        yield RuleProblem(f"{match.row.opcode} size {size.value} is not a multiple of 8", 1, f"write {size.value // 8 * 8 + 8}")


@rule
def policy_fraction(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """A constant fraction of accesses is greater than 0 and at most 1 (9.7.10.21)."""
    fraction = operands[1] if len(operands) > 1 else None
    if isinstance(fraction, Immediate) and not 0 < fraction.value <= 1:
        yield RuleProblem(f"fraction {fraction.text} is not between 0 and 1", 1, "write 1.0 or a smaller positive number")


@rule
def in_order(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """Two modifiers with the same words are told apart by their order (9.7.10.21)."""
    if not match.ordered:
        yield RuleProblem(f"the modifiers of `{match.mnemonic}` are out of order", None, "write the primary priority first")


@rule
def policy_range(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """The primary part of a cache policy lies within the range (9.7.10.21)."""
    primary, total = operands[2:4]
    if isinstance(primary, Immediate) and isinstance(total, Immediate) and primary.value > total.value:
        yield RuleProblem(f"primary size {primary.value} exceeds the total size {total.value}", 2)


@rule
def power_of_two(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """The alignment of `alloca` is a power of two (9.7.14)."""
    if len(operands) > 2 and isinstance(operands[2], Immediate):
        value = operands[2].value
        if not isinstance(value, int) or value <= 0 or value & (value - 1):
            yield RuleProblem(f"alignment {operands[2].text} is not a power of two", 2)
