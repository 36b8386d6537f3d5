"""Text to words: find the form whose text it is, and put the bits together."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.control import CONTROL_MASK, NO_CONTROL
from warpsmith.assembly.sass.decode import Decoder
from warpsmith.assembly.sass.match import Matcher
from warpsmith.base.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warpsmith.assembly.sass.row import Row
    from warpsmith.assembly.sass.table import Table

__all__ = ["Encoder", "mnemonic_of", "normal"]

_REUSE = 7 << 122
_TEXT = (1 << 105) - 1


def normal(text: str) -> str:
    """Return a text without what carries no meaning: blanks around it and before commas, a closing semicolon, doubled
    blanks."""
    text = text.strip().removesuffix(";").strip()
    text = re.sub(r"\s*,\s*", ", ", re.sub(r"\s+", " ", text))
    return re.sub(r"\{[^}]*\}", lambda m: m[0].replace(" ", ""), text)


def mnemonic_of(text: str) -> str:
    """Return the mnemonic without modifiers: `IMAD` of `@!P0 IMAD.MOV.U32 R1, RZ, RZ, R2`."""
    m = re.match(r"(?:@!?\w+ +)?([A-Za-z_0-9]+)", text)
    return m[1] if m else ""


@final
class Encoder:
    """Encodes texts of one table."""

    def __init__(self, table: Table, decoder: Decoder | None = None) -> None:
        self.table = table
        self.decoder = decoder or Decoder(table)
        self._by_mnemonic: dict[str, list[Row]] = {}
        for row in table.rows:
            for word in row.notes.get("mnemonic", "").split("/"):
                self._by_mnemonic.setdefault(word, []).append(row)
        self._matchers: dict[int, Matcher] = {}

    def word(self, text: str, *, control: int | None = None, address: int = 0, labels: Mapping[str, int] | None = None) -> int:
        """Return the word of a text; `control` are bits 105–124 in place (`Control.bits()`), else those of `NO_CONTROL`.

        `.reuse` in the text sets the reuse bits, which `control` must not contradict. Raises `InputError`, naming the
        nearest known
        forms, for a text that the table does not know.
        """
        wanted = normal(text)
        # the disassembler writes a blank of its own after some numbers
        tries = dict.fromkeys((wanted, re.sub(r"([+-](?:INF|QNAN|SNAN)|-0\.0)(?=,|$)", r"\1 ", wanted)))
        for row in self._by_mnemonic.get(mnemonic_of(wanted), ()):
            matcher = self._matchers.get(id(row))
            if matcher is None:
                matcher = self._matchers[id(row)] = Matcher(row)
            for attempt in tries:
                for word in matcher.words(attempt, address, labels or {}):
                    form = self.decoder.form(word & ~CONTROL_MASK | NO_CONTROL | word & _REUSE)
                    if form is not None and form.row is row and form.template == row.template(word):
                        return _with_control(row, word, control, text)
        raise InputError(self._refusal(wanted))

    def _refusal(self, text: str) -> str:
        name = mnemonic_of(text)
        rows = self._by_mnemonic.get(name)
        if not rows:
            near = get_close_matches(name, [m for m in self._by_mnemonic if m], n=4, cutoff=0.5)
            return f"{text!r}: {self.table.arch} has no instruction {name!r}" + (
                f"; near it: {', '.join(near)}" if near else ""
            )
        examples = dict.fromkeys(x for row in rows if (x := self.decoder.text(Matcher(row).default | NO_CONTROL)))
        near = get_close_matches(text, list(examples), n=4, cutoff=0.0)
        return f"{text!r}: no form of {name} of {self.table.arch} reads like this; the nearest are\n" + "\n".join(
            f"  {n}" for n in near
        )


def _with_control(row: Row, word: int, control: int | None, text: str) -> int:
    """Put the control bits into a word, if they go with its form and its `.reuse`."""
    if control is None:
        return word & ~CONTROL_MASK | NO_CONTROL | word & _REUSE
    shown = control & _REUSE if control >> 109 & 1 else 0
    # a form prints the slots it has; the other reuse bits are in the control bits alone
    printed = sum(1 << low + i for s in row.selectors for low, width in s.bits if low >= 122 for i in range(width))
    if (word ^ shown) & printed:
        raise InputError(
            f"{text.strip()!r}: the text has .reuse for slots {(word & _REUSE) >> 122:03b}, the control bits for"
            f" {shown >> 122:03b}; write both alike"
        )
    stall, steady, reuse = control >> 105 & 15, control >> 109 & 1, control >> 122 & 7
    if "issues" in row.notes and not int(row.notes["issues"], 16) >> (reuse << 5 | steady << 4 | stall) & 1:
        raise InputError(
            f"{text.strip()!r}: {row.name} cannot be issued with stall {stall}, yield {1 - steady} and reuse {reuse:03b}"
            " together"
        )
    for name, low in (("write", 110), ("read", 113)):
        number = control >> low & 7
        if number != 7 and name in row.notes and not int(row.notes[name], 16) >> number & 1:
            raise InputError(f"{text.strip()!r}: {row.name} does not take {name} scoreboard {number}")
    return word & _TEXT | control & CONTROL_MASK
