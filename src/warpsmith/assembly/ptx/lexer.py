"""Tokens of PTX text (PTX ISA 4.1-4.5): one regular expression, tokens as they are asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import Problem
from warpsmith.base.source import Span

if TYPE_CHECKING:
    from warpsmith.base.source import Source

__all__ = ["END", "SKIP", "WORD", "Lexer", "Refused", "int_value", "whole_number"]

SKIP = r"(?:[ \t\r\n\f\v]++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/|\#[^\n]*+)*+"
"""Blanks, comments, and lines of a preprocessor (`#line`), which ptxas passes over."""

WORD = r"(?:[A-Za-z_$][\w$]*+|%[\w$]++)"
"""An identifier; `_` alone is the sink."""

_TOKEN = re.compile(
    SKIP
    + r"""(?:
      (?P<word>   """ + WORD + r"""(?:(?:\.|::(?:[0-9]++:(?=[0-9]))?)[\w$]++)*+)
    | (?P<punct>  [,;{}()\[\]])
    | (?P<float>  0[fF][0-9a-fA-F]{8}(?![\w$]) | 0[dD][0-9a-fA-F]{16}(?![\w$])
                | (?:[0-9]++\.[0-9]*+ | \.[0-9]++ | [0-9]++(?=[eE][+-]?[0-9])) (?:[eE][+-]?[0-9]++)?+ (?![\w$]))
    | (?P<int>    (?:0[xX][0-9a-fA-F]++ | 0[bB][01]++ | 0[0-7]*+ | [1-9][0-9]*+) U?+ (?![\w$.]))
    | (?P<dot>    \.[A-Za-z_][\w$]*+(?:::(?:[0-9]++:(?=[0-9]))?[\w$]++)*+)
    | (?P<string> "(?:[^"\\\n]|\\.)*+")
    | (?P<op>     <<|>>|<=|>=|==|!=|&&|\|\||@@|/(?!\*)|[-+*%&^|~!<>?:=@.])
    | (?P<end>    \Z)
    | (?P<bad>    /\* | [0-9][\w$.]*+ | ["'] | [^ \t\r\n\f\v] )
    )""",
    re.VERBOSE,
)  # fmt: skip

_INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)U?")

END = "end"
_SHOWN = 24
_LONGEST = 66
"""Characters of the longest integer constant without leading zeros: `0b` and 64 bits."""


@final
class Refused(Exception):  # noqa: N818 - carries a Problem to the next place where reading can go on
    """Reading stops at this statement; the reader records `problem` and goes on at the next one."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@final
class Lexer:
    """A cursor over the tokens of a source. `kind`, `value`, `start`, `end` describe the current token."""

    __slots__ = ("end", "kind", "last", "source", "start", "text", "value")

    def __init__(self, source: Source, at: int = 0) -> None:
        self.source = source
        self.text = source.text
        self.last = at
        """End of the token before the current one."""
        self.seek(at)

    def seek(self, at: int) -> None:
        """Make the token at or after offset `at` the current one."""
        self.end = at
        self.advance()
        self.last = at

    def advance(self) -> str:
        """Step to the next token; return the value of the one left behind."""
        before = getattr(self, "value", "")
        self.last = self.end
        m = _TOKEN.match(self.text, self.end)
        assert m is not None  # `bad` and `end` take whatever nothing else takes
        kind = m.lastgroup
        assert kind is not None
        self.kind = kind
        self.value = m[kind]
        self.start, self.end = m.span(kind)
        return before

    def take(self, value: str) -> bool:
        """Step over the token if it is spelled `value`; say whether it was."""
        if self.value == value and self.kind != "string":
            self.advance()
            return True
        return False

    def expect(self, value: str, where: str, hint: str = "") -> None:
        """Step over `value`, or refuse with a message that names `where`."""
        if self.take(value):
            return
        message = f"expected `{value}` {where}, found {self.shown()}"
        if self.begins_line():
            raise Refused(Problem(message, Span(self.source, self.last, self.last), hint))
        raise self.refuse(message, hint=hint)

    def begins_line(self) -> bool:
        """Say whether the current token stands on a later line than the one before it."""
        return "\n" in self.text[self.last : self.start]

    def word(self, what: str) -> str:
        """Step over an identifier and return it; `what` names it in the message otherwise."""
        if self.kind != "word":
            raise self.refuse(f"expected {what}, found {self.shown()}")
        return self.advance()

    def integer(self, what: str) -> int:
        """Step over an integer constant and return its value."""
        if self.kind != "int":
            raise self.refuse(f"expected {what}, found {self.shown()}")
        return self.int_constant()

    def int_constant(self) -> int:
        """Step over the current token, an integer constant, and return its value; refuse one of more than 64 bits."""
        value = int_value(self.value)
        if value is None:
            raise self.refuse(f"the constant {self.shown()} does not fit 64 bits")
        self.advance()
        return value

    def shown(self) -> str:
        """The current token as a message quotes it."""
        if self.kind == END:
            return "the end of the text"
        if self.value == "/*":
            return "a comment that is never closed"
        if self.value == '"':
            return "a string that is never closed"
        value = self.value if len(self.value) <= _SHOWN else self.value[:_SHOWN] + "…"
        return f"`{value}`" if value.isprintable() else f"the character U+{ord(value[0]):04X}"

    def span(self, start: int) -> Span:
        """The span from offset `start` to the end of the last token stepped over."""
        return Span(self.source, start, max(self.last, start))

    def refuse(self, message: str, start: int | None = None, hint: str = "") -> Refused:
        """Build the exception that refuses the current token, or the text from `start` up to it."""
        if start is None:
            span = Span(self.source, self.start, max(self.end, self.start))
        else:
            span = Span(self.source, start, max(self.last, start))
        return Refused(Problem(message, span, hint))


def int_value(text: str) -> int | None:
    """Decode an integer constant (4.5.1): hexadecimal, octal, binary or decimal, with or without `U`; None over 64 bits."""
    digits = text.rstrip("U")
    if len(digits) > _LONGEST:
        digits = _without_zeros(digits)
        if len(digits) > _LONGEST:
            return None
    head = digits[:2].lower()
    if head == "0x":
        value = int(digits, 16)
    elif head == "0b":
        value = int(digits, 2)
    else:
        value = int(digits, 8 if digits[0] == "0" else 10)
    return value if value < 1 << 64 else None


def whole_number(text: str) -> int | None:
    """Return the value of a word that is an integer constant; None for any other word."""
    return int_value(text) if _INTEGER.fullmatch(text) else None


def _without_zeros(digits: str) -> str:
    head = digits[:2] if digits[:2].lower() in ("0x", "0b") else "0" if digits[0] == "0" else ""
    return head + (digits[len(head) :].lstrip("0") or "0")
