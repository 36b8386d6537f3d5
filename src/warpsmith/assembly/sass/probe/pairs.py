"""Find which alterations act together: two act apart when both at once do what each does alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.probe.atoms import ask_atoms, concrete
from warpsmith.assembly.sass.probe.diff import apply, merge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.sass.probe.moves import Move
    from warpsmith.assembly.sass.probe.requests import Asking
    from warpsmith.assembly.sass.probe.subject import Effect, Subject

__all__ = ["Interplay", "study_pairs"]


@final
@dataclass(slots=True)
class Interplay:
    """What pairs of moves, by number, showed."""

    effects: list[Effect]
    edges: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    """Pairs that act together."""
    order: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    """Pairs that insert at one place, the first before the second."""
    illegal: int = 0
    """Pairs of which each is legal alone."""
    foreign: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    """Pairs that make a word of another class."""


def study_pairs(s: Subject, moves: Sequence[Move]) -> Asking[Interplay]:
    """Try all pairs of moves."""
    words = [s.base ^ m.change for m in moves]
    out = Interplay((yield from ask_atoms(s, words)))
    pairs = [
        (i, j) for i, j in combinations(range(len(moves)), 2) if _worthwhile(moves[i], moves[j], out.effects[i], out.effects[j])
    ]
    words = [s.base ^ moves[i].change ^ moves[j].change for i, j in pairs]
    texts = yield from s.ask_tokens(words)
    doubtful: list[tuple[int, int]] = []
    for (i, j), word, text in zip(pairs, words, texts, strict=True):
        first, second = out.effects[i], out.effects[j]
        if first is None or second is None:
            if text is not None:
                doubtful.append((i, j))
        elif text is None:
            out.illegal += 1
        else:
            merged = merge(first, second)
            if merged is None or text != concrete(s, apply(s.atoms, merged[0]), word):
                swapped = merge(second, first) if merged and merged[1] else None
                if swapped and text == concrete(s, apply(s.atoms, swapped[0]), word):
                    out.order.add((j, i))
                else:
                    doubtful.append((i, j))
            elif merged[1]:
                out.order.add((i, j))
    same = yield from s.ask_same([s.base ^ moves[i].change ^ moves[j].change for i, j in doubtful])
    for pair, ours in zip(doubtful, same, strict=True):
        (out.edges if ours else out.foreign).add(pair)
    return out


def _worthwhile(a: Move, b: Move, first: Effect, second: Effect) -> bool:
    """Say whether a pair can tell something: bits that do nothing alone are paired with their neighbours only."""
    if a.change & b.change or (a.field >= 0 and a.field == b.field):
        return False
    ordinary = (a.field >= 0 and not a.special) + (b.field >= 0 and not b.special)
    if first == () == second and not ordinary:
        return abs(a.bit - b.bit) <= 3
    return ordinary < 2
