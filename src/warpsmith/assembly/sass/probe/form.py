"""Learn one form of an instruction from one of its words."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.probe.atoms import base_atoms
from warpsmith.assembly.sass.probe.build import build_row
from warpsmith.assembly.sass.probe.enrich import enrich
from warpsmith.assembly.sass.probe.moves import (
    Move,
    Values,
    field_moves,
    latent,
    refine_powers,
    specials_of,
    study_values,
    with_value,
)
from warpsmith.assembly.sass.probe.pairs import Interplay, study_pairs
from warpsmith.assembly.sass.probe.parts import Choice, Part, enumerate_parts, word_of
from warpsmith.assembly.sass.probe.reshape import reshaped
from warpsmith.assembly.sass.probe.sites import find_sites, overlap, sort_sites
from warpsmith.assembly.sass.probe.subject import FLIPPED, Subject
from warpsmith.assembly.sass.row import scatter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warpsmith.assembly.sass.probe.requests import Asking
    from warpsmith.assembly.sass.row import Field, Row

__all__ = ["Start", "Study", "learn_form"]

_MOST = 2048
"""Combinations of one part; beyond, the bit that acts with most others splits the form."""
_SAMPLES = 192


@final
@dataclass(frozen=True, slots=True)
class Start:
    """A form to learn: a word of the class and the bits that distinguish it from its sisters."""

    name: str
    base: int
    fixed: int = 0
    nots: tuple[tuple[int, int], ...] = ()


@final
@dataclass(slots=True)
class Study:
    """What learning a form gave."""

    row: Row | None
    more: list[Start] = field(default_factory=list[Start])
    """Sister forms met on the way."""
    others: dict[str, int] = field(default_factory=dict[str, int])
    """Other classes met on the way -> a word."""
    probes: int = 0
    wrong: int = 0
    """Samples that the row gets wrong, of `tried`."""
    tried: int = 0
    log: list[str] = field(default_factory=list[str])


def learn_form(start: Start) -> Asking[Study]:
    """Learn the form of a word; `Study.row` is None where the word is illegal."""
    s = Subject(start.name, start.base, start.fixed)
    out = Study(None)
    if not (yield from enrich(s)):
        return out
    nots = list(start.nots)
    values = yield from _settle_fields(s, nots, out)
    while True:  # each round but the last gives up a field
        moves = _moves(s, values)
        interplay = yield from study_pairs(s, moves)
        for k, special in (yield from refine_powers(s, moves, interplay.edges)).items():
            moves[k] = replace(moves[k], special=special)
        _forbid(s, moves, interplay, nots)
        small = {
            moves[k].field
            for pair in interplay.edges
            for k in pair
            if _ordinary(moves[k]) and s.fields[moves[k].field][0].width <= 4
        }
        if not small:
            break
        s.fields = [f for i, f in enumerate(s.fields) if i not in small]
        values = yield from _settle_fields(s, nots, out)
    apart: dict[int, int] = {}
    known, logged = len(nots), len(out.log)
    while True:  # each round but the last sets a bit apart
        del nots[known:], out.log[logged:]
        parts, ignored = _parts(s, moves, interplay, start, nots, out, apart)
        yield from enumerate_parts(s, parts)
        found = yield from reshaped(s, parts)
        if found is None:
            break
        apart[found[0]] = found[1]
    row = yield from _tables(s, parts, nots, ignored, out)
    out.row = row
    out.others = s.others
    out.probes = s.probes
    return out


def _ordinary(move: Move) -> bool:
    return move.field >= 0 and move.special is None


def _settle_fields(s: Subject, nots: list[tuple[int, int]], out: Study) -> Asking[list[Values]]:
    """Study the values of all fields; give up those that print no number after all."""
    while True:
        s.atoms = base_atoms(s)
        values = yield from study_values(s)
        drop: list[int] = []
        for index, (found, _) in enumerate(s.fields):
            v = values[index]
            if specials_of(index, v) is None:
                if found.width <= 8:
                    drop.append(index)
                else:
                    out.log.append(f"field {found.bits} {found.kind}: {len(v.odd)} odd values {sorted(v.odd)[:5]}")
                    v.odd.clear()
        if not drop:
            break
        s.fields = [f for i, f in enumerate(s.fields) if i not in drop]
    for (found, _), v in zip(s.fields, values, strict=True):
        mask = scatter((1 << found.width) - 1, found.bits)
        if len(v.foreign) > 8:
            out.log.append(f"field {found.bits}: {len(v.foreign)} values of other classes")
        nots += [n for x in v.foreign[:8] if (n := (mask, scatter(x, found.bits))) not in nots]
    return values


def _moves(s: Subject, values: Sequence[Values]) -> list[Move]:
    owned = 0
    for found, _ in s.fields:
        owned |= scatter((1 << found.width) - 1, found.bits)
    moves = [Move(1 << b, bit=b) for b in FLIPPED if b in s.single and not owned >> b & 1]
    for index, v in enumerate(values):
        found = s.fields[index][0]
        for special in (*(specials_of(index, v) or ()), *latent(s, index, v)):
            moves.append(Move(s.base ^ with_value(s.base, found, special.example), special=special, field=index))
        moves += field_moves(s, index)
    return moves


def _forbid(s: Subject, moves: Sequence[Move], interplay: Interplay, nots: list[tuple[int, int]]) -> None:
    """Note the combinations that make another class of the word."""
    for pair in interplay.foreign:
        mask = value = 0
        for m in (moves[k] for k in pair):
            where = m.change if m.bit >= 0 else _mask(s.fields[m.field][0])
            mask |= where
            value |= (s.base ^ m.change) & where
        if (mask, value) not in nots:
            nots.append((mask, value))


def _mask(found: Field) -> int:
    return scatter((1 << found.width) - 1, found.bits)


def _parts(
    s: Subject,
    moves: Sequence[Move],
    interplay: Interplay,
    start: Start,
    nots: list[tuple[int, int]],
    out: Study,
    apart: Mapping[int, int],
) -> tuple[list[Part], int]:
    """Group the moves that act together; set apart what makes a form of its own, and the bits of `apart` (-> a word of the
    form)."""
    links: dict[int, set[int]] = {k: set() for k in range(len(moves))}
    for i, j in interplay.edges:
        links[i].add(j)
        links[j].add(i)
    out.more = [Start(s.name, word, start.fixed | 1 << bit, start.nots) for bit, word in apart.items()]
    gone = {k for k, m in enumerate(moves) if m.bit in apart}

    def split(k: int) -> None:
        m = moves[k]
        gone.add(k)
        if m.special and m.special.predicate[0] != "eq":
            out.log.append(f"powers of two of {s.fields[m.field][0].bits} act with a field")
            return
        where = m.change if m.bit >= 0 else _mask(s.fields[m.field][0])
        out.more.append(Start(s.name, s.base ^ m.change, start.fixed | where, start.nots))
        if m.bit < 0:
            nots.append((where, (s.base ^ m.change) & where))

    for k, m in enumerate(moves):
        if _ordinary(m):
            for other in sorted(links[k]):
                if _ordinary(moves[other]):
                    out.log.append(
                        f"fields {s.fields[m.field][0].bits} and {s.fields[moves[other].field][0].bits} act together"
                    )
                elif other not in gone:
                    split(other)
    hidden = {k for k, m in enumerate(moves) if m.bit >= 0 and interplay.effects[k] == ()}
    for k in range(len(moves)):
        if k not in gone and k not in hidden and len(links[k] & hidden) >= 5:
            split(k)
    while True:
        groups = _groups(moves, links, gone, interplay)
        large = next((g for g in groups if Part(_choices(moves, g)).size > _MOST), None)
        if large is None:
            break
        split(max((k for k in large if moves[k].bit >= 0), key=lambda k: len(links[k] - gone)))
    ignored = sum(1 << moves[k].bit for k in hidden if k not in gone and not links[k] - gone)
    return [Part(_choices(moves, g)) for g in groups], ignored


def _groups(moves: Sequence[Move], links: dict[int, set[int]], gone: set[int], interplay: Interplay) -> list[list[int]]:
    live = [k for k, m in enumerate(moves) if k not in gone and not _ordinary(m) and (interplay.effects[k] or links[k] - gone)]
    root = {k: k for k in live}

    def find(k: int) -> int:
        while root[k] != k:
            k = root[k]
        return k

    fields: dict[int, int] = {}
    for k in live:
        if moves[k].special:
            root[find(k)] = find(fields.setdefault(moves[k].field, k))
        for other in links[k]:
            if other in root:
                root[find(k)] = find(other)
    out: dict[int, list[int]] = {}
    for k in live:
        out.setdefault(find(k), []).append(k)
    return list(out.values())


def _choices(moves: Sequence[Move], group: Sequence[int]) -> tuple[Choice, ...]:
    bits = [Choice(bit=moves[k].bit) for k in group if moves[k].bit >= 0]
    fields: dict[int, list[Move]] = {}
    for k in group:
        if moves[k].special:
            fields.setdefault(moves[k].field, []).append(moves[k])
    return (*bits, *(Choice(specials=tuple(m.special for m in ms if m.special)) for ms in fields.values()))


def _tables(s: Subject, parts: list[Part], nots: Sequence[tuple[int, int]], ignored: int, out: Study) -> Asking[Row]:
    """Fill the tables, build the row, and try it on random words; parts that turn out to act together are joined."""
    draw = random.Random(s.name)
    while True:  # each round but the last joins two parts
        yield from enumerate_parts(s, parts)
        sites = [site for n, p in enumerate(parts) for site in find_sites(s, n, p)]
        clash = overlap(sites)
        if clash and _combine(parts, *clash):
            continue
        ordered = yield from sort_sites(s, parts, sites)
        row = build_row(s, parts, ordered, nots, ignored)
        clash = yield from _try(s, row, parts, draw, out)
        if not clash or not _combine(parts, *clash):
            return row


def _combine(parts: list[Part], a: int, b: int) -> bool:
    joined = Part(parts[a].choices + parts[b].choices)
    if joined.size > 2 * _MOST:
        return False
    parts[:] = [p for n, p in enumerate(parts) if n not in (a, b)] + [joined]
    return True


def _try(s: Subject, row: Row, parts: Sequence[Part], draw: random.Random, out: Study) -> Asking[tuple[int, int] | None]:
    """Compare the row with random words of its form; return two parts that act together, if that explains a difference."""
    legal = [[v for v, e in p.effects.items() if e is not None] for p in parts]
    trials: list[tuple[int, list[tuple[int, ...]]]] = []
    for _ in range(_SAMPLES):
        word = s.base
        for found, _ in s.fields:
            if draw.random() < 0.5:
                word = with_value(word, found, draw.getrandbits(found.width))
        picks = [draw.choice(x) for x in legal]
        for part, values in zip(parts, picks, strict=True):
            word = word_of(s, part, values, word)
        trials.append((word, picks))
    wrong = yield from _differing(s, row, [w for w, _ in trials])
    out.tried, out.wrong = len(trials), len(wrong)
    if not wrong:
        return None
    suspects: list[tuple[int, int, int]] = []
    for index in wrong[:6]:
        picks = trials[index][1]
        for a in range(len(parts)):
            for b in range(a):
                word = word_of(s, parts[b], picks[b], word_of(s, parts[a], picks[a], s.base))
                suspects.append((word, a, b))
    bad = yield from _differing(s, row, [w for w, _, _ in suspects])
    if not bad:
        out.log.append(f"{len(wrong)} of {len(trials)} samples differ, no two parts explain it")
        return None
    return suspects[bad[0]][1:]


def _differing(s: Subject, row: Row, words: Sequence[int]) -> Asking[list[int]]:
    texts: list[tuple[int, str] | None] = yield ("texts", list(words))
    same = yield from s.ask_same(words)
    s.probes += len(words)
    out: list[int] = []
    for i, (word, text, ours) in enumerate(zip(words, texts, same, strict=True)):
        if ours and text is not None and row.covers(word) and row.text(word, text[0]) != text[1]:
            out.append(i)
    return out
