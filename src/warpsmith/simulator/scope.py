"""Names while lowering: registers, variables, labels and parameters by lexical scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from warpsmith.assembly.ptx.tree import Parameter, RegisterDeclaration
from warpsmith.base.ptx_types import TYPES

__all__ = ["Entity", "Label", "Register", "Scope", "Signature", "SlotCounter", "Symbol", "Targets"]


@final
@dataclass(frozen=True, slots=True)
class Register:
    """A declared register: `lanes` slots apart by `per` for a vector register."""

    bank: str
    slot: int
    bits: int
    type: str
    vector: int = 1

    @property
    def per(self) -> int:
        """Slots of one element."""
        return 2 if self.bits == 128 else 1


@final
@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, parameter or function: its address within its space."""

    space: str
    """`global`, `shared`, `local`, `const`, `param`, or `function`."""
    address: int
    element: int = 1
    """Bytes of the fundamental type: what an index counts, also in arrays of several dimensions and of vectors, as in ptxas."""
    frame: int | None = None
    """Of local variables of a recursive function: the number of its frames, from whose start the address counts."""


@final
@dataclass(slots=True)
class Label:
    """A label and the block it stands for."""

    block: int


@final
@dataclass(slots=True)
class Targets:
    """A `.branchtargets`, `.calltargets` or `.callprototype`."""

    node: Any


@final
@dataclass(frozen=True, slots=True)
class Signature:
    """A function as its callers see it: entry block, formal parameters and results with where they live."""

    name: str
    entry: int
    parameters: tuple[tuple[Parameter, Register | Symbol], ...]
    returns: tuple[tuple[Parameter, Register | Symbol], ...]
    slots: tuple[tuple[str, int, int], ...] = ()
    """Its registers: (bank, first slot, end)."""
    param_range: tuple[int, int] = (0, 0)
    """Its bytes of function parameter memory."""
    local_bytes: int = 0
    """Bytes of local variables."""
    frame: int | None = None
    """Number of its frames, where it may be active more than once and has local variables."""
    frame_align: int = 1


Entity = Register | Symbol | Label | Targets


@final
class SlotCounter:
    """Hands out register slots by bank."""

    def __init__(self) -> None:
        self.next: dict[str, int] = {"b16": 0, "b32": 0, "b64": 0, "pred": 0}

    def take(self, type_name: str, vector: int = 1) -> Register:
        """Return a new register of a PTX type."""
        t = TYPES[type_name]
        bits = t.bits
        bank = "pred" if t.kind == "pred" else f"b{max(16, min(bits, 64))}"
        register = Register(bank, self.next[bank], bits, type_name, vector)
        self.next[bank] += vector * register.per
        return register


@final
class Scope:
    """A lexical scope; `find` looks outward."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.names: dict[str, Entity] = {}
        self.parent = parent

    def find(self, name: str) -> Entity | None:
        """Return what `name` means here, or None."""
        scope: Scope | None = self
        while scope is not None:
            if (found := scope.names.get(name)) is not None:
                return found
            scope = scope.parent
        return None

    def declare(self, declaration: RegisterDeclaration, slots: SlotCounter) -> None:
        """Give every register of a `.reg` statement its slots, consecutive ones for consecutive names."""
        for name, count in declaration.names:
            if count is None:
                self.names[name] = slots.take(declaration.type, declaration.vector)
            else:
                for i in range(count):
                    self.names[f"{name}{i}"] = slots.take(declaration.type, declaration.vector)
