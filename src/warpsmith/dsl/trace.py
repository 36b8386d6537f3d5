"""A trace: the kernel body runs once in Python, and every DSL call appends to the statement list of the open scope.

`Trace.emit` is the one way into the tree. It checks the instruction where it is written, turns Python operands into
tree operands and notes the user's line on the instruction.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, final

from warpsmith.assembly.ptx.check import Symbol, check_instruction, register
from warpsmith.assembly.ptx.check.symbols import special, variable
from warpsmith.assembly.ptx.tree import Instruction, Label, Variable
from warpsmith.assembly.ptx.tree import Scope as TreeScope
from warpsmith.base.place import error, shown_path, user_place
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.address import in_register
from warpsmith.dsl.check import Plan, operand_kinds, refuse, steps, values_matter
from warpsmith.dsl.operands import convert, guard
from warpsmith.dsl.registers import NegPred, Reg, RegArray
from warpsmith.dsl.scope import AUTOMATIC, Scope
from warpsmith.dsl.shared_memory import SharedMemory
from warpsmith.dsl.signature import signature

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warpsmith.assembly.ptx.tree import Item, Statement
    from warpsmith.base.arch import Arch
    from warpsmith.base.errors import Problem
    from warpsmith.base.ptx_types import PtxType
    from warpsmith.base.source import Place

__all__ = ["Options", "Retrace", "Trace", "current"]

_LABEL = Symbol("label")
_VERSIONS = tuple((n // 10, n % 10) for n in range(60, 100))
"""PTX versions tried for what no row knows: special registers."""

_current: ContextVar[Trace | None] = ContextVar("warpsmith_trace", default=None)


def current() -> Trace:
    """Return the trace of the kernel whose body is running; raise `KernelError` outside one."""
    trace = _current.get()
    if trace is None:
        raise error("this call emits an instruction, and no kernel is being traced", "call it inside a @kernel function")
    return trace


@final
@dataclass(frozen=True, slots=True)
class Options:
    """What a first run of the body may find out, so that it has to run again."""

    dynamic_shared: bool = False
    """Allocations live in the dynamic shared memory, because together they exceed 48 KB."""
    reserved: int = 0
    """Bytes at the start of the dynamic shared memory that belong to `smem.base()`."""
    prefix: str = ""
    """Put before automatic names when the user's own names look like them."""


class Retrace(BaseException):
    """Raised inside a trace to run the body again with other options."""

    def __init__(self, options: Options) -> None:
        super().__init__("the body runs again")
        self.options = options


class WaitHook(Protocol):
    """What is told of every `mbarrier.wait`."""

    def before_wait(self) -> None:
        """Called before the wait is emitted."""
        ...

    def after_wait(self) -> None:
        """Called after it."""
        ...


