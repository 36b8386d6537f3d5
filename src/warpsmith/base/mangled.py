"""Names as C++ compilers mangle them: which name of the source they stand for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["same_in_source", "source_name"]

_START = re.compile(r"_Z(N[rVK]*(?:St)?)?L?")
_LENGTH = re.compile(r"\d+")


def source_name(mangled: str) -> str:
    """Return the last name of a mangled function, without namespaces, template arguments and parameters.

    `_Z9transposeILi32EEvPKfPf` → `transpose`, `_ZN4math5saxpyEf` → `saxpy`; '' for what is not mangled so (Itanium C++
    ABI 5.1.2 and 5.1.3: `_Z` then `<length><name>`, between `N` and `E` where it is nested).
    """
    start = _START.match(mangled)
    if start is None:
        return ""
    at, name = start.end(), ""
    while length := _LENGTH.match(mangled, at):
        at = length.end() + int(length[0])
        if at > len(mangled):
            return ""
        name = mangled[length.end() : at]
        if not start[1]:
            break
        if mangled[at : at + 1] == "I" and (behind := _arguments_end(mangled, at)):
            at = behind if _LENGTH.match(mangled, behind) else at
    return name


def _arguments_end(mangled: str, at: int) -> int:
    """Return where the template arguments that open at `at` end; 0 if they hold what is not told apart here."""
    depth = 0
    while at < len(mangled):
        if length := _LENGTH.match(mangled, at):
            at = length.end() + int(length[0])
            continue
        if mangled[at] == "L" and (literal := re.compile(r"L[a-z]n?\d+E").match(mangled, at)):
            at = literal.end()
            continue
        depth += (mangled[at] in "INJX") - (mangled[at] == "E")
        at += 1
        if not depth:
            return at
    return 0


def same_in_source(name: str, mangled: Iterable[str]) -> list[str]:
    """Return those of the mangled names that are `name` in the source, in their order."""
    return [m for m in mangled if name and source_name(m) == name]
