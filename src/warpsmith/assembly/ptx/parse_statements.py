"""Bodies of functions (PTX ISA 4.3): instructions, labels, scopes and the directives between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.fast_instruction import read_loc, read_plain
from warpsmith.assembly.ptx.lexer import END, Refused
from warpsmith.assembly.ptx.parse_directives import (
    parse_loc,
    parse_pragma,
    parse_prototype,
    parse_targets,
    place_of,
)
from warpsmith.assembly.ptx.parse_operands import parse_operands
from warpsmith.assembly.ptx.parse_variables import LINKAGES, SPACES, parse_registers, parse_variable
from warpsmith.assembly.ptx.tree import Instruction, Label, Name, Scope, Statement
from warpsmith.base.errors import Problem
from warpsmith.base.source import Place, Span

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.lexer import Lexer
    from warpsmith.assembly.ptx.tree import Loc

__all__ = ["MOST_PROBLEMS", "BodyReader"]

MOST_PROBLEMS = 50
"""Reading stops after this many complaints."""
_DEEPEST_SCOPE = 64
_VARIABLE = SPACES | LINKAGES | {".align"}


@final
class BodyReader:
    """Reads bodies; keeps what spans statements: the file table, the current `.loc`, the problems found."""

    def __init__(self, lx: Lexer, files: dict[int, str], problems: list[Problem], *, plain: bool = True) -> None:
        self.lx = lx
        self.files = files
        self.problems = problems
        self.plain = plain
        """Whether common instructions take the short path; both give the same tree."""
        self.place: Place | None = None
        self._line = 1
        self._counted = 0

    def body(self, depth: int = 0) -> list[Statement]:
        """Read statements up to and with the closing `}`; the current token is the one after `{`."""
        lx, out = self.lx, list[Statement]()
        opened = lx.last - 1
        while True:
            if self.plain:
                self._plain_run(out)
            if lx.value == "}" and lx.kind == "punct":
                lx.advance()
                return out
            if lx.kind == END:
                where = Span(lx.source, opened, opened + 1)
                raise Refused(Problem("the text ends inside this `{`", where, "close it with `}`; the file may be truncated"))
            before = lx.start
            try:
                self._statement(out, depth)
            except Refused as refused:
                if lx.kind == END:
                    raise
                self.complain(refused.problem)
                self._resynchronise(before)

    def complain(self, problem: Problem) -> None:
        """Record a problem; give up after `MOST_PROBLEMS`."""
        self.problems.append(problem)
        if len(self.problems) >= MOST_PROBLEMS:
            raise TooMany

    def _resynchronise(self, before: int) -> None:
        """Go on after the next `;`, at a brace, or at the token found on a new line where a `;` was missing."""
        lx = self.lx
        if lx.start > before and lx.begins_line() and lx.kind in ("word", "dot", "op"):
            return
        while lx.kind != END and (lx.value not in ("{", "}") or lx.start == before):
            if lx.advance() == ";":
                return

    def _plain_run(self, out: list[Statement]) -> None:
        """Read as many plain instructions and `.loc` as follow each other."""
        lx = self.lx
        at = lx.start
        source, text = lx.source, lx.text
        place, append, plain = self.place, out.append, read_plain
        while True:
            while (found := plain(text, at)) is not None:
                instruction, start, at = found
                instruction.span = Span(source, start, at)
                instruction.place = place or self._place(start)
                append(instruction)
            if (located := read_loc(text, at)) is None:
                break
            loc, start, at = located
            loc.span = Span(source, start, at)
            place = self.place = self._located(loc)
            append(loc)
        if at != lx.start:
            lx.seek(at)

    def _located(self, loc: Loc) -> Place | None:
        """The place a `.loc` names; line 0 is code that stands for no line (DWARF 6.2.2), and stays with the one before."""
        return place_of(loc, self.files) if loc.line else self.place

    def _place(self, start: int) -> Place:
        """The PTX line of an offset, counted on from the last one asked for."""
        text = self.lx.text
        if start < self._counted:
            self._line, self._counted = 1, 0
        self._line += text.count("\n", self._counted, start)
        self._counted = start
        return Place(self.lx.source.name, self._line)

    def _statement(self, out: list[Statement], depth: int) -> None:
        lx = self.lx
        if lx.kind == "dot":
            self._directive(out)
        elif lx.kind == "word":
            start = lx.start
            word = lx.advance()
            if lx.value == ":":
                lx.advance()
                out.append(Label(word, lx.span(start)))
            else:
                out.append(self._instruction(word, start, None))
        elif lx.value == "@" and lx.kind == "op":
            out.append(self._guarded())
        elif lx.value == "{" and lx.kind == "punct":
            start = lx.start
            if depth >= _DEEPEST_SCOPE:
                raise lx.refuse(f"scopes nested deeper than {_DEEPEST_SCOPE} levels")
            lx.advance()
            scope = Scope(self.body(depth + 1))
            scope.span = lx.span(start)
            out.append(scope)
        else:
            raise lx.refuse(f"expected an instruction, a label or a directive, found {lx.shown()}")

    def _guarded(self) -> Instruction:
        lx = self.lx
        start = lx.start
        lx.advance()
        negated = lx.take("!")
        begin = lx.start
        predicate = Name(lx.word("a predicate register after `@`"), negated, span=lx.span(begin))
        return self._instruction(lx.word("an instruction after the guard"), start, predicate)

    def _instruction(self, mnemonic: str, start: int, predicate: Name | None) -> Instruction:
        lx = self.lx
        while lx.kind == "dot":
            mnemonic += lx.advance()
        opcode = mnemonic.partition(".")[0]
        operands = parse_operands(lx, call=opcode == "call")
        lx.expect(";", f"after `{mnemonic}`", "operands are separated by commas, the instruction ends with `;`")
        return Instruction(mnemonic, operands, predicate, lx.span(start), self.place or self._place(start))

    def _directive(self, out: list[Statement]) -> None:
        lx = self.lx
        word, start = lx.value, lx.start
        if word == ".loc":
            loc = parse_loc(lx)
            self.place = self._located(loc)
            out.append(loc)
        elif word == ".reg":
            lx.advance()
            declaration = parse_registers(lx)
            lx.expect(";", "after the registers")
            declaration.span = lx.span(start)
            out.append(declaration)
        elif word in _VARIABLE:
            variable = parse_variable(lx)
            lx.expect(";", f"after the declaration of `{variable.name}`")
            out.append(variable)
        elif word == ".pragma":
            out.append(parse_pragma(lx))
        elif word in (".branchtargets", ".calltargets"):
            out.append(parse_targets(lx, "branchtargets" if word == ".branchtargets" else "calltargets"))
        elif word == ".callprototype":
            out.append(parse_prototype(lx))
        elif word == ".file":
            raise lx.refuse("`.file` belongs outside of functions")
        else:
            raise lx.refuse(f"`{word}` is not a directive of a function body")


@final
class TooMany(Exception):  # noqa: N818 - ends the reading, never leaves it
    """The limit of problems is reached."""
