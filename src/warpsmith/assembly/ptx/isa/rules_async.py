"""Rules of barriers, tensor memory and register budgets (`rule=name` in the tables)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.isa.rules import RuleProblem, rule
from warpsmith.assembly.ptx.tree import Immediate, Name, VectorOperand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warpsmith.assembly.ptx.isa.row import Match
    from warpsmith.assembly.ptx.tree import Operand

__all__: list[str] = []

_WARP = 32


def _constant(operand: Operand) -> int | None:
    return operand.value if isinstance(operand, Immediate) and isinstance(operand.value, int) else None


@rule
def barrier(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """A CTA has barriers 0 to 15; the threads that take part are whole warps (9.7.15.1)."""
    for slot, (index, operand) in zip(match.operands, enumerate(operands), strict=False):
        value = _constant(operand)
        if value is None:
            continue
        if slot.name == "a" and not 0 <= value <= 15:
            yield RuleProblem(f"barrier {value} does not exist", index, "a CTA has the barriers 0 to 15")
        if slot.name == "b" and (value < 0 or value % _WARP):
            below = max(value // _WARP, 0) * _WARP
            hint = f"write {below or _WARP} or {below + _WARP}" if below else f"write {_WARP}"
            yield RuleProblem(f"thread count {value} is not a multiple of the warp size {_WARP}", index, hint)


@rule
def multiple_of_8(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """`setmaxnreg` counts registers in eights (9.7.21.5)."""
    value = _constant(operands[0]) if operands else None
    if value is not None and value % 8:
        below = value // 8 * 8
        yield RuleProblem(f"register count {value} is not a multiple of 8", 0, f"write {below} or {below + 8}")


@rule
def no_sink(match: Match, operands: Sequence[Operand]) -> Iterator[RuleProblem]:
    """`tcgen05.ld` writes every register of its vector (ptxas: no result discard)."""
    for index, operand in enumerate(operands):
        if isinstance(operand, VectorOperand) and any(isinstance(e, Name) and e.name == "_" for e in operand.elements):
            yield RuleProblem("a loaded register cannot be discarded with _", index, "name a register for every element")
