"""The lowered program: blocks of operations on register slots, and how blocks end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.base.source import Place
    from warpsmith.simulator.scope import Register, Signature, Symbol

__all__ = [
    "Address",
    "Block",
    "Branch",
    "Call",
    "Const",
    "Exit",
    "Indexed",
    "Jump",
    "Lowered",
    "Operation",
    "Pair",
    "Program",
    "Reg",
    "Return",
    "Special",
    "Stop",
    "Sync",
    "Vector",
]


@final
@dataclass(frozen=True, slots=True)
class Reg:
    """A register as an instruction sees it: `dtype` of the operand, `count` 2 for the two halves of a `.b128`."""

    bank: str
    slot: int
    dtype: Any
    count: int = 1
    negated: bool = False
    byte: int = 0
    """First byte, where a `mov` takes a part of the register."""


@final
@dataclass(frozen=True, slots=True)
class Const:
    """A constant: a numpy scalar for values, a Python int for immediates of the instruction."""

    value: Any


@final
@dataclass(frozen=True, slots=True)
class Special:
    """A special register as a value of `dtype`."""

    name: str
    dtype: Any


@final
@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset, {coordinates}]`."""

    base: Reg | Special | None
    offset: int
    inner: tuple[Lowered, ...] = ()
    wide: bool = True
    """The base is a 64-bit register."""


@final
@dataclass(frozen=True, slots=True)
class Vector:
    """A brace vector."""

    items: tuple[Lowered, ...]


@final
@dataclass(frozen=True, slots=True)
class Pair:
    """`d|p`."""

    first: Lowered
    second: Lowered


Argument: TypeAlias = "Reg | Const | Symbol"
"""An argument or result of a call: a register, a constant, or a variable in the param space."""
Lowered = Reg | Const | Special | Address | Vector | Pair | None
"""None: absent, or the sink `_`."""


@final
@dataclass(slots=True, eq=False)
class Operation:
    """An instruction ready to run."""

    kind: Literal["pure", "machine", "sync", "copy"]
    fn: Callable[..., Any]
    operands: tuple[Lowered, ...]
    written: tuple[bool, ...]
    """Per operand: whether the instruction writes it (for a pair: both parts)."""
    guard: Reg | None = None
    text: str = ""
    place: Place | None = None
    updated: frozenset[int] = frozenset()
    """Operands that are read and written."""
    opcode: str = ""
    _slots: dict[int, dict[str, tuple[int, ...]]] = field(default_factory=dict[int, dict[str, tuple[int, ...]]])
    _reads: frozenset[tuple[str, int]] | None = None
    _writes: frozenset[tuple[str, int]] | None = None
    spaces: tuple[str | None, ...] = ()
    """Per operand: the space of an address."""
    used_bytes: int | None = None
    """Of a load: bit k says whether byte k of it is used at all, where the compiler has said so."""

    def operand_slots(self, index: int) -> dict[str, tuple[int, ...]]:
        """Return the registers of an operand by bank."""
        found = self._slots.get(index)
        if found is None:
            out: dict[str, list[int]] = {}
            for reg in _registers(self.operands[index]):
                out.setdefault(reg.bank, []).extend(range(reg.slot, reg.slot + reg.count))
            found = self._slots[index] = {bank: tuple(slots) for bank, slots in out.items()}
        return found

    def item_slots(self, index: int) -> list[list[tuple[str, int]]]:
        """Return the registers of each element of an operand that is a vector (of the whole of another)."""
        operand = self.operands[index]
        if isinstance(operand, Vector):
            items = [_registers(item) for item in operand.items]
        elif isinstance(operand, Reg) and operand.count > 1:
            return [[(operand.bank, operand.slot + i)] for i in range(operand.count)]
        else:
            items = [_registers(operand)]
        return [[(r.bank, s) for r in regs for s in range(r.slot, r.slot + r.count)] for regs in items]

    def reads(self) -> frozenset[tuple[str, int]]:
        """Return the (bank, slot) read, guard included."""
        if self._reads is not None:
            return self._reads
        out: set[tuple[str, int]] = set()
        for i, operand in enumerate(self.operands):
            if self.written[i] and i not in self.updated:
                if isinstance(operand, Address) and operand.base is not None:
                    out |= _cells(operand)
            else:
                out |= _cells(operand)
        self._reads = frozenset(out | _cells(self.guard))
        return self._reads

    def writes(self) -> frozenset[tuple[str, int]]:
        """Return the (bank, slot) written."""
        if self._writes is not None:
            return self._writes
        out: set[tuple[str, int]] = set()
        for i, operand in enumerate(self.operands):
            if self.written[i]:
                out |= _cells(operand)
        self._writes = frozenset(out)
        return self._writes


