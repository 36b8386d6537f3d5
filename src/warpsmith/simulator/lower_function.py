"""One function's body → blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from warpsmith.assembly.ptx.tree import (
    BranchTargets,
    CallPrototype,
    FileDirective,
    Function,
    Instruction,
    Loc,
    Pragma,
    RegisterDeclaration,
    Statement,
)
from warpsmith.assembly.ptx.tree import (
    Label as LabelNode,
)
from warpsmith.assembly.ptx.tree import (
    Scope as ScopeNode,
)
from warpsmith.base.errors import InputError
from warpsmith.base.source import Place
from warpsmith.simulator.access import FUNCTION_PARAM
from warpsmith.simulator.layout import Area, align_of, each_variable, element_of, parameter_offsets, size_of
from warpsmith.simulator.lower_instruction import InstructionLowering
from warpsmith.simulator.program import Block, Branch, Call, Jump, Operation, Reg, Return, Stop, Sync
from warpsmith.simulator.scope import Label, Register, Scope, Signature, SlotCounter, Symbol, Targets

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.module import Module
    from warpsmith.assembly.ptx.tree import Parameter
    from warpsmith.simulator.machine import Machine

__all__ = ["FunctionLowering", "Shared"]


@final
@dataclass(slots=True)
class Shared:
    """What the functions of a program share while they are lowered."""

    machine: Machine
    slots: SlotCounter
    carry: Register
    """The carry flag of `add.cc` and its kin: a predicate of the thread."""
    blocks: list[Block]
    root: Scope
    shared: Area
    local: Area
    call_params: Area
    module: Module
    shared_names: list[tuple[str, int, int]] = field(default_factory=list)
    """(name, address, bytes) of static shared variables, for messages."""
    local_names: list[tuple[str, int, int]] = field(default_factory=list)
    recursive: frozenset[str] = frozenset()
    """Functions that may be active more than once."""
    frames: int = 0
    """Recursive functions with local variables so far."""


LONGEST = 2048
"""Operations of a block at most, about: what is done with a block whole (order, compilation) takes more than linear time."""


@final
class FunctionLowering:
    """Lowers one function: declarations when made, code by `run`."""

    def __init__(self, function: Function, areas: Shared, functions: dict[str, FunctionLowering]) -> None:
        self.function, self.areas, self.functions = function, areas, functions
        self.scope = Scope(areas.root)
        self.scopes: dict[int, Scope] = {}
        self.members: list[int] = []
        self.parameters: list[tuple[Parameter, Register | Symbol]] = []
        self.returns: list[tuple[Parameter, Register | Symbol]] = []
        self.files = {i.index: i.name for i in areas.module.items if isinstance(i, FileDirective)}
        self.place: Place | None = None
        self.used_bytes: int | None = None
        """What `.pragma "used_bytes_mask …"` says of the instruction that follows."""
        before = dict(areas.slots.next), areas.call_params.top, areas.local.top
        self.frame: int | None = None
        self.frame_area, self.frame_align = Area(), 1
        self.entry = self.new_block().index
        self.current = areas.blocks[self.entry]
        self._declare_parameters()
        self._declare(function.body or [], self.scope)
        self.slots = tuple((bank, before[0][bank], end) for bank, end in areas.slots.next.items())
        self.param_range = before[1], areas.call_params.top
        self.local_bytes = areas.local.top - before[2] if self.frame is None else self.frame_area.top
        self.instructions = InstructionLowering(self)

    # --- declarations ---------------------------------------------------------------------------------------------

    def _declare_parameters(self) -> None:
        if self.function.kind == "entry":
            for p, offset in parameter_offsets(self.function):
                self.scope.names[p.name] = Symbol("param", offset, element_of(p))
            return
        for formal, out in ((self.function.parameters, self.parameters), (self.function.returns, self.returns)):
            for p in formal:
                where: Register | Symbol
                if p.space == "reg":
                    where = self.areas.slots.take(p.type, p.vector)
                else:
                    address = FUNCTION_PARAM + self.areas.call_params.place(size_of(p), align_of(p))
                    where = Symbol("param", address, element_of(p))
                self.scope.names[p.name] = where
                out.append((p, where))

    def _declare(self, body: list[Statement], scope: Scope) -> None:
        for s in body:
            if isinstance(s, RegisterDeclaration):
                scope.declare(s, self.areas.slots)
            elif isinstance(s, LabelNode):
                if not isinstance(scope.names.get(s.name), Targets):
                    scope.names[s.name] = Label(self.new_block(s.name).index)
            elif isinstance(s, ScopeNode):
                self.scopes[id(s)] = inner = Scope(scope)
                self._declare(s.body, inner)
        for before, s in zip([None, *body], body, strict=False):
            if isinstance(s, BranchTargets | CallPrototype) and isinstance(before, LabelNode):
                scope.names[before.name] = Targets(s)
        for v in each_variable(body):
            self._declare_variable(v, scope)

    def _declare_variable(self, v: Any, scope: Scope) -> None:
        a = self.areas
        if v.space.startswith("shared"):
            address = a.shared.place(size_of(v), align_of(v))
            a.shared_names.append((v.name, address, size_of(v)))
            scope.names[v.name] = Symbol("shared", address, element_of(v))
        elif v.space == "local" and self.function.name in a.recursive:
            if self.frame is None:
                self.frame, a.frames = a.frames, a.frames + 1
            self.frame_align = max(self.frame_align, align_of(v))
            scope.names[v.name] = Symbol("local", self.frame_area.place(size_of(v), align_of(v)), element_of(v), self.frame)
        elif v.space == "local":
            address = a.local.place(size_of(v), align_of(v))
            a.local_names.append((v.name, address, size_of(v)))
            scope.names[v.name] = Symbol("local", address, element_of(v))
        elif v.space.startswith("param"):
            address = FUNCTION_PARAM + a.call_params.place(size_of(v), align_of(v))
            scope.names[v.name] = Symbol("param", address, element_of(v))
        elif (found := a.machine.function_variables.get(id(v))) is not None:
            scope.names[v.name] = found
        else:
            raise InputError(f"`{v.name}`: a variable in .{v.space} inside a function is not supported")

    # --- code -----------------------------------------------------------------------------------------------------

    def new_block(self, label: str = "") -> Block:
        """Return a new block of this function."""
        block = Block(len(self.areas.blocks), self.function.name, label=label)
        self.areas.blocks.append(block)
        self.members.append(block.index)
        return block

    def registers(self) -> dict[str, Register]:
        """Return the registers by name; of names that several scopes declare, the first."""
        out: dict[str, Register] = {}
        for scope in (self.scope, *self.scopes.values()):
            for name, entity in scope.names.items():
                if isinstance(entity, Register):
                    out.setdefault(name, entity)
        return out

    def signature(self) -> Signature:
        """Return what a call needs to know."""
        return Signature(
            self.function.name,
            self.entry,
            tuple(self.parameters),
            tuple(self.returns),
            self.slots,
            self.param_range,
            self.local_bytes,
            self.frame,
            self.frame_align,
        )

    def end(self, ending: Any, following: Block | None = None) -> None:
        """End the current block and go on in `following` (a new block when None)."""
        self.current.ending = ending
        self.current = following or self.new_block()

    def run(self) -> None:
        """Lower the statements."""
        self._body(self.function.body or [], self.scope)
        self.current.ending = Return() if self.function.kind == "func" else Stop()

    def _body(self, body: list[Statement], scope: Scope) -> None:
        for s in body:
            if isinstance(s, Instruction):
                self._instruction(s, scope)
                self.used_bytes = None
            elif isinstance(s, Pragma):
                words = s.strings[0].split()
                if len(words) == 2 and words[0] == "used_bytes_mask":
                    self.used_bytes = int(words[1], 0)
            elif isinstance(s, LabelNode):
                label = scope.names[s.name]
                if isinstance(label, Label):
                    target = self.areas.blocks[label.block]
                    self.end(Jump(target.index), target)
            elif isinstance(s, Loc):
                file = self.files.get(s.file, f"file {s.file}")
                self.place = Place(file, s.line, s.column) if s.line else self.place
            elif isinstance(s, ScopeNode):
                self._body(s.body, self.scopes[id(s)])

    def place_of(self, s: Instruction) -> Place | None:
        """Return the user's line of an instruction: its own, that of `.loc`, else the line of the PTX text."""
        if s.place is not None:
            return s.place
        if self.place is not None:
            return self.place
        if s.span is not None:
            line, column = s.span.source.position(s.span.start)
            return Place(s.span.source.name, line, column)
        return None

    def _instruction(self, s: Instruction, scope: Scope) -> None:
        lowered = self.instructions.lower(s, scope)
        if isinstance(lowered, list):
            for op in lowered:
                op.used_bytes = self.used_bytes
            self.current.operations.extend(lowered)
            if len(self.current.operations) >= LONGEST:
                following = self.new_block()
                self.end(Jump(following.index), following)
            return
        guard = self.instructions.guard(s)
        if isinstance(lowered, Jump):
            following = self.new_block()
            self.end(lowered if guard is None else self._branch(guard, lowered.target, following.index, s), following)
            return
        if guard is not None:
            inside, following = self.new_block(), self.new_block()
            self.end(self._branch(guard, inside.index, following.index, s), inside)
        else:
            following = self.new_block()
            if isinstance(lowered, Sync) and self.current.operations:
                alone = self.new_block()
                self.end(Jump(alone.index), alone)
        if isinstance(lowered, Sync):
            lowered.target = following.index
        elif isinstance(lowered, Call):
            lowered.back = following.index
        self.end(lowered, following)

    def _branch(self, guard: Reg, taken: int, other: int, s: Instruction) -> Branch:
        opcode = "bra" if s.opcode == "bra" else ""  # a guarded exit, wait or call is counted where it is carried out
        op = Operation("machine", _nothing, (guard,), (False,), None, s.mnemonic, self.place_of(s), opcode=opcode)
        return Branch(guard, taken, other, s.mnemonic.endswith(".uni"), op)


def _nothing(*_: Any) -> None:
    """Stand for the work of an instruction that the engine itself carries out."""
