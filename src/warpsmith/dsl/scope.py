"""Lexical scopes of a traced kernel: names, register declarations, and whether the scope is still open."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.tree import RegisterDeclaration

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.tree import Statement
    from warpsmith.base.ptx_types import PtxType
    from warpsmith.base.source import Place
    from warpsmith.dsl.protocols import TraceView

__all__ = ["AUTOMATIC", "PREFIXES", "Scope"]

PREFIXES = {
    "pred": "p", "b8": "rb", "u8": "rbu", "s8": "rbs", "b16": "rs", "u16": "rsu", "s16": "rss", "f16": "h",
    "b32": "r", "u32": "ru", "s32": "ri", "f16x2": "hh", "f32": "f", "b64": "rd", "u64": "rdu", "s64": "rdi",
    "f64": "fd", "b128": "rq",
}  # fmt: skip
"""declared register type -> prefix of the names made for it."""

AUTOMATIC = re.compile(rf"%(?:a)?(?:{'|'.join(PREFIXES.values())})(?:\d+_)?\d*")
"""Names that this module makes; a user's name that matches would collide."""


@final
class Scope:
    """One `{ }` (number 0 is the whole body). Unnamed registers of a type are `%r0 … %rN`, in scope 3 `%r3_0 …`."""

    __slots__ = ("_arrays", "_counts", "_declared", "body", "labels", "names", "number", "open", "parent", "place", "trace")

    def __init__(self, trace: TraceView, number: int, parent: Scope | None, body: list[Statement], place: Place) -> None:
        self.trace = trace
        self.number = number
        self.parent = parent
        self.body = body
        self.open = True
        self.place = place
        self.names: dict[str, object] = {}
        """Names declared by the user in this scope: registers, arrays' elements, variables."""
        self.labels: dict[str, Place] = {}
        self._counts: dict[str, int] = {}
        self._arrays = 0
        self._declared: list[RegisterDeclaration] = []

    def automatic(self, dtype: PtxType) -> str:
        """Return a fresh name for a register of `dtype`."""
        declared = dtype.reg
        count = self._counts.get(declared, 0)
        self._counts[declared] = count + 1
        return f"{self._prefix(declared)}{count}"

    def automatic_array(self, dtype: PtxType) -> str:
        """Return a fresh base name for an array of registers of `dtype`."""
        self._arrays += 1
        tag = self.trace.prefix
        scope = f"{self.number}_" if self.number else ""
        return f"%{tag}a{PREFIXES[dtype.reg]}{scope}{self._arrays - 1}_"

    def declare(self, declared: str, name: str, count: int | None) -> None:
        """Add the declaration of a named register, or of `name<count>`."""
        self._declared.append(RegisterDeclaration(declared, [(name, count)]))

    def _prefix(self, declared: str) -> str:
        scope = f"{self.number}_" if self.number else ""
        return f"%{self.trace.prefix}{PREFIXES[declared]}{scope}"

    def close(self) -> None:
        """Put the declarations at the head of the body; registers of this scope are unusable from now on."""
        grouped = [RegisterDeclaration(t, [(self._prefix(t), n)]) for t, n in self._counts.items()]
        self.body[:0] = grouped + self._declared
        self.open = False

    def has_label(self, name: str) -> bool:
        """Say whether a branch from here reaches a label of that name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.labels:
                return True
            scope = scope.parent
        return False

    def find(self, name: str) -> object | None:
        """Return what `name` means here: the innermost declaration, or None."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None
