"""What ptxas complains of, as findings at the user's line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.findings import Finding, Related
from warpsmith.base.source import Place
from warpsmith.toolchain.places import place_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warpsmith.base.findings import Severity
    from warpsmith.toolchain.log import Log, Message, Resources

__all__ = ["KINDS", "findings_of"]

_HEAD = re.compile(r"\.(?:entry|func)\b")

KINDS = {
    "setmaxnreg-ignored": re.compile(r"'setmaxnreg' ignored|setmaxnreg\.dec has register count"),
    "wgmma-serialised": re.compile(r"wgmma\.mma_async instructions are serialized"),
    "wgmma-wait-injected": re.compile(r"wgmma\.wait_group is injected"),
    "register-spill": re.compile(r"Registers are spilled to local memory"),
}
"""Kind -> what ptxas says; the wording is stable, the codes (C7504 … C7519) are kept in the message."""

_REPAIRS = (
    ("unable to determine register count at entry", "Add `.maxnreg`, or `.minnctapersm` beside `.maxntid` or `.reqntid`."),
    ("to maintain compatibility", "Compile the whole program, without -c, and keep setmaxnreg out of device functions."),
    ("to allow debugging", "Compile without -g."),
    ("into 'extern' call", "Call no external function from this kernel."),
    ("to maintain minimum register requirements", "Raise the count; the code after it needs more registers."),
    ("largest temporal register count", "Lower the count to what the code after it needs."),
    ("due to insufficient register resources", "Use fewer or smaller accumulators, or give the warpgroup more registers."),
    ("defining input registers", "Write the A fragment before wgmma.fence, or after wgmma.wait_group."),
    ("reading accumulator registers", "Read accumulators after wgmma.wait_group."),
    ("defining accumulator registers", "Write accumulators before wgmma.fence, or after wgmma.wait_group."),
    ("ill formed pipeline stage", "Put wgmma.fence before, and commit_group and wait_group after, on every path."),
    ("in divergent path", "Let all four warps of the warpgroup take one path from wgmma.fence to wgmma.wait_group."),
    ("crossing function boundary", "Wait for the group before the call, or inline the function."),
    ("Extern calls", "Call no external function between wgmma.fence and wgmma.wait_group."),
    ("wait_group is injected", "Put wgmma.wait_group before the first use of the accumulators."),
    ("uses too much shared data", "Use dynamic shared memory (`extern .shared`) or smaller buffers."),
    ("SM version specified by .target is higher", "Give ptxas the architecture of .target."),
    ("Unresolved extern function", "Define the function in this module, or compile with -c."),
)
"""Words of a message -> how to mend it."""


@final
@dataclass(frozen=True, slots=True)
class _Text:
    """The PTX that was compiled: its lines, where they come from, and its name."""

    lines: list[str]
    places: Mapping[int, Place]
    name: str

    def place(self, line: int) -> Place:
        """Return the user's place of a PTX line; of a function's head, that of its first `.loc`."""
        if line not in self.places and _HEAD.search(self.lines[line - 1]):
            following = (n for n in range(line, len(self.lines) + 1) if n in self.places)
            line = next(following, line)
        return self.places.get(line, Place(self.name, line))

    def find(self, words: str, start: int = 1) -> int | None:
        """Return the first line from `start` on that holds `words`."""
        return next((n for n in range(start, len(self.lines) + 1) if words in self.lines[n - 1]), None)

    def head(self, function: str) -> int | None:
        """Return the line at which a function is defined."""
        name = re.compile(rf"\b{re.escape(function)}\b")
        heads = (n for n, line in enumerate(self.lines, 1) if _HEAD.search(line) and name.search(line))
        return next(heads, None)


def findings_of(log: Log, text: str, places: Mapping[int, Place] | None = None, name: str = "<ptx>") -> tuple[Finding, ...]:
    """Return the log's complaints as findings.

    `text` is the PTX; `places` maps its lines to the user's, by default as its `.loc` directives do. A complaint
    without a line is put at the instruction or function it speaks of; one without a `.loc` at `name` and the PTX line.
    """
    spilled = [r for r in log.resources.values() if r.spill_stores or r.spill_loads]
    if not log.messages and not spilled:
        return ()
    ptx = _Text(text.split("\n"), place_lines(text) if places is None else places, name)
    out = [_finding(m, ptx) for m in log.messages]
    if not any(f.kind == "register-spill" for f in out):
        out += [_spill(r, ptx) for r in spilled]
    return tuple(out)


def _finding(m: Message, ptx: _Text) -> Finding:
    kind = next((kind for kind, pattern in KINDS.items() if pattern.search(m.text)), "")
    severity: Severity = "error" if m.level in ("error", "fatal") else "note"
    line = m.line or _guess_line(m, kind, ptx)
    related: tuple[Related, ...] = ()
    if line and line <= len(ptx.lines) and (source := ptx.lines[line - 1].strip()):
        related = (Related(source if len(source) <= 100 else source[:97] + "...", Place(ptx.name, line)),)
    return Finding(
        kind=kind or ("ptxas-error" if severity == "error" else "ptxas-note"),
        severity=severity,
        message=f"{m.text} ({m.code})" if m.code else m.text,
        where=ptx.place(line) if line and line <= len(ptx.lines) else None,
        related=related,
        repair=next((repair for words, repair in _REPAIRS if words in m.text), ""),
    )


def _guess_line(m: Message, kind: str, ptx: _Text) -> int | None:
    """Find the line of a complaint that names none: the first setmaxnreg or wgmma, or the function's head."""
    head = ptx.head(m.function) if m.function else None
    opcode = {"setmaxnreg-ignored": "setmaxnreg.", "wgmma-serialised": "wgmma.mma_async"}.get(kind)
    return (ptx.find(opcode, head or 1) if opcode else None) or head


def _spill(r: Resources, ptx: _Text) -> Finding:
    head = ptx.head(r.name)
    used = f"; it has {r.registers} registers" if r.registers else ""
    return Finding(
        kind="register-spill",
        severity="note",
        message=f"{r.name}: {r.spill_stores} bytes are spilled to local memory and {r.spill_loads} bytes read back{used}",
        where=ptx.place(head) if head else None,
        repair="Keep fewer values alive at once, or allow more registers: a smaller block, setmaxnreg, --maxrregcount.",
    )
