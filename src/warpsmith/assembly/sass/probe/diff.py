"""Compare token lists: what an altered word changed in the text, as edits of the first text."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Edit", "Tokens", "apply", "edits_of", "merge"]

Tokens = tuple[str, ...]
Edit = tuple[int, int, Tokens]
"""Tokens [start, end) of the first text become these."""


def edits_of(old: Tokens, new: Tokens) -> tuple[Edit, ...]:
    """Return the edits that turn `old` into `new`, in order; where a repeated token leaves a choice, they start at a
    separator."""
    if old == new:
        return ()
    low = 0
    top = min(len(old), len(new))
    while low < top and old[low] == new[low]:
        low += 1
    end = 0
    while end < top - low and old[-1 - end] == new[-1 - end]:
        end += 1
    before, after = old[low : len(old) - end], new[low : len(new) - end]
    if not before or not after:
        return (_slide(old, low, low + len(before), after),)
    if len(before) == 1 or len(after) == 1:
        return ((low, low + len(before), after),)
    return tuple(_parts(old, low, before, after))


def _parts(old: Tokens, low: int, before: Tokens, after: Tokens) -> Iterable[Edit]:
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            yield _slide(old, low + i, low + j, after[k:m]) if tag != "replace" else (low + i, low + j, after[k:m])


def _starts(token: str) -> bool:
    return token == ", " or token[0] in ".@" or token == " "


def _slide(old: Tokens, start: int, end: int, new: Tokens) -> Edit:
    """Move an insertion or a deletion left over equal tokens until it starts at a separator."""
    if start == end:
        i, text = start, new
        while True:
            if _starts(text[0]):
                return (i, i, text)
            if not i or old[i - 1] != text[-1]:
                return (start, end, new)
            text = (text[-1], *text[:-1])
            i -= 1
    i, j = start, end
    while not _starts(old[i]):
        if not i or old[i - 1] != old[j - 1]:
            return (start, end, new)
        i, j = i - 1, j - 1
    return (i, j, ())


def merge(first: Sequence[Edit], second: Sequence[Edit]) -> tuple[tuple[Edit, ...], bool] | None:
    """Return both sets of edits in order and whether two insert at one place; None where they overlap."""
    both = sorted(
        [*((a, b, 0, t) for a, b, t in first), *((a, b, 1, t) for a, b, t in second)], key=lambda e: (e[0], e[1], e[2])
    )
    tie = False
    for (begin, end, whose, _), (start, stop, other, _) in pairwise(both):
        if whose == other:
            continue
        if start < end:
            return None
        tie = tie or begin == end == start == stop
    return tuple((a, b, t) for a, b, _, t in both), tie


def apply(old: Tokens, edits: Iterable[Edit]) -> Tokens:
    """Return the text after the edits, which are in order and do not overlap."""
    out: list[str] = []
    at = 0
    for start, end, new in edits:
        out += old[at:start]
        out += new
        at = end
    out += old[at:]
    return tuple(out)
