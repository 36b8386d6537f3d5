"""Order the forms of an architecture so that the first that covers a word is the right one, and fill in what encoding needs."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from warpsmith.assembly.sass.lex import mnemonic_of
from warpsmith.assembly.sass.probe.subject import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.sass.probe.learn import Learned
    from warpsmith.assembly.sass.probe.oracle import Oracle
    from warpsmith.assembly.sass.row import Row

__all__ = ["arrange"]

_SAMPLES = 12
_LOW = (1 << 105) - 1


def arrange(oracle: Oracle, learned: Learned) -> list[Row]:
    """Return all rows in order, with defaults and mnemonics in their notes."""
    rows = [r for name in sorted(learned.rows) for r in learned.rows[name]]
    rows = [_described(r, learned) for r in rows]
    before = _precedence(oracle, rows, learned)
    return _sorted(rows, before, learned)


def _described(row: Row, learned: Learned) -> Row:
    """Add the word that stands for the form: its seeds' commonest bits, as far as the text of one of them says the same."""
    own = [w for w, _, _ in learned.seeds.get(row.name, ()) if row.covers(w) and row.template(w) is not None]
    seed = int(row.notes["seed"], 0)
    best = own[0] if own else seed
    if own:
        common = sum(1 << b for b in range(105) if 2 * sum(w >> b & 1 for w in own) > len(own))
        best = min(own, key=lambda w: ((w ^ common) & _LOW).bit_count())
        mixed = plain(common)
        if row.covers(mixed) and row.template(mixed) is not None:
            best = mixed
    names = {mnemonic_of(t) for w in (*own, seed) if (t := row.text(w))}
    notes = {
        **row.notes,
        "seed": f"{(own[0] if own else seed) & _LOW:#x}",
        "default": f"{best & _LOW:#x}",
        "mnemonic": "/".join(sorted(names)),
    }
    return replace(row, notes=notes)


def _precedence(oracle: Oracle, rows: Sequence[Row], learned: Learned) -> set[tuple[int, int]]:
    """Return pairs of rows, by number, of which the first must come before the second."""
    draw = random.Random(1)
    groups: dict[int, list[int]] = {}
    for n, row in enumerate(rows):
        groups.setdefault(row.value & 0xFFF, []).append(n)
    asked: list[tuple[int, int, int]] = []
    for group in groups.values():
        for i, a in enumerate(group):
            for b in group[i + 1 :]:
                if rows[a].name != rows[b].name and not (rows[a].value ^ rows[b].value) & rows[a].mask & rows[b].mask:
                    asked += [(a, b, w) for w in _shared_words(rows[a], rows[b], draw)]
    answers = oracle.classes([w for _, _, w in asked])
    votes: dict[tuple[int, int], list[int]] = {}
    for (a, b, _), answer in zip(asked, answers, strict=True):
        vote = votes.setdefault((a, b), [0, 0])
        if answer and answer[0] == rows[a].name:
            vote[0] += 1
        elif answer and answer[0] == rows[b].name:
            vote[1] += 1
    before: set[tuple[int, int]] = set()
    for (a, b), (first, second) in votes.items():
        if first and second:
            learned.log.append(f"{rows[a].name} and {rows[b].name} share words: {first} are the first's, {second} the second's")
        if first or second:
            before.add((a, b) if first >= second else (b, a))
    return before


def _shared_words(a: Row, b: Row, draw: random.Random) -> list[int]:
    out: list[int] = []
    for one, other in ((a, b), (b, a)):
        default = int(one.notes["default"], 0)
        for _ in range(_SAMPLES):
            word = default
            for f in one.fields:
                if draw.random() < 0.3:
                    for low, width in f.bits:
                        word ^= draw.getrandbits(width) << low
            word = plain(word & ~other.mask | other.value)
            if a.covers(word) and b.covers(word) and a.template(word) is not None and b.template(word) is not None:
                out.append(word)
    return list(dict.fromkeys(out))


def _sorted(rows: Sequence[Row], before: set[tuple[int, int]], learned: Learned) -> list[Row]:
    """Sort by the pairs, stably; a cycle is broken at its first row and logged."""
    left = dict.fromkeys(range(len(rows)))
    ahead: dict[int, set[int]] = {}
    for a, b in before:
        ahead.setdefault(b, set()).add(a)
    out: list[Row] = []
    while left:
        pick = next((n for n in left if not ahead.get(n, set()) & left.keys()), None)
        if pick is None:
            pick = next(iter(left))
            learned.log.append(f"{rows[pick].name}: the order of forms runs in a circle")
        del left[pick]
        out.append(rows[pick])
    return out
