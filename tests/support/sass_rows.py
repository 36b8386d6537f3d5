"""Words drawn from the rows of instruction tables: keys kept, other bits random, with a liking for what prints specially."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from warpsmith.assembly.sass.control import NO_CONTROL
from warpsmith.assembly.sass.row import Field, Row, scatter, width_of

SHOWN = (1 << 105) - 1


def _put(word: int, value: int, bits: tuple[tuple[int, int], ...]) -> int:
    return word & ~scatter(-1, bits) | scatter(value, bits)


def _value(f: Field, draw: Random) -> int:
    w = f.width
    some = (draw.getrandbits(w), draw.getrandbits(w), (1 << w) - 1, 0, 1, 1 << draw.randrange(w), draw.getrandbits(min(w, 4)))
    return draw.choice(some)


def word_of(row: Row, draw: Random) -> int:
    """Return a word with the key of a row; control bits as in `NO_CONTROL`, reuse bits random."""
    word = draw.getrandbits(105)
    for f in row.fields:
        if draw.random() < 0.6:
            word = _put(word, _value(f, draw), f.bits)
    for s in row.selectors:
        if s.predicates and draw.random() < 0.3:
            name, args = draw.choice(s.predicates)
            word = _put(word, args[0] if name == "eq" else 1 << draw.randrange(width_of(s.bits)), s.bits)
    for piece in row.pieces:
        if piece.selectors and draw.random() < 0.8:  # values that the table has
            for i, value in zip(piece.selectors, draw.choice(list(piece.table)), strict=True):
                if not row.selectors[i].predicates:
                    word = _put(word, value, row.selectors[i].bits)
    return word & SHOWN & ~row.mask | row.value | NO_CONTROL | draw.choice((0, 0, 1, 2, 4, 7)) << 122


def words_of(rows: tuple[Row, ...], each: int, seed: int) -> Iterator[tuple[Row, int]]:
    """Yield `each` words for every row."""
    draw = Random(seed)
    for row in rows:
        for _ in range(each):
            yield row, word_of(row, draw)
