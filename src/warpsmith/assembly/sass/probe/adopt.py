"""Check whether the forms of another architecture hold for this one, so that they need not be learned again."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from warpsmith.assembly.sass.probe.subject import FLIPPED, plain
from warpsmith.assembly.sass.row import scatter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.sass.probe.requests import Asking
    from warpsmith.assembly.sass.row import Row

__all__ = ["entries", "holds"]

_SAMPLES = 96


def holds(rows: Sequence[Row]) -> Asking[int]:
    """Return how many words the forms of a class were tried on, 0 if any differs.

    Tried are each form's own word, that word with every bit inverted, with every entry of every table, with extreme and
    random values
    of every field, and random combinations. Text must be the same; what the forms do not know must be unknown here too,
    and what they know legal.
    """
    words: list[int] = []
    strict: list[bool] = []
    draw = random.Random(rows[0].name)
    for row in rows:
        base = plain(int(row.notes["default"], 0))
        near = [base, *(base ^ 1 << b for b in FLIPPED), *entries(row, base)]
        words += near
        strict += [True] * len(near)
        mixed = [_mixed(row, base, draw) for _ in range(_SAMPLES)]
        words += mixed
        strict += [False] * len(mixed)
    texts: list[tuple[int, str] | None] = yield ("texts", words)
    classes: list[tuple[str, str] | None] = yield ("classes", words)
    for word, sure, text, name in zip(words, strict, texts, classes, strict=True):
        ours = name is not None and name[0] == rows[0].name
        row = next((r for r in rows if r.covers(word) and r.template(word) is not None), None)
        if row is None:
            if ours and text is not None:
                return 0
        elif not ours or text is None:
            if sure:
                return 0
        elif row.text(word, text[0]) != text[1]:
            return 0
    return len(words)


def entries(row: Row, base: int) -> list[int]:
    """Return words that use every entry of every table, and the extremes of every field."""
    out: list[int] = []
    for piece in row.pieces:
        if any(row.selectors[i].predicates for i in piece.selectors):
            continue
        for key in piece.table if piece.selectors else ():
            word = base
            for i, value in zip(piece.selectors, key, strict=True):
                bits = row.selectors[i].bits
                mask = scatter((1 << sum(w for _, w in bits)) - 1, bits)
                word = word & ~mask | scatter(value, bits)
            out.append(word)
    for f in row.fields:
        mask = scatter((1 << f.width) - 1, f.bits)
        top = 1 << (f.width - 1)
        out += [base & ~mask | scatter(v, f.bits) for v in {0, 1, 2, top, top - 1, 2 * top - 1, 2 * top - 2, 63, 64}]
    return [w for w in dict.fromkeys(out) if row.covers(w) and row.template(w) is not None]


def _mixed(row: Row, base: int, draw: random.Random) -> int:
    word = base
    for f in row.fields:
        if draw.random() < 0.5:
            word ^= scatter(draw.getrandbits(f.width), f.bits)
    for piece in row.pieces:
        if piece.selectors and draw.random() < 0.5 and not any(row.selectors[i].predicates for i in piece.selectors):
            key = draw.choice(list(piece.table))
            for i, value in zip(piece.selectors, key, strict=True):
                bits = row.selectors[i].bits
                mask = scatter((1 << sum(w for _, w in bits)) - 1, bits)
                word = word & ~mask | scatter(value, bits)
    return word
