"""Make a row of the table from sites: minimal dependences, joined selectors, the key."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from warpsmith.assembly.sass.probe.fields import runs
from warpsmith.assembly.sass.probe.sites import template_of
from warpsmith.assembly.sass.row import Piece, Row, Selector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.sass.probe.parts import Part
    from warpsmith.assembly.sass.probe.sites import Site
    from warpsmith.assembly.sass.probe.subject import Subject
    from warpsmith.assembly.sass.row import Template

__all__ = ["build_row"]

Key = tuple[int, ...]
V = TypeVar("V")
_WORD = (1 << 105) - 1


def needed(table: dict[Key, V], width: int) -> tuple[int, ...]:
    """Return the positions of the key on which the table depends, as few as dropping one after the other leaves."""
    keep = list(range(width))
    for i in range(width):
        rest = [k for k in keep if k != i]
        seen: dict[Key, V] = {}
        if all(seen.setdefault(tuple([key[k] for k in rest]), value) == value for key, value in table.items()):
            keep = rest
    return tuple(keep)


def build_row(s: Subject, parts: Sequence[Part], sites: Sequence[Site], nots: Sequence[tuple[int, int]], ignored: int) -> Row:
    """Return the row; `ignored` are the bits that are known to do nothing."""
    drafts: list[tuple[tuple[tuple[int, int], ...], dict[Key, Template]]] = []  # ((part, choice), …), table
    at = 0
    for site in sites:
        if site.start > at:
            drafts.append(((), {(): template_of(s.atoms[at : site.start])}))
        at = max(at, site.end)
        drafts.append(_draft(s, parts, site.part, {k: template_of(t) for k, t in site.texts.items()}))
    if at < len(s.atoms):
        drafts.append(((), {(): template_of(s.atoms[at:])}))
    for number, part in enumerate(parts):
        legal = {k: e is not None for k, e in part.effects.items()}
        if not all(legal.values()):
            using, table = _draft(s, parts, number, legal)
            drafts.append((using, {k: () for k, fine in table.items() if fine}))
    drafts = [d for d in drafts if d[0] or any(d[1].values())]
    selectors, pieces = _join(s, parts, drafts)
    owned = 0
    for _, _, selector in _uses(s, parts, drafts):
        owned |= _bits(selector.bits)
    for found, _ in s.fields:
        owned |= _bits(found.bits)
    idle = 0
    for part in parts:
        for choice in part.choices:
            idle |= 1 << choice.bit if choice.bit >= 0 else 0
    ignored = (ignored | idle) & ~owned & _WORD
    mask = _WORD & ~owned & ~ignored
    return Row(s.name, mask, s.base & mask, tuple(nots), tuple(f for f, _ in s.fields), selectors, pieces, ignored)


def _draft(
    s: Subject, parts: Sequence[Part], number: int, table: dict[Key, V]
) -> tuple[tuple[tuple[int, int], ...], dict[Key, V]]:
    choices = parts[number].choices
    keep = needed(table, len(choices))
    small: dict[Key, V] = {}
    for key, value in table.items():
        small[tuple([choices[i].read(s, key[i]) for i in keep])] = value
    return tuple((number, i) for i in keep), small


def _uses(
    s: Subject, parts: Sequence[Part], drafts: Sequence[tuple[tuple[tuple[int, int], ...], object]]
) -> list[tuple[int, int, Selector]]:
    seen = dict.fromkeys(use for using, _ in drafts for use in using)
    return [(p, i, parts[p].choices[i].selector(s)) for p, i in seen]


def _bits(bits: Sequence[tuple[int, int]]) -> int:
    out = 0
    for low, width in bits:
        out |= ((1 << width) - 1) << low
    return out


def _join(
    s: Subject, parts: Sequence[Part], drafts: Sequence[tuple[tuple[tuple[int, int], ...], dict[Key, Template]]]
) -> tuple[tuple[Selector, ...], tuple[Piece, ...]]:
    """Make one selector of bits that every piece uses together."""
    users: dict[tuple[int, int], list[int]] = {}
    for n, (using, _) in enumerate(drafts):
        for use in using:
            users.setdefault(use, []).append(n)
    groups: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for use, where in users.items():
        single = parts[use[0]].choices[use[1]].bit < 0
        groups.setdefault((use,) if single else (use[0], *where), []).append(use)
    selectors: list[Selector] = []
    members: list[list[tuple[int, int]]] = []
    for uses in groups.values():
        uses.sort(key=lambda u: parts[u[0]].choices[u[1]].bit)
        if parts[uses[0][0]].choices[uses[0][1]].bit < 0:
            selectors.append(parts[uses[0][0]].choices[uses[0][1]].selector(s))
        else:
            selectors.append(Selector(runs([parts[p].choices[i].bit for p, i in uses])))
        members.append(uses)
    pieces = [_piece(using, table, members) for using, table in drafts]
    return tuple(selectors), tuple(pieces)


def _piece(using: tuple[tuple[int, int], ...], table: dict[Key, Template], members: Sequence[list[tuple[int, int]]]) -> Piece:
    picked = [g for g, uses in enumerate(members) if uses[0] in using]
    position = {use: n for n, use in enumerate(using)}
    out: dict[Key, Template] = {}
    for key, template in table.items():
        out[tuple(sum(key[position[u]] << n for n, u in enumerate(members[g])) for g in picked)] = template
    return Piece(tuple(picked), out)
