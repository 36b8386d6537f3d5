"""Find modifiers that do not go together: words that our table prints and the disassembler refuses.

Of a form, every two values of two modifiers are tried on a word where each alone is accepted. Then mixed words are tried: one
that is refused and has no known pair is reduced to the fewest modifiers that are refused together. What is found must be
refused among other modifiers, too, six times, or it is dropped: to refuse an instruction that exists is worse than to print one
that does not. Values of three and more modifiers that mixed words do not meet stay unknown.
"""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.probe.slots import default_word, find_slots, free_selectors, put, shuffle
from warpsmith.assembly.sass.row import gather, scatter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.sass.probe.oracle import Oracle
    from warpsmith.assembly.sass.row import Bits, Row

__all__ = ["Found", "find_refused"]

_LARGEST = 2048
"""Words that two modifiers may take."""
_MIXED = 96
_TRIALS = 6

Choice = tuple[tuple["Bits", int], ...]
"""Modifiers and their values."""


@final
class Found:
    """What is known of a form: `refused` as (mask, value); `tried` and `wrong` count fresh mixed words at the end."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.draw = Random(row.value + 1)
        self.base = default_word(row)
        slots = find_slots(row, self.draw)
        numbers = {f.bits for f in row.fields}
        self.modifiers = [b for b in free_selectors(row, slots) if b not in numbers and b != ((15, 1),)]
        self.choices: set[Choice] = set()
        self.refused: tuple[tuple[int, int], ...] = ()
        self.tried = self.wrong = 0

    def pairs(self) -> list[Choice]:
        """Return every two values of two modifiers that differ from the base."""
        values = {b: [v for v in range(1 << _width(b)) if v != gather(self.base, b)] for b in self.modifiers}
        return [
            ((a, x), (b, y))
            for a, b in combinations(self.modifiers, 2)
            if len(values[a]) * len(values[b]) <= _LARGEST
            for x in values[a]
            for y in values[b]
        ]

    def word(self, choice: Choice) -> int:
        """Return the base with a choice of modifiers."""
        word = self.base
        for bits, value in choice:
            word = put(word, bits, value)
        return word

    def printed(self, word: int) -> bool:
        """Say whether the table prints the word, refused combinations found so far aside."""
        return self.row.covers(word) and self.row.template(word) is not None

    def known(self, word: int) -> bool:
        """Say whether a combination found so far refuses the word."""
        return any(all(gather(word, b) == v for b, v in choice) for choice in self.choices)

    def mixed(self, count: int) -> list[int]:
        """Return words with modifiers at random that the table prints."""
        words = [shuffle(self.row, self.base, self.draw) for _ in range(count)]
        return [w for w in dict.fromkeys(words) if self.printed(w) and not self.known(w)]


def _width(bits: Bits) -> int:
    return sum(w for _, w in bits)


def find_refused(rows: Sequence[Row], oracle: Oracle) -> list[Found]:
    """Return what modifiers of the forms are refused together."""
    forms = [Found(row) for row in rows]
    singles = _legal(oracle, [(f, ((b, v),)) for f in forms for b in f.modifiers for v in range(1 << min(_width(b), 8))])
    asked = [
        (f, c) for f in forms for c in f.pairs() if all((id(f), (part,)) in singles for part in c) and f.printed(f.word(c))
    ]
    legal = _legal(oracle, asked)
    for f, choice in asked:
        if (id(f), choice) not in legal:
            f.choices.add(choice)
    _keep_certain(forms, oracle)
    for _ in range(2):
        _reduce(forms, oracle)
        _keep_certain(forms, oracle)
    for f in forms:
        f.refused = _merged(f.choices)
    fresh = [(f, w) for f in forms for w in f.mixed(_MIXED // 2)]
    for (f, _), text in zip(fresh, oracle.texts([w for _, w in fresh]), strict=True):
        f.tried += 1
        f.wrong += text is None
    return forms


def _legal(oracle: Oracle, asked: Sequence[tuple[Found, Choice]]) -> set[tuple[int, Choice]]:
    texts = oracle.texts([f.word(c) for f, c in asked])
    return {(id(f), c) for (f, c), text in zip(asked, texts, strict=True) if text is not None}


def _keep_certain(forms: Sequence[Found], oracle: Oracle) -> None:
    """Drop what is accepted among other modifiers."""
    asked: list[tuple[Found, Choice, int]] = []
    for f in forms:
        for choice in sorted(f.choices):
            for _ in range(_TRIALS):
                word = shuffle(f.row, f.base, f.draw)
                for bits, value in choice:
                    word = put(word, bits, value)
                asked.append((f, choice, word))
    for (f, choice, _), text in zip(asked, oracle.texts([w for _, _, w in asked]), strict=True):
        if text is not None:
            f.choices.discard(choice)


def _reduce(forms: Sequence[Found], oracle: Oracle) -> None:
    """Try mixed words; put modifiers of those that are refused back, one after the other, as long as they stay refused."""
    mixed = [(f, w) for f in forms for w in f.mixed(_MIXED)]
    texts = oracle.texts([w for _, w in mixed])
    left = [(f, w) for (f, w), text in zip(mixed, texts, strict=True) if text is None]
    for step in range(max((len(f.modifiers) for f, _ in left), default=0)):
        tries = [(f, _plain(f, w, step)) for f, w in left]
        answers = oracle.texts([w for _, w in tries])
        left = [less if text is None else now for now, less, text in zip(left, tries, answers, strict=True)]
    for f, word in left:
        choice = tuple((b, gather(word, b)) for b in f.modifiers if gather(word, b) != gather(f.base, b))
        if len(choice) > 1 and f.printed(word):
            f.choices.add(choice)


def _plain(f: Found, word: int, step: int) -> int:
    """Return the word with one of its modifiers as the base has it."""
    if step >= len(f.modifiers):
        return word
    bits = f.modifiers[step]
    return put(word, bits, gather(f.base, bits))


def _merged(choices: set[Choice]) -> tuple[tuple[int, int], ...]:
    """Return the choices as (mask, value), two that differ in one bit as one without it, repeatedly."""
    cubes = {(sum(scatter(-1, b) for b, _ in c), sum(scatter(v, b) for b, v in c)) for c in choices}
    out: set[tuple[int, int]] = set()
    while cubes:
        merged: set[tuple[int, int]] = set()
        used: set[tuple[int, int]] = set()
        for mask, value in cubes:
            for low in range(105):
                bit = 1 << low
                if mask & bit and (mask, value ^ bit) in cubes:
                    used.add((mask, value))
                    merged.add((mask & ~bit, value & ~bit))
        out |= cubes - used
        cubes = merged
    return _without_doubles(out, choices)


def _without_doubles(cubes: set[tuple[int, int]], choices: set[Choice]) -> tuple[tuple[int, int], ...]:
    """Return enough of the cubes to cover all choices, wide ones first."""
    points = {(sum(scatter(-1, b) for b, _ in c), sum(scatter(v, b) for b, v in c)) for c in choices}
    kept: list[tuple[int, int]] = []
    for mask, value in sorted(cubes, key=lambda c: (c[0].bit_count(), c)):
        covered = {p for p in points if not mask & ~p[0] and p[1] & mask == value}
        if covered:
            points -= covered
            kept.append((mask, value))
    return tuple(kept)
