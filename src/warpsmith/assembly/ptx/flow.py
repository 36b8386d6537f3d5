"""Where the values that an instruction reads come from: basic blocks and reaching definitions of one function.

    flow = Flow(module, function)
    step = flow.steps[7]                                    a statement that is an instruction
    flow.definitions(step, step.instruction.operands[1])    the instructions that may have written that register last

A register is told by the scope that declares it, so equal names in `{ … }` are apart. A guarded write does not end the way
back; None among the definitions stands for the function's entry: a parameter, or no value at all. Calls write what they return.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.check.symbols import Scope as Names
from warpsmith.assembly.ptx.check.symbols import register
from warpsmith.assembly.ptx.isa import match
from warpsmith.assembly.ptx.tree import (
    BranchTargets,
    CallArguments,
    FileDirective,
    Immediate,
    Instruction,
    Label,
    Loc,
    Name,
    PairOperand,
    RegisterDeclaration,
    Scope,
    VectorOperand,
)
from warpsmith.base.source import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warpsmith.assembly.ptx.module import Module
    from warpsmith.assembly.ptx.tree import Function, Operand, Statement

__all__ = ["Flow", "Step"]

Register = tuple[int, str]
"""Number of the scope that declares it, and its name."""
_LEAVES = ("bra", "brx", "ret", "exit", "trap")
_MOST_MOVES = 64


@final
@dataclass(slots=True, eq=False)
class Step:
    """An instruction of a function in its place."""

    index: int
    block: int
    instruction: Instruction
    scope: Names
    known_place: Place | None

    @property
    def guarded(self) -> bool:
        """Whether a predicate decides if it runs."""
        return self.instruction.predicate is not None

    @property
    def place(self) -> Place | None:
        """The user's line: the instruction's own, that of `.loc`, else the line of the PTX text."""
        return self.known_place or _line_of(self.instruction)


@final
@dataclass(slots=True)
class _Block:
    first: int
    last: int = -1
    """Index behind its last step."""
    before: list[int] = field(default_factory=list[int])
    """Blocks that may go on here."""


@final
class Flow:
    """The instructions of a function's body with the blocks they lie in."""

    def __init__(self, module: Module, function: Function) -> None:
        self.steps: list[Step] = []
        self._blocks = [_Block(0)]
        self._files = {i.index: i.name for i in module.items if isinstance(i, FileDirective)}
        self._place: Place | None = None
        self._numbers: dict[int, int] = {}
        self._labels: dict[tuple[int, str], int] = {}
        self._targets: dict[str, list[str]] = {}
        self._writes: dict[int, tuple[Register, ...]] = {}
        scope = self._scope(None)
        for p in (*function.parameters, *function.returns):
            if p.space == "reg":
                scope.declare(p.name, register(p.type, p.vector))
        self._read(function.body or [], scope)
        self._blocks[-1].last = len(self.steps)
        self._connect()

    # --- reading --------------------------------------------------------------------------------------------------

    def _scope(self, parent: Names | None) -> Names:
        scope = Names(parent)
        self._numbers[id(scope)] = len(self._numbers)
        return scope

    def _read(self, body: Sequence[Statement], scope: Names) -> None:
        for s in body:
            if isinstance(s, RegisterDeclaration):
                for name, count in s.names:
                    scope.declare(name, register(s.type, s.vector), count)
        label = ""
        for s in body:
            if isinstance(s, Instruction):
                self._instruction(s, scope)
            elif isinstance(s, Label):
                label = s.name
                self._new_block()
                self._labels[self._numbers[id(scope)], label] = len(self._blocks) - 1
            elif isinstance(s, BranchTargets):
                self._targets[label] = s.targets
            elif isinstance(s, Loc):
                file = self._files.get(s.file, f"file {s.file}")
                self._place = Place(file, s.line, s.column) if s.line else self._place
            elif isinstance(s, Scope):
                self._read(s.body, self._scope(scope))

    def _instruction(self, s: Instruction, scope: Names) -> None:
        self.steps.append(Step(len(self.steps), len(self._blocks) - 1, s, scope, s.place or self._place))
        if s.opcode in _LEAVES:
            self._new_block()

    def _new_block(self) -> None:
        self._blocks[-1].last = len(self.steps)
        self._blocks.append(_Block(len(self.steps)))

    def _connect(self) -> None:
        """Note for each block which blocks that can be reached go on there."""
        work, reached = [0], {0}
        while work:
            number = work.pop()
            for following in self._following(number):
                self._blocks[following].before.append(number)
                if following not in reached:
                    reached.add(following)
                    work.append(following)

    def _following(self, number: int) -> list[int]:
        block = self._blocks[number]
        last = self.steps[block.last - 1] if block.last > block.first else None
        leaves = last is not None and last.instruction.opcode in _LEAVES
        out = self._goes_to(last) if last is not None and leaves else []
        if (last is None or not leaves or last.guarded) and number + 1 < len(self._blocks):
            out.append(number + 1)
        return out

    def _goes_to(self, step: Step) -> list[int]:
        if step.instruction.opcode == "bra":
            return self._labelled(step, [_name(step.instruction.operands[0])])
        if step.instruction.opcode == "brx":
            names = self._targets.get(_name(step.instruction.operands[-1]))
            return sorted(set(self._labels.values())) if names is None else self._labelled(step, names)
        return []

    def _labelled(self, step: Step, names: Sequence[str]) -> list[int]:
        out: list[int] = []
        for name in names:
            scope: Names | None = step.scope
            while scope is not None and (self._numbers[id(scope)], name) not in self._labels:
                scope = scope.parent
            if scope is not None:
                out.append(self._labels[self._numbers[id(scope)], name])
        return out

    # --- asking ---------------------------------------------------------------------------------------------------

    def register(self, operand: Operand, scope: Names) -> Register | None:
        """Return the register that an operand names; None for anything else."""
        if not isinstance(operand, Name):
            return None
        at: Names | None = scope
        while at is not None:
            if (symbol := at.own(operand.name)) is not None:
                return (self._numbers[id(at)], operand.name) if symbol.kind == "register" else None
            at = at.parent
        return None

    def writes(self, step: Step) -> tuple[Register, ...]:
        """Return the registers that an instruction writes."""
        found = self._writes.get(step.index)
        if found is None:
            found = tuple(r for o in _written(step.instruction) if (r := self.register(o, step.scope)) is not None)
            self._writes[step.index] = found
        return found

    def definitions(self, step: Step, operand: Operand) -> list[Step | None]:
        """Return the instructions that may have written the register `operand` last before `step`; None: the entry."""
        wanted = self.register(operand, step.scope)
        if wanted is None:
            return []
        out: dict[Step | None, None] = {}
        work, seen = [(step.block, step.index)], set[int]()
        while work:
            number, end = work.pop()
            block = self._blocks[number]
            if self._back(wanted, block.first, end, out):
                continue
            if number == 0:
                out[None] = None
            for before in block.before:
                if before not in seen:
                    seen.add(before)
                    work.append((before, self._blocks[before].last))
        return list(out)

    def _back(self, wanted: Register, first: int, end: int, out: dict[Step | None, None]) -> bool:
        """Collect the writes from `end` back to `first`; say whether one of them ends the way."""
        for at in range(end - 1, first - 1, -1):
            step = self.steps[at]
            if wanted in self.writes(step):
                out[step] = None
                if not step.guarded:
                    return True
        return False

    def last_in_block(self, step: Step, operand: Operand) -> Step | None:
        """Return the last instruction of the same block before `step` that writes `operand`, guarded or not."""
        wanted = self.register(operand, step.scope)
        for at in range(step.index - 1, self._blocks[step.block].first - 1, -1):
            if wanted is not None and wanted in self.writes(self.steps[at]):
                return self.steps[at]
        return None

    def before_in_block(self, step: Step) -> Iterator[Step]:
        """Yield the instructions of the same block before `step`, the nearest first."""
        for at in range(step.index - 1, self._blocks[step.block].first - 1, -1):
            yield self.steps[at]

    def source(self, step: Step, operand: Operand) -> Step | None:
        """Return the one instruction that surely made the value of `operand`, behind plain `mov`s; None: not one."""
        for _ in range(_MOST_MOVES):
            found = self.definitions(step, operand)
            if len(found) != 1 or found[0] is None or found[0].guarded:
                return None
            step = found[0]
            operands = step.instruction.operands
            if step.instruction.opcode != "mov" or len(operands) != 2 or not _plain_move(operands):
                return step
            if isinstance(operands[1], Immediate) or self.register(operands[1], step.scope) is None:
                return step
            operand = operands[1]
        return None

    def constant(self, step: Step, operand: Operand) -> int | None:
        """Return the integer that `operand` surely is: a constant, or a register that `mov` gave one."""
        if isinstance(operand, Immediate):
            return operand.value if isinstance(operand.value, int) else None
        made = self.source(step, operand)
        if made is None or made.instruction.opcode != "mov":
            return None
        value = made.instruction.operands[1]
        return value.value if isinstance(value, Immediate) and isinstance(value.value, int) else None

    def reads(self, wanted: Register) -> int:
        """Return how many instructions of the function read a register."""
        return sum(any(self.register(o, s.scope) == wanted for o in _read_names(s.instruction)) for s in self.steps)


