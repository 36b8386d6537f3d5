"""Read what `ptxas -v` prints: messages, and the resources of each function."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal, final

__all__ = ["Log", "Message", "Resources", "parse_log"]

Level = Literal["info", "warning", "error", "fatal"]

_LINE = re.compile(
    r"ptxas (?:(?P<file>.+?), line (?P<line>\d+); )?(?P<level>info|warning|error|fatal) *: +"
    r"(?:\((?P<code>C\d+)\) )?(?P<text>.*)"
)
_COMPILING = re.compile(r"Compiling entry function '(?P<name>[^']+)' for '(?P<arch>[^']+)'")
_PROPERTIES = re.compile(r"Function properties for '?(?P<name>[^']+?)'?$")
_STACK = re.compile(r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads")
_USED = re.compile(r"Used (?P<registers>\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_BYTES = re.compile(r"(\d+) bytes (smem|lmem|gmem|cumulative stack size|cmem\[(\d+)\])")
_AT_LINE = re.compile(r"\bline (\d+)\b")
_IN_FUNCTION = re.compile(r"\bfunction '([^']+)'")


@final
@dataclass(frozen=True, slots=True)
class Resources:
    """What one function takes, as ptxas counted it. Bytes, but for registers and barriers."""

    name: str
    arch: str = ""
    """Architecture of an entry; empty for a device function."""
    registers: int | None = None
    """Registers a thread; None for a device function compiled on its own."""
    barriers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0
    """Static shared memory."""
    local: int = 0
    constant: dict[int, int] = field(default_factory=dict[int, int])
    """Constant bank -> bytes; bank 0 holds the parameters."""
    cumulative_stack: int = 0
    """Stack of the function and of those it calls."""


@final
@dataclass(frozen=True, slots=True)
class Message:
    """One complaint of ptxas."""

    level: Level
    text: str
    code: str = ""
    """`C7508`, or empty."""
    line: int | None = None
    """Line of the PTX text, from 1."""
    function: str = ""


@final
@dataclass(frozen=True, slots=True)
class Log:
    """A whole log: complaints in order, and resources by function."""

    messages: tuple[Message, ...]
    resources: dict[str, Resources]
    global_bytes: int = 0
    """Bytes of global memory of the module."""


def parse_log(text: str) -> Log:
    """Read the standard error of `ptxas -v`. Lines that are not understood are kept as messages, not dropped."""
    messages: list[Message] = []
    resources: dict[str, Resources] = {}
    current = Resources("")
    arch: dict[str, str] = {}
    module_bytes = 0
    for raw in text.splitlines():
        m = _LINE.match(raw)
        body = m["text"].strip() if m else raw.strip()
        if found := _COMPILING.match(body):
            arch[found["name"]] = found["arch"]
        elif found := _PROPERTIES.match(body):
            current = Resources(found["name"], arch.get(found["name"], ""))
            resources[current.name] = current
        elif found := _STACK.match(body):
            current = replace(
                current, stack=int(found["stack"]), spill_stores=int(found["stores"]), spill_loads=int(found["loads"])
            )
            resources[current.name] = current
        elif _USED.match(body):
            current = _used(current, body)
            resources[current.name] = current
        elif (found := _BYTES.match(body)) and found[2] == "gmem":
            module_bytes = int(found[1])
        elif body and not body.startswith(("Compile time", "Ptx assembly aborted")):
            messages.append(_message(m, body))
    return Log(tuple(messages), resources, module_bytes)


def _used(current: Resources, body: str) -> Resources:
    """Add a `Used 8 registers, used 1 barriers, 16 bytes smem, 360 bytes cmem[0]` line."""
    amounts = {"smem": 0, "lmem": 0, "cumulative stack size": 0}
    constant: dict[int, int] = {}
    for size, what, bank in _BYTES.findall(body):
        if bank:
            constant[int(bank)] = int(size)
        else:
            amounts[what] = int(size)
    barriers = _BARRIERS.search(body)
    registers = _USED.match(body)
    return replace(
        current,
        registers=int(registers["registers"]) if registers else None,
        barriers=int(barriers[1]) if barriers else 0,
        shared=amounts["smem"],
        local=amounts["lmem"],
        constant=constant,
        cumulative_stack=amounts["cumulative stack size"],
    )


def _message(m: re.Match[str] | None, body: str) -> Message:
    """Make a message of a line; a line ptxas did not put a level to counts as a warning."""
    if m is None:
        return Message("warning", body)
    line = m["line"] or (found[1] if (found := _AT_LINE.search(body)) else "0")
    function = found[1] if (found := _IN_FUNCTION.search(body)) else ""
    level: Level = m["level"]  # pyright: ignore[reportAssignmentType] (one of the four words of the expression)
    return Message(level, body, m["code"] or "", int(line) or None, function)
