"""Find combinations under which a field prints as another kind of number: such a combination begins a form of its own.

With one flip that is a pair of alterations that act together. It takes two where one alone is illegal: `HFMA2.F32 R0, R1, 0.5`
-> (`.F32` off, `.BF16_V2` on) -> `HFMA2.BF16_V2 R0, R1, 1.75`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.sass.probe.atoms import hole
from warpsmith.assembly.sass.probe.moves import field_moves
from warpsmith.assembly.sass.probe.parts import word_of
from warpsmith.assembly.sass.tokens import kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.sass.probe.parts import Part
    from warpsmith.assembly.sass.probe.requests import Asking
    from warpsmith.assembly.sass.probe.subject import Effect, Subject

__all__ = ["reshaped"]


def reshaped(s: Subject, parts: Sequence[Part]) -> Asking[tuple[int, int] | None]:
    """Return a bit, and a word with it inverted, in which a field that the base prints is printed otherwise; None if there is
    none.

    The bit is one that is inverted in as many of such combinations as any.
    """
    trials: list[tuple[tuple[int, ...], int, int]] = []  # inverted bits, word, the word with another value in the field
    for part in parts:
        for values, effect in part.effects.items():
            bits = tuple(c.bit for c, v in zip(part.choices, values, strict=True) if c.bit >= 0 and v)
            word = word_of(s, part, values, s.base)
            for index in _replaced(s, effect) if bits else ():
                trials += [(bits, word, word ^ m.change) for m in field_moves(s, index)]
    texts = yield from s.ask_tokens([w for _, one, other in trials for w in (one, other)])
    found = [
        (bits, word)
        for (bits, word, _), one, other in zip(trials, texts[::2], texts[1::2], strict=True)
        if one is not None and other is not None and one != other
    ]
    if not found:
        return None
    votes: dict[int, int] = {}
    for bits, _ in found:
        for bit in bits:
            votes[bit] = votes.get(bit, 0) + 1
    chosen = max(votes, key=lambda b: (votes[b], -b))
    return chosen, next(word for bits, word in found if chosen in bits)


def _replaced(s: Subject, effect: Effect) -> set[int]:
    """Return the fields in whose place the effect puts a number."""
    out: set[int] = set()
    for start, end, new in effect or ():
        if any(hole(t) is None and kind_of(t) for t in new):
            there = {i for t in new if (i := hole(t)) is not None}
            out |= {i for t in s.atoms[start:end] if (i := hole(t)) is not None} - there
    return out
