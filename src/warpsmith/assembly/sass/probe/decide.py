"""Which modifiers decide an outcome: the fewest bits that explain all samples."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from warpsmith.assembly.sass.roles import Rule
from warpsmith.assembly.sass.row import gather

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warpsmith.assembly.sass.row import Bits

__all__ = ["decide", "values_missing"]

Sample = tuple[int, str]
_MOST = 14
"""Bits that may decide together."""
_ENUMERATED = 2048


def decide(samples: Sequence[Sample], candidates: Sequence[Bits]) -> Rule | None:
    """Return the rule that explains all samples (word, outcome); None where no few of the candidates do."""
    if not samples:
        return None
    chosen: list[Bits] = []
    left = _conflicts(samples, chosen)
    while left:
        rest = [c for c in candidates if c not in chosen and _width([*chosen, c]) <= _MOST]
        if not rest:
            return None
        best = min(rest, key=lambda c: (_conflicts(samples, [*chosen, c]), _width([c])))
        chosen.append(best)
        left = _conflicts(samples, chosen)
    for c in list(chosen):
        if not _conflicts(samples, [x for x in chosen if x != c]):
            chosen.remove(c)
    bits = _merge(chosen)
    bits = _narrow(samples, bits)
    return Rule(bits, {gather(w, bits): o for w, o in samples})


def _narrow(samples: Sequence[Sample], bits: Bits) -> Bits:
    """Leave out single bits that do not matter."""
    singles = [(low + i, 1) for low, width in bits for i in range(width)]
    for bit in list(singles):
        less = [b for b in singles if b != bit]
        if not _conflicts(samples, [tuple(less)] if less else []):
            singles = less
    return _merge([tuple(singles)] if singles else [])


def values_missing(rule: Rule) -> Iterator[int]:
    """Yield the values of the deciding bits that the rule does not know."""
    for value in range(min(1 << _width([rule.bits]), _ENUMERATED)):
        if value not in rule.table:
            yield value


def _width(many: Sequence[Bits]) -> int:
    return sum(w for bits in many for _, w in bits)


def _merge(many: Sequence[Bits]) -> Bits:
    """Return all runs as one, the lowest bit least significant."""
    mask = 0
    for bits in many:
        for low, width in bits:
            mask |= ((1 << width) - 1) << low
    out: list[tuple[int, int]] = []
    for bit in range(mask.bit_length()):
        if mask >> bit & 1:
            if out and sum(out[-1]) == bit:
                out[-1] = (out[-1][0], out[-1][1] + 1)
            else:
                out.append((bit, 1))
    return tuple(out)


def _conflicts(samples: Sequence[Sample], chosen: Sequence[Bits]) -> int:
    """Count the samples that do not have the commonest outcome among those with the same values."""
    bits = tuple(run for c in chosen for run in c)
    seen: dict[int, Counter[str]] = {}
    for word, outcome in samples:
        seen.setdefault(gather(word, bits), Counter())[outcome] += 1
    return sum(c.total() - c.most_common(1)[0][1] for c in seen.values())
