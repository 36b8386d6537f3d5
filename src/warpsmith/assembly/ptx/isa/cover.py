"""Pairwise covering arrays: few combinations in which every pair of values of two parameters occurs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["pairwise"]


def pairwise(domains: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return combinations of one value per domain such that each pair of values of two domains occurs in one of them.

    Greedy and deterministic; with one domain every value, with none the empty combination.
    """
    size = len(domains)
    if size < 2:
        return [(v,) for v in domains[0]] if size else [()]
    order = sorted(range(size), key=lambda n: -len(domains[n]))
    combinations: list[list[str]] = [[a, b] for a in domains[order[0]] for b in domains[order[1]]]
    for at in range(2, size):
        missing = {(p, v, w) for p in range(at) for v in domains[order[p]] for w in domains[order[at]]}
        for c in combinations:
            best = max(domains[order[at]], key=lambda w: sum((p, c[p], w) in missing for p in range(at)))
            c.append(best)
            missing.difference_update({(p, c[p], best) for p in range(at)})
        combinations += _rest(missing, at, [domains[n] for n in order])
    place = {n: k for k, n in enumerate(order)}
    return [tuple(c[place[n]] for n in range(size)) for c in combinations]


def _rest(missing: set[tuple[int, str, str]], at: int, domains: Sequence[Sequence[str]]) -> list[list[str]]:
    """Combinations of the first `at` + 1 domains for the pairs with the last one that are still missing."""
    out: list[list[str]] = []
    while missing:
        _, _, word = min(missing)
        row = [next((v for v in domains[p] if (p, v, word) in missing), domains[p][0]) for p in range(at)]
        out.append([*row, word])
        missing.difference_update({(p, row[p], word) for p in range(at)})
    return out
