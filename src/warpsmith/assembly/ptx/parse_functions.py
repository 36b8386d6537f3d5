"""Functions (PTX ISA 11.2, 11.4): `.entry` and `.func`, their parameters, hints and bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.parse_directives import parse_directive, parse_pragma
from warpsmith.assembly.ptx.parse_variables import parse_attributes, parse_parameters
from warpsmith.assembly.ptx.tree import Function

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.lexer import Lexer
    from warpsmith.assembly.ptx.parse_statements import BodyReader

__all__ = ["parse_function"]


def parse_function(lx: Lexer, bodies: BodyReader, linkage: str, start: int) -> Function:
    """Read a function or its declaration, with the current token at `.entry` or `.func`."""
    function = Function("entry" if lx.advance() == ".entry" else "func", "", linkage=linkage)
    while lx.value == ".attribute":
        function.attributes += parse_attributes(lx)
    if lx.value == "(" and function.kind == "func":
        function.returns = parse_parameters(lx)
    function.name = lx.word(f"the name of the .{function.kind}")
    if lx.value == "(":
        function.parameters = parse_parameters(lx)
    while lx.kind == "dot":
        function.directives.append(parse_pragma(lx) if lx.value == ".pragma" else parse_directive(lx))
    if lx.take(";"):
        pass
    elif lx.value == "{":
        lx.advance()
        bodies.place = None
        function.body = bodies.body()
    else:
        raise lx.refuse(
            f"expected the body of `{function.name}`, found {lx.shown()}",
            hint="`{` opens a body, `;` ends a declaration",
        )
    function.span = lx.span(start)
    return function
