"""Cut a text into what is the same in many instructions and the numbers that differ: `FFMA R`, `1`, `, R`, `2`, `, -`, `0.5`.

Where a number is cut only decides how well texts share work; a number that is part of a word, as in `.64`, is looked at when
the text is matched.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SIGNS", "Lexed", "mnemonic_of", "normal", "split"]

SIGNS = "+-"

split: Callable[[str], list[str]] = re.compile(
    r"([0-9ZTIQS](?:"
    r"(?<=[0-9])(?:(?<![\w.?].)(?:(?<=0)[xX][0-9a-fA-F]+|[0-9]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)(?!\w)|[0-9]*)"
    r"|(?<=RZ)|(?<=PT)|(?<=[+-]I)NF|(?<=[+-][QS])NAN))"
).split
"""Return literal, number, literal, …, literal. Signs and the `R`, `UR`, `P`, `UP` of registers belong to the literals.

The pattern begins with a set of characters, by which the search skips quickly; what stood before is looked at behind it.
"""

_BLANKS = re.compile(r"\s+")
_COMMAS = re.compile(r" ?, ?")
_BRACES = re.compile(r"\{[^}]*\}")
_MNEMONIC = re.compile(r"(?:@!?\w+ +)?([A-Za-z_0-9]+)")


def normal(text: str) -> str:
    """Return a text without what carries no meaning: blanks around it and at commas, doubled ones, a closing semicolon."""
    text = _COMMAS.sub(", ", _BLANKS.sub(" ", text.strip().removesuffix(";").strip()))
    return _BRACES.sub(lambda m: m[0].replace(" ", ""), text)


def mnemonic_of(text: str) -> str:
    """Return the mnemonic without modifiers: `IMAD` of `@!P0 IMAD.MOV.U32 R1, RZ, RZ, R2`."""
    m = _MNEMONIC.match(text)
    return m[1] if m else ""


@final
class Lexed:
    """A text with the places of its numbers."""

    __slots__ = ("_next", "ends", "starts", "text", "tokens")

    def __init__(self, text: str) -> None:
        self.text = text
        parts = split(text)
        self.tokens = parts[1::2]
        self.starts: list[int] = []
        self.ends: list[int] = []
        at = 0
        self._next: list[int] = []
        """Position -> the first number that ends behind it."""
        for literal, number in zip(parts[::2], [*self.tokens, ""], strict=True):
            self._next += [len(self.starts)] * (len(literal) + len(number))
            at += len(literal)
            self.starts.append(at)
            at += len(number)
            self.ends.append(at)
        self._next.append(len(self.tokens))

    def slot(self, at: int) -> int | None:
        """Return the index of the number that starts at a position."""
        k = self._next[at]
        return k if self.starts[k] == at and k < len(self.tokens) else None
