"""Text to words: find the form whose text it is, and put the bits together."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.control import CONTROL_MASK, NO_CONTROL
from warpsmith.assembly.sass.decode import Decoder
from warpsmith.assembly.sass.lex import Lexed, mnemonic_of, normal, split
from warpsmith.assembly.sass.match import Matcher
from warpsmith.assembly.sass.refuse import refusal
from warpsmith.base.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from warpsmith.assembly.sass.match import Match
    from warpsmith.assembly.sass.row import Row
    from warpsmith.assembly.sass.table import Table

__all__ = ["Encoder", "mnemonic_of"]

_REUSE = 7 << 122
_TEXT = (1 << 105) - 1
_MANY = 10_000
"""Texts of this many kinds are remembered; then all are forgotten."""

_REGISTER = re.compile(r"U?R(?:\d+|Z)|U?P(?:\d+|T)")
_LABEL = re.compile(r"`\(([^)]*)\)|(?<![\w.$@])[.A-Za-z_$][\w.$]*")


@final
class Encoder:
    """Encodes texts of one table. What forms a text may have is worked out once for all texts that differ in numbers only."""

    def __init__(self, table: Table, decoder: Decoder | None = None) -> None:
        self.table = table
        self.decoder = decoder or Decoder(table)
        self._by_mnemonic: dict[str, list[Row]] = {}
        for row in table.rows:
            for word in row.notes.get("mnemonic", "").split("/"):
                self._by_mnemonic.setdefault(word, []).append(row)
        self._alike: dict[str, list[Row]] = {}
        for row in table.rows:
            for word in dict.fromkeys(map(_numberless, row.notes.get("mnemonic", "").split("/"))):
                self._alike.setdefault(word, []).append(row)
        self._matchers: dict[int, Matcher] = {}
        self._matches: dict[tuple[str, ...], list[Match]] = {}
        self._rules: dict[int, tuple[int, int | None, int | None, int | None]] = {}

    def word(self, text: str, *, control: int | None = None, address: int = 0, labels: Mapping[str, int] | None = None) -> int:
        """Return the word of a text; `control` are bits 105–124 in place (`Control.bits()`), else those of `NO_CONTROL`.

        `.reuse` in the text sets the reuse bits, which `control` must not contradict. Raises `InputError`, naming the
        nearest known forms, for a text that the table does not know.
        """
        wanted = _without_labels(normal(text), labels) if labels else text
        found = self._find(wanted, address)
        if found is None:
            raise InputError(self._refusal(text, normal(wanted), address, labels))
        row, word = found
        return self._with_control(row, word, control, text)

    def _find(self, text: str, address: int) -> tuple[Row, int] | None:
        parts = split(text)
        tokens = parts[1::2]
        matches = self._matches.get(tuple(parts[::2]))
        if matches is None:
            matches, tokens = self._learn(text, parts)
        for match in matches:
            word = match.word(tokens, address, self.decoder)
            if word is not None:
                return match.matcher.row, word
        return None

    def _learn(self, text: str, parts: list[str]) -> tuple[list[Match], list[str]]:
        """Return the ways to read texts that differ from this one in numbers only, and the numbers; remember the ways."""
        wanted = normal(text)
        lexed = Lexed(wanted)
        matches = [
            match
            for row in self._alike.get(_numberless(mnemonic_of(wanted)), ())
            for match in self._matcher(row).matches(lexed)
        ]
        if lexed.tokens == parts[1::2]:  # else blanks cut numbers otherwise
            if len(self._matches) > _MANY:
                self._matches.clear()
            self._matches[tuple(parts[::2])] = matches
        return matches, lexed.tokens

    def _matcher(self, row: Row) -> Matcher:
        found = self._matchers.get(id(row))
        if found is None:
            found = self._matchers[id(row)] = Matcher(row)
        return found

    def _refusal(self, text: str, wanted: str, address: int, labels: Mapping[str, int] | None) -> str:
        found = [m[1] or m[0] for m in _LABEL.finditer(wanted.partition(" ")[2])]
        names = [name for name in found if not _REGISTER.fullmatch(name.partition(".")[0])]
        if names and self.reads(_without_labels(wanted, dict.fromkeys(names, address)), address):
            near = get_close_matches(names[-1], list(labels or ()), n=4, cutoff=0.0)
            what = (
                "; `assemble` reads listings with labels" if labels is None else f"; near it: {', '.join(near)}" if near else ""
            )
            return f"{normal(text)!r}: there is no label {names[-1]!r}{what}"
        return refusal(wanted, address, self)

    def rows(self, mnemonic: str) -> Sequence[Row]:
        """Return the rows that have a mnemonic."""
        return self._by_mnemonic.get(mnemonic, ())

    def mnemonics(self) -> Iterable[str]:
        """Return all mnemonics."""
        return self._by_mnemonic

    def matches(self, text: str) -> tuple[Sequence[Match], Sequence[str]]:
        """Return the ways to read texts that differ from this one in numbers only, and its numbers."""
        return self._learn(text, split(text))

    def reads(self, text: str, address: int) -> bool:
        """Say whether a text has a word."""
        return self._find(text, address) is not None

    def _with_control(self, row: Row, word: int, control: int | None, text: str) -> int:
        """Put the control bits into a word, if they go with its form and its `.reuse`."""
        if control is None:
            return word & ~CONTROL_MASK | NO_CONTROL | word & _REUSE
        rules = self._rules.get(id(row))
        if rules is None:
            rules = self._rules[id(row)] = _rules(row)
        printed, issues, write, read = rules
        shown = control & _REUSE if control >> 109 & 1 else 0
        if (word ^ shown) & printed:
            raise InputError(
                f"{text.strip()!r}: the text has .reuse for slots {(word & _REUSE) >> 122:03b}, the control bits for"
                f" {shown >> 122:03b}; write both alike"
            )
        stall, steady, reuse = control >> 105 & 15, control >> 109 & 1, control >> 122 & 7
        issue = reuse << 5 | steady << 4 | stall  # 0, the code of padding, goes with every class
        if issue and issues is not None and not issues >> issue & 1:
            raise InputError(
                f"{text.strip()!r}: {row.name} cannot be issued with stall {stall}, yield {1 - steady} and reuse {reuse:03b}"
                " together"
            )
        for name, low, accepted in (("write", 110, write), ("read", 113, read)):
            number = control >> low & 7
            if number != 7 and accepted is not None and not accepted >> number & 1:
                raise InputError(f"{text.strip()!r}: {row.name} does not take {name} scoreboard {number}")
        return word & _TEXT | control & CONTROL_MASK


def _numberless(mnemonic: str) -> str:
    return "#".join(split(mnemonic)[::2])


def _rules(row: Row) -> tuple[int, int | None, int | None, int | None]:
    """Return the reuse bits that a form prints (others are in the control bits alone), and the accepted issue codes, write
    and read scoreboards."""
    printed = sum(1 << low + i for s in row.selectors for low, width in s.bits if low >= 122 for i in range(width))
    number = lambda name: int(row.notes[name], 16) if name in row.notes else None  # noqa: E731
    return printed, number("issues"), number("write"), number("read")


def _without_labels(text: str, labels: Mapping[str, int]) -> str:
    """Put addresses in the place of labels, the mnemonic left alone."""
    head, blank, rest = text.partition(" ")
    if head.startswith("@"):
        name, blank2, rest = rest.partition(" ")
        head = f"{head}{blank}{name}"
        blank = blank2

    def address(m: re.Match[str]) -> str:
        name = m[0] if m[1] is None else m[1]
        return f"{labels[name]:#x}" if name in labels and not _REGISTER.fullmatch(name) else m[0]

    return head + blank + _LABEL.sub(address, rest)
