"""Group moves that act together, and try every combination of a group: its table."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.probe.atoms import ask_atoms
from warpsmith.assembly.sass.probe.moves import Special, with_value
from warpsmith.assembly.sass.row import Selector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.sass.probe.requests import Asking
    from warpsmith.assembly.sass.probe.subject import Effect, Subject

__all__ = ["Choice", "Part", "enumerate_parts", "word_of"]


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that varies: a bit, or which special values a field has."""

    bit: int = -1
    specials: tuple[Special, ...] = ()

    @property
    def count(self) -> int:
        """How many values it takes."""
        return 2 if self.bit >= 0 else len(self.specials) + 1

    def put(self, s: Subject, word: int, value: int) -> int:
        """Return the word with this choice made; 0 leaves it as in the base (for a bit: inverted or not)."""
        if self.bit >= 0:
            return word ^ value << self.bit
        if not value:
            return word
        special = self.specials[value - 1]
        return with_value(word, s.fields[special.field][0], special.example)

    def selector(self, s: Subject) -> Selector:
        """Return what reads the choice off a word."""
        if self.bit >= 0:
            return Selector(((self.bit, 1),))
        return Selector(s.fields[self.specials[0].field][0].bits, tuple(x.predicate for x in self.specials))

    def read(self, s: Subject, value: int) -> int:
        """Return what the selector says for a value of the choice."""
        return value ^ (s.base >> self.bit & 1) if self.bit >= 0 else value


@final
@dataclass(slots=True)
class Part:
    """Choices that act together and what each combination does to the base text."""

    choices: tuple[Choice, ...]
    effects: dict[tuple[int, ...], Effect] = field(default_factory=dict[tuple[int, ...], "Effect"])

    @property
    def size(self) -> int:
        """Number of combinations."""
        total = 1
        for c in self.choices:
            total *= c.count
        return total


def word_of(s: Subject, part: Part, values: Sequence[int], word: int) -> int:
    """Return a word with the part's choices made."""
    for choice, value in zip(part.choices, values, strict=True):
        word = choice.put(s, word, value)
    return word


def enumerate_parts(s: Subject, parts: Sequence[Part]) -> Asking[None]:
    """Fill the tables of parts that have none."""
    todo = [(p, values) for p in parts if not p.effects for values in product(*[range(c.count) for c in p.choices])]
    words = [word_of(s, p, values, s.base) for p, values in todo]
    effects = yield from ask_atoms(s, words)
    same = yield from s.ask_same(words)
    for (part, values), effect, ours in zip(todo, effects, same, strict=True):
        part.effects[values] = effect if ours else None
