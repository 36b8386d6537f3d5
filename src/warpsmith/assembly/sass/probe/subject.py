"""One form under study: a word of an instruction class, and what the disassembler says of words near it."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.control import CONTROL_MASK, NO_CONTROL
from warpsmith.assembly.sass.probe.diff import Edit, Tokens, edits_of
from warpsmith.assembly.sass.tokens import RELATIVE, kind_of, tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.sass.probe.requests import Asking
    from warpsmith.assembly.sass.row import Field

__all__ = ["FLIPPED", "Effect", "Subject", "plain"]

FLIPPED = (*range(105), 122, 123, 124)
"""Bits that are looked at; 105–121 are scheduling and never shown, 125–127 are free."""

Effect = tuple[Edit, ...] | None
"""What an alteration did to the text; None where the word is illegal."""


def plain(word: int) -> int:
    """Return the word with control bits that every instruction accepts."""
    return word & ~CONTROL_MASK & ((1 << 125) - 1) | NO_CONTROL


@final
class Subject:
    """The word under study (`base`, `tokens`), what stays fixed, and what is known of its bits so far."""

    def __init__(self, name: str, base: int, fixed: int) -> None:
        self.name = name
        self.base = plain(base)
        self.fixed = fixed
        """Bits that this form does not vary, besides those found to belong to the key."""
        self.relative = False
        self.tokens: Tokens = ()
        self.atoms: Tokens = ()
        """The base's tokens with its fields marked; see `atoms.py`."""
        self.single: dict[int, Effect] = {}
        """Bit -> effect of inverting it; bits of the key are left out."""
        self.key = 0
        """Bits whose inversion makes another class, or no instruction, of the word."""
        self.others: dict[str, int] = {}
        """Class met on the way -> a word of it."""
        self.fields: list[tuple[Field, tuple[int, ...]]] = []
        """Field and the positions of its tokens."""
        self.probes = 0

    def ask_tokens(self, words: Sequence[int]) -> Asking[list[Tokens | None]]:
        """Ask for the tokens of words; None for illegal ones."""
        self.probes += len(words)
        answers: list[tuple[int, str] | None] = yield ("texts", list(words))
        return [None if a is None else self._tokens(*a) for a in answers]

    def ask_effects(self, words: Sequence[int]) -> Asking[list[Effect]]:
        """Ask for the effects of words compared with the base."""
        found = yield from self.ask_tokens(words)
        return [None if t is None else edits_of(self.tokens, t) for t in found]

    def ask_same(self, words: Sequence[int]) -> Asking[list[bool]]:
        """Ask whether words are of this class; others are remembered."""
        self.probes += len(words)
        answers: list[tuple[str, str] | None] = yield ("classes", list(words))
        out: list[bool] = []
        for word, answer in zip(words, answers, strict=True):
            if answer is not None and answer[0] != self.name:
                self.others.setdefault(answer[0], word)
            out.append(answer is not None and answer[0] == self.name)
        return out

    def settle(self) -> Asking[bool]:
        """Read the base's own text, at three addresses to see whether it depends on them; False if it has none."""
        self.relative = False
        found = yield from self.ask_tokens([self.base] * 3)
        if found[0] is None:
            return False
        if found[0] != found[1]:
            self.relative = True
            found = yield from self.ask_tokens([self.base] * 3)
        self.tokens = found[0] or ()
        return found[0] == found[1]

    def flip(self) -> Asking[None]:
        """Invert every bit once."""
        bits = [b for b in FLIPPED if not self.fixed >> b & 1]
        words = [self.base ^ 1 << b for b in bits]
        effects = yield from self.ask_effects(words)
        same = yield from self.ask_same(words)
        self.single = {}
        self.key = 0
        for bit, effect, ours in zip(bits, effects, same, strict=True):
            if ours:
                self.single[bit] = effect
            else:
                self.key |= 1 << bit

    def numeric(self) -> int:
        """Count the tokens of the base that are numbers."""
        return sum(1 for t in self.tokens if kind_of(t))

    def _tokens(self, address: int, text: str) -> Tokens:
        tokens = tuple(tokenize(text))
        if not self.relative:
            return tokens
        for i in reversed(range(len(tokens))):
            if kind_of(tokens[i]) == "x":
                return (*tokens[:i], f"{RELATIVE}{int(tokens[i], 16) - address:#x}", *tokens[i + 1 :])
        return tokens
