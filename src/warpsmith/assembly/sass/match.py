"""Match a text against the pieces of a form: the inverse of printing.

A match is worked out once for all texts that differ in the numbers of their operands only: it says which number goes to which
field, and which bits the words around the numbers stand for.
"""

from __future__ import annotations

from itertools import islice
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.control import CONTROL_MASK, NO_CONTROL
from warpsmith.assembly.sass.floats import FLOAT_KINDS
from warpsmith.assembly.sass.lex import SIGNS, split
from warpsmith.assembly.sass.row import SelectorMemory, gather, scatter
from warpsmith.assembly.sass.token_bits import REGISTERS, FieldBits, field_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from warpsmith.assembly.sass.decode import Decoder, Form
    from warpsmith.assembly.sass.lex import Lexed
    from warpsmith.assembly.sass.row import Field, Piece, Row, Selector, Template

__all__ = ["Match", "Matcher", "Reading"]

Keys = tuple[tuple[int, ...], ...]
Hole = tuple[int, int, str]
"""Index of the field, of the number in the text, and the number's sign."""

_REUSE = 7 << 122
_SPECIAL = (0, 1, 2, 3, -1, -2)
_MANY = 1000


@final
class Matcher:
    """One form, prepared for matching."""

    __slots__ = ("default", "pieces", "predicates", "row")

    def __init__(self, row: Row) -> None:
        self.row = row
        self.default = int(row.notes.get("default", "0"), 0) & ~row.mask | row.value
        """What bits are that the text does not determine."""
        liked = [s.of(self.default) for s in row.selectors]
        self.predicates = {i: SelectorMemory(s) for i, s in enumerate(row.selectors) if s.predicates}
        self.pieces = [_Alternatives(piece, tuple([liked[i] for i in piece.selectors])) for piece in row.pieces]

    def matches(self, lexed: Lexed) -> Iterator[Match]:
        """Yield the ways in which a normal text, its numbers aside, is one of this form, longer words first."""
        for chosen, holes, words in self._walk(0, 0, lexed, (), (), ()):
            yield Match(self, chosen, holes, words)

    def _walk(
        self, number: int, at: int, lexed: Lexed, chosen: tuple[_Alike, ...], holes: tuple[Hole, ...], words: tuple[int, ...]
    ) -> Iterator[tuple[tuple[_Alike, ...], tuple[Hole, ...], tuple[int, ...]]]:
        if number == len(self.pieces):
            if at == len(lexed.text):
                yield chosen, holes, words
            return
        piece = self.pieces[number]
        for alike in piece.first.get(lexed.text[at : at + 1], piece.anywhere):
            found: list[Hole] = []
            cut: list[int] = []
            end = self._read(alike, lexed, at, found, cut)
            if end is not None:
                yield from self._walk(number + 1, end, lexed, (*chosen, alike), (*holes, *found), (*words, *cut))

    def _read(self, alike: _Alike, lexed: Lexed, at: int, found: list[Hole], cut: list[int]) -> int | None:
        """Match texts at a position; return where they end, put holes into `found`, numbers of words into `cut`."""
        text = lexed.text
        for part in alike.shape:
            if isinstance(part, str):
                if not text.startswith(part, at):
                    return None
                at += len(part)
                continue
            sign = ""
            kind = "" if part is None else self.row.fields[part].kind
            if kind in REGISTERS:
                if not text.startswith(kind, at):
                    return None
                at += len(kind)
            elif kind and text[at : at + 1] and text[at] in SIGNS:
                sign = text[at]
                at += 1
            slot = lexed.slot(at)
            if slot is None:
                return None
            at = lexed.ends[slot]
            if part is None:
                cut.append(slot)
                continue
            found.append((part, slot, sign))
            if kind in FLOAT_KINDS and text.startswith(" ", at):
                at += 1  # the disassembler writes a blank of its own behind `+INF` and the like
        return at


@final
class _Alike:
    """Texts of a piece that differ only in numbers: `@P0 `, `@P1 `, …"""

    __slots__ = ("numbers", "selectors", "shape", "texts")

    def __init__(self, shape: tuple[str | int | None, ...], selectors: tuple[int, ...]) -> None:
        self.shape = shape
        """Words, holes (index of the field), and None for the numbers in which the texts differ."""
        self.numbers = shape.count(None)
        self.selectors = selectors
        self.texts: dict[tuple[str, ...], tuple[Template, Keys]] = {}
        """The numbers -> the text, and the keys of the table that give it, the preferred one first."""


