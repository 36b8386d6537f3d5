"""Python names for PTX names: readable, unique in a kernel, no keyword and none of the names a transpiled file imports."""

from __future__ import annotations

import builtins
import keyword
import re
from dataclasses import dataclass, field
from typing import final

from warpsmith.base.ptx_types import TYPES

__all__ = ["Array", "Names", "free", "identifier", "quoted"]

_TAKEN = frozenset({"kernel", "ptx", "reg", "smem", "types", *TYPES, *dir(builtins)})


def quoted(text: str) -> str:
    """Return `text` as a Python string literal in double quotes where that needs no escapes."""
    shown = repr(text)
    return f'"{shown[1:-1]}"' if shown[0] == "'" and '"' not in text else shown


def free(name: str, taken: set[str]) -> bool:
    """Say whether `name` can be that of a Python function in a transpiled file, as it is."""
    return name.isidentifier() and not keyword.iskeyword(name) and name not in taken and name not in _TAKEN


def identifier(name: str, taken: set[str]) -> str:
    """Return a Python identifier like `name` that is not in `taken`, and add it."""
    stem = re.sub(r"\W", "_", name.lstrip("%$")) or "v"
    if stem[0].isdigit() or stem[0] == "_":
        stem = f"r{stem}"
    candidate, count = stem, 0
    while candidate in taken or candidate in _TAKEN or keyword.iskeyword(candidate):
        count += 1
        candidate = f"{stem}_{count}"
    taken.add(candidate)
    return candidate


@final
@dataclass(frozen=True, slots=True)
class Array:
    """`.reg .b32 %r<20>`: the Python name of the array and its length."""

    python: str
    count: int


@final
@dataclass(slots=True)
class Names:
    """Registers declared in a scope and those around it."""

    parent: Names | None = None
    taken: set[str] = field(default_factory=set)
    """Python names in use, shared by all scopes of a kernel."""
    scalars: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    """Registers declared by raw text: referred to by their PTX name."""

    def inner(self) -> Names:
        """Return the names of a scope inside this one."""
        return Names(self, self.taken)

    def python(self, name: str) -> str | None:
        """Return the Python expression of a register, None when there is none."""
        scope: Names | None = self
        while scope is not None:
            found = scope._own(name)
            if found is not None:
                return found or None
            scope = scope.parent
        return None

    def _own(self, name: str) -> str | None:
        """The expression; '' for a register that raw text declares; None when this scope does not declare it."""
        if name in self.hidden:
            return ""
        if name in self.scalars:
            return self.scalars[name]
        m = re.search(r"(?:0|[1-9]\d*)$", name)
        while m:
            array = self.arrays.get(name[: m.start()])
            if array is not None and int(m[0]) < array.count:
                return f"{array.python}[{int(m[0])}]"
            m = re.compile(r"(?:0|[1-9]\d*)$").search(name, m.start() + 1)
        return None
