"""`@@DWARF` (PTX ISA 11.5.1): debug data as compilers wrote it before PTX 2.0, outside of functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.lexer import SKIP
from warpsmith.assembly.ptx.parse_directives import parse_string
from warpsmith.assembly.ptx.tree import Dwarf

if TYPE_CHECKING:
    from typing import Literal

    from warpsmith.assembly.ptx.lexer import Lexer

__all__ = ["parse_dwarf"]

_HEAD = re.compile(rf"@@DWARF(?![\w$]){SKIP}\.(?P<kind>section|byte|4byte|quad)(?![\w$])")
_BITS = {"byte": 8, "4byte": 32, "quad": 64}


def parse_dwarf(lx: Lexer, *, opened: bool) -> Dwarf:
    """Read one directive; the current token is `@@`. The grammar is that of ptxas, which reads it as tokens, not as a line.
    `opened`: a section was opened before; data without one makes ptxas crash.
    """
    start = lx.start
    head = _HEAD.match(lx.text, start)
    if head is None:
        raise lx.refuse("`@@` is not a directive", hint="debug data is `@@DWARF` with .section, .byte, .4byte or .quad")
    kind: Literal["section", "byte", "4byte", "quad"] = head["kind"]  # type: ignore[assignment]
    lx.seek(head.end())
    if kind != "section" and not opened:
        raise lx.refuse(
            f"`@@DWARF .{kind}` before any section", start, 'write `@@DWARF .section .debug_info, "", @progbits` first'
        )
    arguments = _section(lx) if kind == "section" else _data(lx, kind)
    return Dwarf(kind, arguments, lx.span(start))


def _section(lx: Lexer) -> list[str]:
    """Read `.debug_info, "", @progbits`."""
    if lx.kind != "dot":
        raise lx.refuse(f"expected the name of a section, found {lx.shown()}")
    name = lx.advance()
    lx.expect(",", "after the name of the section")
    flags = parse_string(lx, "the flags of the section")
    lx.expect(",", "after the flags of the section")
    lx.expect("@", "before the type of the section", "write `@progbits`")
    return [name, f'"{flags}"', "@" + lx.word("the type of the section")]


def _data(lx: Lexer, kind: str) -> list[str]:
    """Read a list of constants, or one label or section."""
    if lx.kind in ("word", "dot"):
        return [lx.advance()]
    out: list[str] = []
    while True:
        start, text = lx.start, lx.value
        if lx.integer("a constant, a label or a section") >> _BITS[kind]:
            raise lx.refuse(f"the constant `{text}` does not fit .{kind}", start)
        out.append(text)
        if not lx.take(","):
            return out