@final
class _Alternatives:
    """The texts of a piece, by the character with which they begin."""

    __slots__ = ("anywhere", "first")

    def __init__(self, piece: Piece, liked: tuple[int, ...]) -> None:
        by_text: dict[Template, list[tuple[int, ...]]] = {}
        for key in sorted(piece.table, key=lambda k: (k != liked, k)):
            by_text.setdefault(piece.table[key], []).append(key)
        alike: dict[tuple[str | int | None, ...], _Alike] = {}
        for template in sorted(by_text, key=lambda t: -sum(len(p) if isinstance(p, str) else 3 for p in t)):
            shape, numbers = _cut(template)
            alike.setdefault(shape, _Alike(shape, piece.selectors)).texts[numbers] = (template, tuple(by_text[template]))
        begins = {shape: shape[0][0] if shape and isinstance(shape[0], str) else "" for shape in alike}
        self.anywhere = [a for shape, a in alike.items() if not begins[shape]]
        self.first = {c: [a for shape, a in alike.items() if begins[shape] in ("", c)] for c in set(begins.values()) - {""}}


def _cut(template: Template) -> tuple[tuple[str | int | None, ...], tuple[str, ...]]:
    """Return a template with None in the place of the numbers of its words, and those numbers."""
    shape: list[str | int | None] = []
    numbers: list[str] = []
    for part in template:
        if isinstance(part, int):
            shape.append(part)
            continue
        pieces = split(part)
        numbers += pieces[1::2]
        for i, piece in enumerate(pieces):
            if i % 2:
                shape.append(None)
            elif piece:
                shape.append(piece)
    return tuple(shape), tuple(numbers)


@final
class Match:
    """One way to read texts that differ in their numbers only."""

    __slots__ = ("_chosen", "_pick", "_read", "determined", "matcher", "rare", "relative", "same", "shown", "tests", "values")

    def __init__(self, matcher: Matcher, chosen: Sequence[_Alike], holes: Sequence[Hole], words: Sequence[int]) -> None:
        row = matcher.row
        self.matcher = matcher
        self._chosen = chosen
        self._pick: Callable[[Sequence[str]], str | tuple[str, ...]] = itemgetter(*words) if words else _nothing
        self._read: dict[str | tuple[str, ...], Reading | None] = {}
        self.values: list[tuple[int, FieldBits]] = []
        """Index of a number in the text, and what tells its bits."""
        self.relative: list[tuple[int, Field, str]] = []
        """The same for distances, whose bits depend on the address."""
        self.same: list[tuple[Hole, Hole]] = []
        first: dict[int, Hole] = {}
        for hole in holes:
            part, slot, sign = hole
            if first.setdefault(part, hole) is not hole:
                self.same.append((first[part], hole))
            elif row.fields[part].kind == "r":
                self.relative.append((slot, row.fields[part], sign))
            else:
                self.values.append((slot, FieldBits(row.fields[part], sign)))
        self.shown = sum(scatter(-1, row.fields[i].bits) for i in first)
        # predicates on fields that the text shows are settled by its numbers
        shown = self.shown
        self.determined = [i for i, m in matcher.predicates.items() if not m.mask & ~shown]
        self.rare = bool(self.relative or self.same)
        self.tests = [(matcher.predicates[i].mask, matcher.predicates[i]) for i in self.determined]

    def word(self, tokens: Sequence[str], address: int, decoder: Decoder) -> int | None:
        """Return the word of a text with these numbers, None if there is none; the decoder has the last word."""
        bits = 0
        for slot, values in self.values:
            placed = values[tokens[slot]]
            if placed is None:
                return None
            bits |= placed
        if self.rare:
            more = self._rare(tokens, address)
            if more is None:
                return None
            bits |= more
        reading = self.reading(tokens, decoder)
        if reading is None:
            return None
        bases = reading.bases(tuple([memory[bits & mask] for mask, memory in self.tests]) if self.tests else ())
        form, form_of = reading.form, decoder.form
        known = len(bases.kept)
        for base in bases.kept:
            if form_of(base | bits) is form:
                return base | bits
        for base in bases.after(known):
            if form_of(base | bits) is form:
                return base | bits
        return None

    def reading(self, tokens: Sequence[str], decoder: Decoder) -> Reading | None:
        """Return what the numbers choose that are part of words; None if there are no such words."""
        key = self._pick(tokens)
        try:
            return self._read[key]
        except KeyError:
            if len(self._read) > _MANY:
                self._read.clear()
            found = self._read[key] = self._choose((key,) if isinstance(key, str) else key, decoder.form_of)
            return found

    def tries(self, tokens: Sequence[str], address: int, decoder: Decoder) -> Iterator[int]:
        """Yield some words that have these numbers, whatever they read like: for a message."""
        reading = self.reading(tokens, decoder)
        bits = sum(values[tokens[slot]] or 0 for slot, values in self.values) | (self._rare(tokens, address) or 0)
        if reading is not None:
            for settled in ((memory[bits & mask] for mask, memory in self.tests), ()):
                yield from islice(reading.any_words(bits, tuple(settled)), 16)

    def _rare(self, tokens: Sequence[str], address: int) -> int | None:
        """Return the bits of distances; None if one does not fit, or if two texts of one field differ."""
        bits = 0
        for slot, f, sign in self.relative:
            value = field_bits(f, tokens[slot], sign, address)
            if value is None:
                return None
            bits |= scatter(value, f.bits)
        for one, other in self.same:
            if (one[2], tokens[one[1]]) != (other[2], tokens[other[1]]):
                return None
        return bits

    def _choose(self, numbers: tuple[str, ...], form_of: Callable[[Row, Template], Form]) -> Reading | None:
        template: list[str | int] = []
        keys: list[tuple[tuple[int, ...], Keys]] = []
        for alike in self._chosen:
            text = alike.texts.get(numbers[: alike.numbers])
            if text is None:
                return None
            numbers = numbers[alike.numbers :]
            template += text[0]
            if alike.selectors:
                keys.append((alike.selectors, text[1]))
        return Reading(self, form_of(self.matcher.row, tuple(template)), keys)


