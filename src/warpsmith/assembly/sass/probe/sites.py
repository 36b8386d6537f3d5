"""Turn tables of effects into pieces of text: where each part of a form writes, and on which of its choices that depends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cmp_to_key
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.probe.atoms import ask_atoms, concrete, hole
from warpsmith.assembly.sass.probe.diff import Tokens, apply
from warpsmith.assembly.sass.probe.parts import word_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.sass.probe.parts import Part
    from warpsmith.assembly.sass.probe.requests import Asking
    from warpsmith.assembly.sass.probe.subject import Subject
    from warpsmith.assembly.sass.row import Template

__all__ = ["Site", "find_sites", "overlap", "sort_sites", "template_of"]


@final
@dataclass(frozen=True, slots=True)
class Site:
    """Tokens [start, end) of the base, or a gap between two, that a part writes."""

    part: int
    start: int
    end: int
    texts: dict[tuple[int, ...], Tokens]
    """Choices -> what stands there; only legal choices."""


def template_of(atoms: Sequence[str]) -> Template:
    """Return atoms as a template: plain text joined, fields as numbers."""
    out: list[str | int] = []
    for token in atoms:
        index = hole(token)
        if index is not None:
            out.append(index)
        elif out and isinstance(out[-1], str):
            out[-1] += token
        else:
            out.append(token)
    return tuple(out)


def find_sites(s: Subject, number: int, part: Part) -> list[Site]:
    """Return the places a part writes to."""
    spans = sorted({(b, e) for effect in part.effects.values() if effect for b, e, _ in effect})
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and (start < joined[-1][1] or (start, end) == joined[-1]):
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    out: list[Site] = []
    for start, end in joined:
        texts: dict[tuple[int, ...], Tokens] = {}
        for values, effect in part.effects.items():
            if effect is not None:
                inside = [(b - start, e - start, t) for b, e, t in effect if _within(b, e, start, end)]
                texts[values] = apply(s.atoms[start:end], inside)
        out.append(Site(number, start, end, texts))
    return out


def _within(b: int, e: int, start: int, end: int) -> bool:
    if start == end:
        return b == e == start
    return start <= b and e <= end and not (b == e and b in (start, end))


def overlap(sites: Sequence[Site]) -> tuple[int, int] | None:
    """Return two parts that write to the same tokens, if any do."""
    ranges = sorted((x.start, x.end, x.part) for x in sites)
    for i, (start, end, part) in enumerate(ranges):
        for begin, stop, other in ranges[i + 1 :]:
            if begin >= end:
                break
            if other != part and (begin > start or stop > begin):
                return part, other
    return None


def sort_sites(s: Subject, parts: Sequence[Part], sites: list[Site]) -> Asking[list[Site]]:
    """Order the sites; parts that insert at one place are asked which comes first."""
    gaps: dict[int, list[Site]] = {}
    for site in sites:
        if site.start == site.end:
            gaps.setdefault(site.start, []).append(site)
    asked: list[tuple[Site, Site, int, Tokens, Tokens]] = []
    for group in gaps.values():
        for i, a in enumerate(group):
            for b in group[i + 1 :]:
                if trial := _both(s, parts, a, b):
                    asked.append((a, b, *trial))
    answers = yield from ask_atoms(s, [w for _, _, w, _, _ in asked])
    first: set[tuple[int, int]] = set()
    for (a, b, word, x, y), effect in zip(asked, answers, strict=True):
        if effect is None:
            continue
        text = concrete(s, apply(s.atoms, effect), word)
        others = [
            e for e in (*_effect(parts[a.part], a, x), *_effect(parts[b.part], b, y)) if e[0] != a.start or e[1] != a.start
        ]
        for pair, middle in (((a, b), x + y), ((b, a), y + x)):
            guess = apply(s.atoms, sorted([*others, (a.start, a.start, middle)], key=lambda e: (e[0], e[1])))
            if concrete(s, guess, word) == text:
                first.add((pair[0].part, pair[1].part))
                break
    compare = lambda a, b: -1 if (a.part, b.part) in first else 1 if (b.part, a.part) in first else a.part - b.part  # noqa: E731
    return sorted(sites, key=cmp_to_key(lambda a, b: (a.start - b.start) or (a.end - b.end) or compare(a, b)))


def _both(s: Subject, parts: Sequence[Part], a: Site, b: Site) -> tuple[int, Tokens, Tokens] | None:
    """Return a word in which both sites insert, different things if possible, and what."""
    pick = lambda site: max((kv for kv in site.texts.items() if kv[1]), key=lambda kv: len(kv[1]), default=None)  # noqa: E731
    first, second = pick(a), pick(b)
    if not first or not second:
        return None
    second = next((kv for kv in b.texts.items() if kv[1] and kv[1] != first[1]), second)
    word = word_of(s, parts[b.part], second[0], word_of(s, parts[a.part], first[0], s.base))
    return word, first[1], second[1]


def _effect(part: Part, site: Site, text: Tokens) -> Sequence[tuple[int, int, Tokens]]:
    values = next(v for v, t in site.texts.items() if t == text)
    return part.effects[values] or ()