def _registers(operand: Lowered) -> list[Reg]:
    if isinstance(operand, Reg):
        return [operand]
    if isinstance(operand, Vector):
        return [r for item in operand.items for r in _registers(item)]
    if isinstance(operand, Pair):
        return _registers(operand.first) + _registers(operand.second)
    if isinstance(operand, Address):
        inner = [r for item in operand.inner for r in _registers(item)]
        return _registers(operand.base) + inner
    return []


def _cells(operand: Lowered) -> set[tuple[str, int]]:
    if isinstance(operand, Reg) and operand.count == 1:
        return {(operand.bank, operand.slot)}
    if operand is None or isinstance(operand, Const):
        return set()
    return {(r.bank, r.slot + k) for r in _registers(operand) for k in range(r.count)}


# --- how blocks end ---------------------------------------------------------------------------------------------------


@final
@dataclass(slots=True, eq=False)
class Jump:
    """Go on at `target`."""

    target: int
    place: Place | None = None
    """Of the `bra`, where there is one."""


@final
@dataclass(slots=True, eq=False)
class Branch:
    """Lanes whose predicate holds go to `taken`, the others to `other`."""

    predicate: Reg
    taken: int
    other: int
    uniform: bool = False
    """`bra.uni`: the program promises that the lanes agree."""
    operation: Operation | None = None
    """The instruction, for findings."""


@final
@dataclass(slots=True, eq=False)
class Indexed:
    """`brx.idx`: lane i goes to `targets[index]`."""

    index: Reg
    targets: tuple[int, ...]
    operation: Operation | None = None


@final
@dataclass(slots=True, eq=False)
class Call:
    """Go to a function and come back to `back`."""

    target: int | Reg
    """Address of the function, or the register that holds it."""
    arguments: tuple[Argument, ...]
    results: tuple[Argument, ...]
    back: int = -1
    operation: Operation | None = None


@final
@dataclass(slots=True, eq=False)
class Return:
    """Return from a function; from an entry: exit."""

    place: Place | None = None


@final
@dataclass(slots=True, eq=False)
class Exit:
    """The threads end."""

    place: Place | None = None


@final
@dataclass(slots=True, eq=False)
class Sync:
    """A switch point: run `operation`; what it answers decides who goes on to `target`."""

    operation: Operation
    target: int


@final
@dataclass(slots=True, eq=False)
class Stop:
    """Control ran off the end of a function without `ret`: threads end, as hardware does."""


Ending = Jump | Branch | Indexed | Call | Return | Exit | Sync | Stop


@final
@dataclass(slots=True, eq=False)
class Block:
    """Straight-line code and its ending."""

    index: int
    function: str
    operations: list[Operation] = field(default_factory=list)
    ending: Ending = field(default_factory=Stop)
    label: str = ""
    order: tuple[int, ...] = ()
    """Position at each level of loop nesting, outermost first: see `cfg`."""
    code: Any = None
    """The compiled block (`blockcode.BlockCode`), made when first run."""
    count: int = 0
    """Warp-instructions one warp executes here."""

    def successors(self) -> list[int]:
        """Return the blocks that may follow within the function."""
        e = self.ending
        if isinstance(e, Jump | Sync):
            return [e.target]
        if isinstance(e, Branch):
            return [e.taken, e.other]
        if isinstance(e, Indexed):
            return list(e.targets)
        if isinstance(e, Call):
            return [e.back]
        return []


@final
@dataclass(slots=True, eq=False)
class Program:
    """A kernel with every function it may call."""

    blocks: list[Block]
    entry: int
    slots: dict[str, int]
    """Registers per bank."""
    functions: dict[int, Signature]
    """The functions by address."""
    dynamic_start: int = 0
    """Where dynamic shared memory begins."""
    local_size: int = 0
    call_param_size: int = 0
    shared_names: list[tuple[str, int, int]] = field(default_factory=list)
    """(name, address, bytes) of static shared variables."""
    local_names: list[tuple[str, int, int]] = field(default_factory=list)
    uses_alloca: bool = False
    registers: dict[str, dict[str, Register]] = field(default_factory=dict[str, "dict[str, Register]"])
    """By function: its registers by name; of names that several scopes declare, the first."""
    undefined_at_entry: tuple[tuple[str, int], ...] = ()
    """Registers (bank, slot) that may be read before they are written."""
    frames: int = 0
    """Functions with local variables that may be active more than once."""