@final
class Trace:
    """The state of one run of a kernel body."""

    def __init__(self, arch: Arch, version: tuple[int, int], fixed_version: bool, options: Options, place: Place) -> None:
        self.arch = arch
        self.version = version
        """PTX version: what was asked for, or the lowest for the architecture, raised as instructions need it."""
        self.fixed_version = fixed_version
        self.options = options
        self.statements: list[Statement] = []
        self.prologue: list[Statement] = []
        """Goes before everything else in the body: loads that must dominate their uses."""
        self.root = Scope(self, 0, None, self.statements, place)
        self.scope = self.root
        self.scopes = 0
        self.label_names: set[str] = set()
        self._plans: dict[tuple[object, ...], Plan] = {}
        self.branches: list[tuple[str, Scope, Place]] = []
        """Targets, the scope they were named in, and the line."""
        self.symbols: dict[str, Symbol] = {}
        """Variables and parameters, as the checker knows them."""
        self.automatic: dict[str, str] = {}
        """Registers with names of our own → declared type."""
        self.spaces: dict[str, str] = {}
        """variable or parameter name -> state space."""
        self.parameter_types: dict[str, str] = {}
        self.items: list[Item] = []
        """Variables and functions at module level."""
        self.counters: dict[str, int] = {}
        self.last_if: tuple[list[Statement], Label] | None = None
        """Body and end label of the `if_` closed last: what an `else_` may follow."""
        self.files: dict[int, str] = {}
        """Files named by `ptx.file_`."""
        self.printed_texts: dict[str, str] = {}
        """Texts of `ptx.printf` → the variables that hold them."""
        self.forced_place: Place | None = None
        """Set by `ptx.loc`."""
        self.wait_map: WaitHook | None = None
        """Instruments `mbarrier.wait` while active."""
        self._awaited: dict[int, tuple[object, str, Place]] = {}
        """Blocks that have been made and not entered, by identity: (block, how to write it, line)."""
        self.open_loops: list[tuple[str, Place]] = []
        """`range_` loops whose end has not been emitted."""
        self.shared = SharedMemory()
        self.shared_variables: list[Variable] = []
        self.dynamic_name = ""
        """What the `extern .shared` array shall be called, '' for our choice."""
        self.smem_bytes = 0
        """The `smem=` argument of the kernel: bytes the kernel lays out itself."""

    @property
    def prefix(self) -> str:
        """Put before automatic names."""
        return self.options.prefix

    # --- names -------------------------------------------------------------------------------------------------------

    def unique(self, stem: str) -> str:
        """Return `stem`, or `stem_1`, `stem_2`, … : a name not handed out before."""
        while True:
            count = self.counters.get(stem, 0)
            self.counters[stem] = count + 1
            name = f"{stem}_{count}" if count else stem
            if name not in self.spaces and name not in self.label_names:
                return name

    def unique_label(self, stem: str) -> str:
        """Return a fresh label `$stem_n`."""
        count = self.counters.get("$" + stem, 0)
        self.counters["$" + stem] = count + 1
        return f"${stem}_{count}"

    def find(self, name: str) -> object | None:
        """Return the register called `name`, or the space of the variable or parameter; None when undeclared."""
        found = self.scope.find(name)
        return self.spaces.get(name) if found is None else found

    def declare_variable(self, name: str, space: str, type_name: str = "b8") -> None:
        """Note a variable's name, space and type; raise when the name is taken."""
        if name in self.spaces:
            raise error(f"the name {name} is already declared", "choose another name, or leave `name` out")
        self.spaces[name] = space
        self.symbols[name] = variable("variable", type_name, space, 1, None)

    def declare_local(self, name: str, space: str, type_name: str) -> None:
        """Note a variable declared in the open scope."""
        if name in self.scope.names:
            raise error(f"the name {name} is already declared in this scope", "choose another name, or open a ptx.scope()")
        self.scope.names[name] = variable("variable", type_name, space, 1, None)

    def declare_parameter(self, name: str, kind: str) -> None:
        """Note a kernel parameter and its type."""
        self.spaces[name] = "param"
        self.parameter_types[name] = kind
        self.symbols[name] = variable("parameter", kind, "param", 1, None)

    def space_of(self, name: str) -> str:
        """Return the state space of a declared variable, or of a local one; '' when unknown."""
        found = self.scope.find(name)
        return self.spaces.get(name, found.space if isinstance(found, Symbol) else "")

    def check_name(self, name: str) -> None:
        """Raise for a name that means nothing here: no register, variable, parameter or special register."""
        if name in self.spaces or special(name) is not None or self.scope.find(name) is not None or name in self.automatic:
            return
        if name == "_" or name == "WARP_SZ":
            return
        kind = "register" if name.startswith("%") else "name"
        raise error(f"undeclared {kind} {name}", "declare it first: reg.scalar(dtype, name=…), or pass the Reg itself")

    # --- registers ---------------------------------------------------------------------------------------------------

    def new(self, dtype: PtxType) -> Reg:
        """Declare a register with a name of our own in the open scope."""
        scope = self.scope
        name = scope.automatic(dtype)
        self.automatic[name] = dtype.reg
        return Reg(name, dtype, scope)

    def root_register(self, type_name: str) -> Reg:
        """Declare a register in the kernel's outermost scope."""
        dtype = TYPES[type_name]
        name = self.root.automatic(dtype)
        self.automatic[name] = dtype.reg
        return Reg(name, dtype, self.root)

    def new_named(self, type_name: str) -> Reg:
        """Declare a register of the type called `type_name`."""
        return self.new(TYPES[type_name])

    def declare(self, dtype: PtxType, name: str) -> Reg:
        """Declare a register under the user's name; raise when the name is taken in this scope."""
        self._own(name)
        result = Reg(name, dtype, self.scope)
        self._claim(name, result)
        self.scope.declare(dtype.reg, name, None)
        return result

    def declare_array(self, dtype: PtxType, count: int, name: str | None) -> RegArray:
        """Declare `name<count>`; with a name of our own when None."""
        if name is None:
            base = self.scope.automatic_array(dtype)
        else:
            base = name
            self._own(name)
        regs = [Reg(f"{base}{i}", dtype, self.scope) for i in range(count)]
        if name is not None:
            for r in regs:
                self._claim(r.name, r)
        else:
            self.automatic.update((r.name, dtype.reg) for r in regs)
        self.scope.declare(dtype.reg, base, count)
        return RegArray(base, dtype, regs)

    def _own(self, name: str) -> None:
        if AUTOMATIC.fullmatch(name) and not self.options.prefix:
            raise Retrace(replace(self.options, prefix="t_"))

    def _claim(self, name: str, value: Reg) -> None:
        if name in self.scope.names or name in self.spaces:
            raise error(f"the name {name} is already declared in this scope", "leave `name` out, or open a ptx.scope()")
        self.scope.names[name] = value

    # --- statements --------------------------------------------------------------------------------------------------

    def emit(self, mnemonic: str, operands: Sequence[object], pred: Reg | NegPred | None = None) -> Instruction:
        """Append one instruction of the user's line to the open scope."""
        place = self.forced_place or user_place()
        key = (mnemonic, *[signature(self, v) for v in operands])
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._admit(mnemonic, operands, key[1:])
            known = False
        else:
            known = not plan.values_matter
        instruction = self._instruction(plan, mnemonic, operands, pred, place)
        if not known:
            self._verify(instruction, plan.kinds)
        self.scope.body.append(instruction)
        if mnemonic[:3] == "bra":
            self.branch(str(operands[-1]), place)
        return instruction

    def _instruction(
        self, plan: Plan, mnemonic: str, operands: Sequence[object], pred: Reg | NegPred | None, place: Place
    ) -> Instruction:
        if plan.addresses:
            operands = [self._materialise(k, v) for k, v in zip(plan.kinds, operands, strict=True)]
        return Instruction(
            mnemonic, convert(self, plan.kinds, operands), None if pred is None else guard(self, pred), None, place
        )

    def _admit(self, mnemonic: str, operands: Sequence[object], signatures: tuple[Any, ...]) -> Plan:
        """Decide how the operands of a shape not seen before are converted."""
        kinds = operand_kinds(mnemonic, signatures)
        for i, kind in enumerate(kinds):
            if kind[:8] == "too wide":
                raise error(f"{mnemonic}: operand {i + 1} is {operands[i]}, which is {kind}")
            if kind[:10] == "too narrow":
                raise error(
                    f"{mnemonic}: operand {i + 1} is an address in a 32-bit register, and{kind[11:]} have 64 bits",
                    "add offsets to the pointer: ptx.addr(pointer + offset)",
                )
        return Plan(kinds, values_matter(mnemonic), "value" in kinds or "symbol" in kinds)

    def _verify(self, instruction: Instruction, kinds: tuple[str, ...]) -> None:
        """Raise the checker's first complaint; before that try later PTX versions, if the kernel leaves them open."""
        lookup = self._label_or_symbol if "label" in kinds else self.lookup
        arch = str(self.arch)
        problems = self.raise_version(
            instruction.mnemonic, lambda version: check_instruction(instruction, lookup, version, arch)
        )
        if problems:
            raise refuse(instruction, problems[0])

    def raise_version(self, mnemonic: str, check: Callable[[tuple[int, int]], list[Problem]]) -> list[Problem]:
        """Return what `check(PTX version)` finds; raise this kernel's version where that helps and it was left open."""
        problems = check(self.version)
        if problems and not self.fixed_version:
            for version in (*steps(mnemonic), *_VERSIONS):
                if version > self.version and not (problems := check(version)):
                    self.version = version
                    break
        return problems

    def lookup(self, name: str) -> Symbol | None:
        """Return what a name stands for here, for the checker."""
        kind = self.automatic.get(name)
        if kind is not None:
            return register(kind)
        found = self.scope.find(name)
        if isinstance(found, Reg):
            return register(found.type)
        if isinstance(found, Symbol):
            return found
        return self.symbols.get(name) or special(name)

    def _label_or_symbol(self, name: str) -> Symbol | None:
        return self.lookup(name) or _LABEL

    def _materialise(self, kind: str, value: object) -> object:
        """An address where a value is needed: put it into a register."""
        if kind == "symbol" and hasattr(value, "location"):
            kind = "value" if isinstance(value.location()[0], Reg) else kind  # type: ignore[attr-defined]
        return in_register(self, value) if kind == "value" else value

    def emit_first(self, mnemonic: str, operands: Sequence[object]) -> None:
        """Append one instruction to the prologue."""
        plan = self._admit(mnemonic, operands, tuple(signature(self, v) for v in operands))
        instruction = self._instruction(plan, mnemonic, operands, None, user_place())
        self._verify(instruction, plan.kinds)
        self.prologue.append(instruction)

    def label(self, name: str) -> None:
        """Append a label; raise when the kernel has it already."""
        self.note_label(name)
        self.scope.body.append(Label(name))

    def append(self, statement: Statement) -> None:
        """Append any other statement."""
        self.scope.body.append(statement)

    def note_label(self, name: str) -> None:
        """Note a label; raise when the open scope has it already."""
        if name in self.scope.labels:
            earlier = self.scope.labels[name]
            where = f"{shown_path(earlier.file)}:{earlier.line}"
            raise error(f"the label {name} is already set at {where}", "labels are unique in a kernel, or in a ptx.scope()")
        self.scope.labels[name] = user_place()
        self.label_names.add(name)

    def expect(self, block: object, form: str, place: Place) -> None:
        """Note a block that is to be entered."""
        self._awaited[id(block)] = (block, form, place)

    def met(self, block: object) -> None:
        """Note that it has been."""
        self._awaited.pop(id(block), None)

    def missed(self) -> tuple[str, Place] | None:
        """Return (how to write it, line) of a block never entered, None if there is none."""
        return next(((form, place) for _, form, place in self._awaited.values()), None)

    def branch(self, target: str, place: Place) -> None:
        """Note a branch; its label may still come."""
        self.branches.append((target, self.scope, place))

    def open_scope(self) -> Scope:
        """Open a `{ }` block."""
        self.scopes += 1
        node = TreeScope([])
        self.scope.body.append(node)
        self.scope = Scope(self, self.scopes, self.scope, node.body, user_place())
        return self.scope

    def close_scope(self, scope: Scope) -> None:
        """Close the innermost block, which must be `scope`."""
        if self.scope is not scope:
            raise error("this scope is not the innermost open one", "leave scopes in the reverse order of entering them")
        scope.close()
        assert scope.parent is not None
        self.scope = scope.parent

    def __enter__(self) -> Trace:
        self._token = _current.set(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _current.reset(self._token)
