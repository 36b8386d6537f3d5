"""A listing of whole functions: directives say for what and how, the lines between them are what `assemble` reads.

.arch sm_90a
.function vadd              // starts a function; lines before the first belong to code without a name
.registers 14
.params 8 8 8 4             // bytes of each parameter, aligned to themselves, at most to 8; 16:16 for another alignment
.shared 64                  // also .barriers, .stack, .max_threads x y z
.needs constant bank 4      // what the function refers to and a listing does not hold
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import final

from warpsmith.base.errors import InputError

__all__ = ["FunctionSource", "Source", "parse_source"]

_DIRECTIVE = re.compile(
    r"\s*\.(arch|function|registers|params|shared|barriers|stack|max_threads|needs)(?:\s+(.*?))?\s*(?://.*)?$"
)
_NUMBER = re.compile(r"0x[0-9a-f]+|[0-9]+")
_LONGEST = 10
"""Characters of a number at most."""


@final
@dataclass(slots=True)
class FunctionSource:
    """A function of a listing."""

    name: str
    """'' for code without a name."""
    line: int
    """Number of the first line of `text`."""
    text: str = ""
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    """`registers`, `shared`, `barriers`, `stack`, where they are stated."""
    params: tuple[int | tuple[int, int], ...] = ()
    max_threads: tuple[int, int, int] | None = None
    needs: list[str] = field(default_factory=list[str])
    """What the function refers to and the listing does not hold."""


@final
@dataclass(frozen=True, slots=True)
class Source:
    """A listing taken apart by functions."""

    arch: str | None
    functions: tuple[FunctionSource, ...]


def parse_source(text: str, name: str = "<listing>") -> Source:
    """Take a listing apart; raise `InputError` with the line for a directive that is not as it should be."""
    arch: str | None = None
    out = [FunctionSource("", 1)]
    lines: list[list[str]] = [[]]
    for number, line in enumerate(text.splitlines(), 1):
        m = _DIRECTIVE.match(line)
        lines[-1].append("\n" if m else line + "\n")
        if m is None:
            continue
        try:
            if m[1] == "arch":
                arch = _one(arch, m[2])
            elif m[1] == "function":
                if not m[2] or any(f.name == m[2] for f in out):
                    raise InputError(f"the function {m[2]!r} stands twice" if m[2] else ".function wants a name")
                out.append(FunctionSource(m[2], number + 1))
                lines.append([])
            else:
                _state(out[-1], m[1], m[2] or "")
        except InputError as error:
            raise InputError(f"{name}:{number}: {error}\n    {line.strip()}") from None
    for function, its in zip(out, lines, strict=True):
        function.text = "".join(its)
    if not re.sub(r"/\*.*?\*/|//.*", "", out[0].text).strip():
        del out[0]
    return Source(arch, tuple(out))


def _one(before: str | None, value: str | None) -> str:
    if not value:
        raise InputError(".arch wants an architecture, e.g. sm_90a")
    if before not in (None, value):
        raise InputError(f"the listing is for {before} already")
    return value


def _state(function: FunctionSource, what: str, value: str) -> None:
    if not function.name:
        raise InputError(f".{what} belongs behind a .function")
    if what == "needs":
        function.needs.append(value)
    elif what == "params":
        function.params = tuple(_parameter(part) for part in value.split())
    elif what == "max_threads":
        sizes = [_number(part) for part in value.split()]
        if len(sizes) != 3:
            raise InputError(".max_threads wants three numbers")
        function.max_threads = (sizes[0], sizes[1], sizes[2])
    else:
        function.numbers[what] = _number(value)


def _parameter(text: str) -> int | tuple[int, int]:
    size, colon, alignment = text.partition(":")
    return (_number(size), _number(alignment)) if colon else _number(size)


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise InputError(f"{text!r} is no number")
    if len(text) > _LONGEST:
        raise InputError(f"{text[:_LONGEST]}… is too large")
    return int(text, 16 if text.startswith("0x") else 10)
