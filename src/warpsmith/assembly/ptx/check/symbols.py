"""What a name stands for, and the scopes that say so (PTX ISA 4.4, 5, 9.3)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Literal, final

from warpsmith.assembly.ptx.special_registers import special_register
from warpsmith.base.ptx_types import TYPES, PtxType

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.assembly.ptx.tree import CallPrototype, Function

__all__ = ["Lookup", "Scope", "Symbol", "register", "special", "variable"]

Kind = Literal["register", "special", "variable", "parameter", "result", "label", "function", "prototype", "targets"]


@final
@dataclass(slots=True, eq=False)
class Symbol:
    """What a name stands for. Symbols with equal `shape` are checked alike."""

    kind: Kind
    type: PtxType | None = None
    """None for labels, functions and opaque variables (`.texref`)."""
    vector: int = 1
    """2 or 4 for vector registers."""
    space: str = ""
    """State space of a variable or parameter."""
    signature: Function | CallPrototype | None = None
    """Of a function or prototype."""
    size: int | None = None
    """Bytes of a variable or parameter; None for an unsized array."""
    shape: str = ""

    def __post_init__(self) -> None:
        self.shape = f"{self.kind}:{self.type}*{self.vector}:{self.space}"


if TYPE_CHECKING:
    Lookup = Callable[[str], Symbol | None]
else:
    Lookup = object


@cache
def register(type_name: str, vector: int = 1) -> Symbol:
    """Return the symbol of a register of that type (`b32`, `f32`, `pred`, …); one object per type."""
    return Symbol("register", TYPES[type_name], vector)


@cache
def variable(
    kind: Literal["variable", "parameter", "result"], type_name: str, space: str, vector: int, size: int | None
) -> Symbol:
    """Return the symbol of a variable, or of a formal parameter or result of a function."""
    return Symbol(kind, TYPES.get(type_name), vector, space, size=size)


@cache
def special(name: str) -> Symbol | None:
    """Return the symbol of the special register `name`, None if there is none."""
    found = special_register(name)
    return None if found is None else Symbol("special", found.type, found.vector)


@final
class Scope:
    """Names declared between two braces; what it does not know its parent may. Calling it looks a name up."""

    __slots__ = ("_found", "_ranges", "defined", "names", "parent")

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self.names: dict[str, Symbol] = {}
        self.defined: set[str] = set()
        """Variables that have a definition, not only an `.extern` declaration."""
        self._ranges: dict[str, list[tuple[int, Symbol]]] = {}
        self._found: dict[str, Symbol | None] = {}

    def __call__(self, name: str) -> Symbol | None:
        """Return what `name` stands for here, None when it is not declared."""
        try:
            return self._found[name]
        except KeyError:
            pass
        symbol = self.own(name)
        if symbol is None:
            symbol = self.parent(name) if self.parent is not None else special(name)
        self._found[name] = symbol
        return symbol

    def own(self, name: str) -> Symbol | None:
        """Return what this scope itself declares under `name`."""
        symbol = self.names.get(name)
        if symbol is None and self._ranges and (m := re.search(r"(?:0|[1-9]\d*)$", name)):
            prefix, number = name[: m.start()], int(m[0])
            symbol = next((s for count, s in self._ranges.get(prefix, ()) if number < count), None)
        return symbol

    def declare(self, name: str, symbol: Symbol, count: int | None = None) -> bool:
        """Add `name`, or the names `name0` … of a parameterised declaration; say whether none was taken."""
        self._found.clear()
        if count is None:
            free = self.own(name) is None
            self.names.setdefault(name, symbol)
            return free
        free = all(self._taken(name, other, count) for other in self.names) and name not in self._ranges
        self._ranges.setdefault(name, []).append((count, symbol))
        return free

    @staticmethod
    def _taken(prefix: str, other: str, count: int) -> bool:
        """Say whether `other` is outside the range `prefix0` … `prefix(count-1)`."""
        rest = other[len(prefix) :]
        return not (other.startswith(prefix) and rest.isdigit() and (rest == "0" or rest[0] != "0") and int(rest) < count)

    def near(self, name: str) -> str:
        """Return the declared name most like `name`, or ''."""
        scope: Scope | None = self
        known: list[str] = []
        while scope is not None:
            known += scope.names
            for prefix, ranges in scope._ranges.items():
                top = max(count for count, _ in ranges)
                m = re.fullmatch(re.escape(prefix) + r"\d+", name)
                if m:
                    return f"{prefix}<{top}> is declared: {prefix}0 … {prefix}{top - 1}"
                known.append(f"{prefix}0")
            scope = scope.parent
        close = get_close_matches(name, known, 1)
        return f"did you mean `{close[0]}`?" if close else ""