def _plain_move(operands: Sequence[Operand]) -> bool:
    return (
        isinstance(operands[0], Name) and isinstance(operands[1], Name | Immediate) and not getattr(operands[1], "member", "")
    )


def _name(operand: Operand) -> str:
    return operand.name if isinstance(operand, Name) else ""


def _line_of(s: Instruction) -> Place | None:
    if s.span is None:
        return None
    line, column = s.span.source.position(s.span.start)
    return Place(s.span.source.name, line, column)


def _names(operand: Operand) -> Iterator[Name]:
    if isinstance(operand, Name):
        yield operand
    elif isinstance(operand, VectorOperand):
        for e in operand.elements:
            yield from _names(e)
    elif isinstance(operand, PairOperand):
        yield from _names(operand.first)
        yield from _names(operand.second)
    elif isinstance(operand, CallArguments):
        for a in operand.arguments:
            yield from _names(a)
    elif not isinstance(operand, Immediate):
        for part in (operand.base, *operand.inner):
            yield from _names(part)


def _directions(s: Instruction) -> Sequence[str]:
    """Return for each operand whether it is read, written or both."""
    if s.opcode == "call":
        returns = len(s.operands) > 1 and isinstance(s.operands[0], CallArguments)
        return ["write" if k == 0 and returns else "read" for k in range(len(s.operands))]
    for m in match(s.mnemonic):
        if len(s.operands) <= len(m.operands):
            return [m.operands[k].direction if m.operands[k].kind != "address" else "read" for k in range(len(s.operands))]
    return ["update"] * len(s.operands)


def _written(s: Instruction) -> Iterator[Name]:
    for operand, direction in zip(s.operands, _directions(s), strict=True):
        if direction != "read":
            yield from _names(operand)


def _read_names(s: Instruction) -> Iterator[Name]:
    if s.predicate is not None:
        yield s.predicate
    for operand, direction in zip(s.operands, _directions(s), strict=True):
        if direction != "write":
            yield from _names(operand)
