"""Directives (PTX ISA 11): `.loc`, `.file`, `.section`, `.pragma`, target lists, prototypes, performance hints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.parse_variables import parse_parameters
from warpsmith.assembly.ptx.tree import (
    BranchTargets,
    CallPrototype,
    Directive,
    FileDirective,
    Loc,
    Parameter,
    Pragma,
    Section,
)
from warpsmith.base.source import Place

if TYPE_CHECKING:
    from typing import Literal

    from warpsmith.assembly.ptx.lexer import Lexer

__all__ = [
    "file_table",
    "parse_directive",
    "parse_file_directive",
    "parse_loc",
    "parse_pragma",
    "parse_prototype",
    "parse_section",
    "parse_targets",
]

_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d+)[ \t]+"((?:[^"\\\n]|\\.)*)"', re.MULTILINE)
_SECTION = re.compile(r"(?:[^}/]++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/|/)*+\}")
"""Data of a section up to its brace; comments may hold braces."""


def file_table(text: str) -> dict[int, str]:
    """Return the names of all `.file` directives of `text`: compilers write them before or after their use."""
    if ".file" not in text:
        return {}
    return {int(number): name for number, name in _FILE.findall(text)}


def parse_loc(lx: Lexer) -> Loc:
    """Read `.loc file line column {, function_name label, inlined_at file line column}` (11.5.3)."""
    start = lx.start
    lx.advance()
    loc = Loc(lx.integer("a file number"), lx.integer("a line"), lx.integer("a column"))
    while lx.take(","):
        word = lx.word("`function_name` or `inlined_at`")
        if word == "function_name":
            loc.function_name = lx.word("a label of `.debug_str`")
            while lx.value in ("+", "-"):
                loc.function_name += lx.advance() + str(lx.integer("an offset"))
        elif word == "inlined_at":
            loc.inlined_at = (lx.integer("a file number"), lx.integer("a line"), lx.integer("a column"))
        else:
            raise lx.refuse(f"`.loc` has no attribute `{word}`", hint="known are `function_name` and `inlined_at`")
    loc.span = lx.span(start)
    return loc


def place_of(loc: Loc, files: dict[int, str]) -> Place:
    """Return the place a `.loc` names."""
    return Place(files.get(loc.file, f"<file {loc.file}>"), loc.line, loc.column)


def parse_file_directive(lx: Lexer) -> FileDirective:
    """Read `.file number "name" {, timestamp, size}` (11.5.2)."""
    start = lx.start
    lx.advance()
    index = lx.integer("a file number")
    directive = FileDirective(index, parse_string(lx, "a file name"))
    if lx.take(","):
        directive.timestamp = lx.integer("a time stamp")
        lx.expect(",", "between time stamp and size")
        directive.size = lx.integer("a file size")
    directive.span = lx.span(start)
    return directive


def parse_string(lx: Lexer, what: str) -> str:
    """Step over a string; return what stands between the quotes, escapes as written."""
    if lx.kind != "string":
        raise lx.refuse(f"expected {what} in double quotes, found {lx.shown()}")
    return lx.advance()[1:-1]


def parse_section(lx: Lexer) -> Section:
    """Read `.section .name { … }` and keep the text between the braces as written (11.5.4)."""
    start = lx.start
    lx.advance()
    if lx.kind not in ("dot", "word"):
        raise lx.refuse(f"expected the name of a section, found {lx.shown()}")
    name = lx.advance()
    if lx.value != "{":
        raise lx.refuse(f"expected `{{` before the data of section {name}, found {lx.shown()}")
    begin = lx.end
    inside = _SECTION.match(lx.text, begin)
    if inside is None:
        raise lx.refuse(f"section {name} is never closed with `}}`")
    text = lx.text[begin : inside.end() - 1]
    lx.seek(inside.end())
    return Section(name, text, lx.span(start))


def parse_pragma(lx: Lexer) -> Pragma:
    """Read `.pragma "…", "…";` with its semicolon (11.4.5)."""
    start = lx.start
    lx.advance()
    strings = [parse_string(lx, "a pragma")]
    while lx.take(","):
        strings.append(parse_string(lx, "a pragma"))
    lx.expect(";", "after `.pragma`")
    return Pragma(strings, lx.span(start))


def parse_targets(lx: Lexer, kind: Literal["branchtargets", "calltargets"]) -> BranchTargets:
    """Read `.branchtargets a, b;` or `.calltargets f, g;` (11.3)."""
    start = lx.start
    lx.advance()
    targets = [lx.word("a label" if kind == "branchtargets" else "a function")]
    while lx.take(","):
        targets.append(lx.word("a label" if kind == "branchtargets" else "a function"))
    lx.expect(";", f"after `.{kind}`")
    return BranchTargets(kind, targets, lx.span(start))


def parse_prototype(lx: Lexer) -> CallPrototype:
    """Read `.callprototype (ret) _ (params) .noreturn;` (11.3.3)."""
    start = lx.start
    lx.advance()
    returns: list[Parameter] = parse_parameters(lx) if lx.value == "(" else []
    prototype = CallPrototype(returns, [], lx.word("`_`, the place of the function's name"))
    if lx.value == "(":
        prototype.parameters = parse_parameters(lx)
    while lx.kind == "dot":
        prototype.directives.append(parse_directive(lx))
    lx.expect(";", "after the prototype")
    prototype.span = lx.span(start)
    return prototype


def parse_directive(lx: Lexer) -> Directive:
    """Read any other directive and its comma-separated words: `.maxntid 128, 1`, `.alias a, b`; a `;` stays."""
    start = lx.start
    directive = Directive(lx.advance()[1:])
    while lx.kind in ("int", "word", "string", "float"):
        directive.arguments.append(lx.advance())
        if not lx.take(","):
            break
    directive.span = lx.span(start)
    return directive