def _nothing(_: Sequence[str]) -> tuple[str, ...]:
    return ()


@final
class Reading:
    """A text of a form with its words chosen and the numbers of its operands open."""

    __slots__ = ("_keys", "_known", "form", "match")

    def __init__(self, match: Match, form: Form, keys: Sequence[tuple[tuple[int, ...], Keys]]) -> None:
        self.match = match
        self.form = form
        self._keys = keys
        self._known: dict[tuple[int, ...], _Lazy] = {}

    def bases(self, settled: tuple[int, ...]) -> _Lazy:
        """Return what the rest of the word may be, the likeliest first, for these values of the selectors of `Match.tests`."""
        bases = self._known.get(settled)
        if bases is None:
            bases = self._known[settled] = _Lazy(self._bases(settled))
        return bases

    def any_words(self, bits: int, settled: tuple[int, ...]) -> Iterator[int]:
        """Yield words with these operands, if `settled` is empty those of other predicates, too."""
        return (base | bits for base in self._bases(settled))

    def _bases(self, settled: tuple[int, ...]) -> Iterator[int]:
        matcher = self.match.matcher
        seen: set[int] = set()
        for picks in _assignments(self._keys, 0, dict(zip(self.match.determined, settled, strict=False))):
            base = _place(matcher.row, matcher.default, picks, self.match.shown)
            if base is not None:
                # stall 1, no yield: the reuse bits are then what the text shows of them
                base = base & ~CONTROL_MASK | NO_CONTROL | base & _REUSE
                if base not in seen:
                    seen.add(base)
                    yield base


class _Lazy:
    """What an iterator gives, kept; threads may ask for more of it at the same time."""

    __slots__ = ("_lock", "_more", "kept")

    def __init__(self, more: Iterator[int]) -> None:
        self.kept: list[int] = []
        self._more = more
        self._lock = Lock()

    def after(self, at: int) -> Iterator[int]:
        """Yield the items from number `at` on."""
        while True:
            while at >= len(self.kept):
                with self._lock:
                    if at >= len(self.kept):
                        item = next(self._more, None)
                        if item is None:
                            return
                        self.kept.append(item)
            yield self.kept[at]
            at += 1


def _assignments(chosen: Sequence[tuple[tuple[int, ...], Keys]], at: int, picks: dict[int, int]) -> Iterator[dict[int, int]]:
    """Yield values for the selectors that give the chosen texts, preferred ones first."""
    if at == len(chosen):
        yield picks
        return
    selectors, keys = chosen[at]
    for key in keys:
        if all(picks.get(s, v) == v for s, v in zip(selectors, key, strict=True)):
            yield from _assignments(chosen, at + 1, {**picks, **dict(zip(selectors, key, strict=True))})


def _place(row: Row, default: int, picks: dict[int, int], shown: int) -> int | None:
    """Return a word whose selectors have these values as far as they lie outside `shown`, which is left 0."""
    word = default
    for index, value in picks.items():
        s = row.selectors[index]
        if not s.predicates:
            word ^= scatter(gather(word, s.bits) ^ value, s.bits)
        elif scatter(-1, s.bits) & ~shown and s.of(word) != value:
            hidden = _hidden(s, value)
            if hidden is None:
                return None
            word ^= scatter(gather(word, s.bits) ^ hidden, s.bits)
    return word & ~shown


def _hidden(s: Selector, value: int) -> int | None:
    """Return bits of a field for which its predicates give a value."""
    if value and s.predicates[value - 1][0] == "eq":
        return s.predicates[value - 1][1][0]
    width = sum(w for _, w in s.bits)
    tries = [*(n & ((1 << width) - 1) for n in _SPECIAL), *(1 << i for i in range(width)), *range(min(1 << width, 256))]
    return next((n for n in tries if s.of(scatter(n, s.bits)) == value), None)
