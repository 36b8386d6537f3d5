"""The alterations whose interplay is studied: bits, special values of fields, ordinary values of fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.probe.atoms import ask_atoms, concrete
from warpsmith.assembly.sass.row import Field, gather, scatter

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from warpsmith.assembly.sass.probe.diff import Tokens
    from warpsmith.assembly.sass.probe.requests import Asking
    from warpsmith.assembly.sass.probe.subject import Subject

__all__ = ["Move", "Special", "Values", "field_moves", "latent", "refine_powers", "specials_of", "study_values", "with_value"]


POWERS = (2, 4, 8, 32, 64, 4096, 16384)
"""Powers of two that no instruction treats apart from the others, as far as is known; the rest is tried."""


@final
@dataclass(frozen=True, slots=True)
class Special:
    """A value, or the powers of two but for some, that a field prints differently."""

    field: int
    predicate: tuple[str, tuple[int, ...]]
    example: int


@final
@dataclass(frozen=True, slots=True)
class Move:
    """An alteration of the base: exclusive-or with `change`."""

    change: int
    bit: int = -1
    special: Special | None = None
    field: int = -1
    """Field whose value it changes, for ordinary and special values."""


def with_value(base: int, found: Field, value: int) -> int:
    """Return the base with another value in a field."""
    return base ^ scatter(gather(base, found.bits) ^ value, found.bits)


def field_moves(s: Subject, index: int) -> list[Move]:
    """Return two ordinary changes of a field's value."""
    found = s.fields[index][0]
    bits = [low + i for low, width in found.bits for i in range(width)]
    picks = (bits[0], bits[len(bits) // 2]) if found.width < 6 else (bits[2], bits[len(bits) // 2])
    return [Move(1 << b, field=index) for b in dict.fromkeys(picks) if s.single.get(b)]


def _trial(width: int) -> list[int]:
    if width <= 8:
        return list(range(1 << width))
    top = (1 << width) - 1
    powers = [1 << i for i in range(width)]
    near = [
        *powers,
        *(p - 1 for p in powers),
        *(top ^ p for p in powers[:4]),
        3,
        5,
        6,
        10,
        12,
        100,
        1000,
        top,
        top - 1,
        top - 2,
        top - 3,
    ]
    mixed = [(0x9E3779B97F4A7C15 * i >> 13) & top for i in range(1, 25)]
    return list(dict.fromkeys([0, *near, *mixed]))


@final
@dataclass(slots=True)
class Values:
    """What trial values of a field did."""

    illegal: list[int]
    foreign: list[int]
    """Values that make a word of another class."""
    odd: dict[int, Tokens]
    """Value -> text, where it is not as expected."""
    tried: list[int]


def study_values(s: Subject) -> Asking[list[Values]]:
    """Give every field all its values, or some of each sort if there are many, and compare the text with what its kind
    prints."""
    trials = [(i, v, with_value(s.base, found, v)) for i, (found, _) in enumerate(s.fields) for v in _trial(found.width)]
    words = [word for _, _, word in trials]
    texts = yield from s.ask_tokens(words)
    same = yield from s.ask_same(words)
    out = [Values([], [], {}, _trial(found.width)) for found, _ in s.fields]
    for (index, value, word), text, ours in zip(trials, texts, same, strict=True):
        if not ours:
            out[index].foreign.append(value)
        elif text is None:
            out[index].illegal.append(value)
        elif text != concrete(s, s.atoms, word):
            out[index].odd[value] = text
    return out


def specials_of(index: int, values: Values) -> list[Special] | None:
    """Explain the odd values as predicates; None if no list of predicates does."""
    odd = sorted(values.odd)
    powers = [v for v in values.tried if v and not v & (v - 1)]
    many = [v for v in odd if v in set(powers)]
    out: list[Special] = []
    if len(many) > 6:
        alike = [v for v in many if v != 1]
        out += [Special(index, ("eq", (v,)), v) for v in odd if v not in alike]
        missing = tuple(v for v in powers if v not in many)
        out.append(Special(index, ("pow2", missing), alike[2]))
    else:
        out = [Special(index, ("eq", (v,)), v) for v in odd]
    return out if len(out) <= 6 else None


def latent(s: Subject, index: int, values: Values) -> list[Special]:
    """Return the values that may mean something together with other changes though they are ordinary in the base."""
    found = s.fields[index][0]
    top = (1 << found.width) - 1
    likely = (top,) if found.kind in ("R", "UR", "P", "UP") else (0,) if found.kind in ("u", "s", "r") else ()
    used = {*values.odd, *values.foreign, *values.illegal, gather(s.base, found.bits)}
    out = [Special(index, ("eq", (v,)), v) for v in likely if v not in used]
    if found.kind in ("u", "s") and found.width >= 16 and not used & set(POWERS):
        out.append(Special(index, ("pow2", ()), POWERS[3]))
    return out


def refine_powers(s: Subject, moves: Sequence[Move], edges: Collection[tuple[int, int]]) -> Asking[dict[int, Special]]:
    """For powers of two that act together with something, find the powers that do not act like the others.

    Returns the number of a move -> its special value, with the exceptions.
    """
    trials: list[tuple[int, int, int]] = []
    for pair in edges:
        for k, other in (pair, pair[::-1]):
            special = moves[k].special
            if special and special.predicate == ("pow2", ()) and moves[other].field != moves[k].field:
                found = s.fields[special.field][0]
                word = s.base ^ moves[other].change
                trials += [(k, 1 << i, with_value(word, found, 1 << i)) for i in range(found.width)]
    effects = yield from ask_atoms(s, [w for _, _, w in trials])
    out: dict[int, Special] = {}
    for k in dict.fromkeys(k for k, _, _ in trials):
        special = moves[k].special
        assert special
        # with several partners, a power is an exception where any partner shows it as one
        block = s.fields[special.field][0].width
        mine = [(value, effect) for (n, value, _), effect in zip(trials, effects, strict=True) if n == k]
        odd: set[int] = set()
        for at in range(0, len(mine), block):
            part = mine[at : at + block]
            common = [e for v, e in part if v in POWERS]
            normal = max(common, key=common.count)
            odd |= {v for v, e in part if e != normal}
        out[k] = Special(special.field, ("pow2", tuple(sorted(odd))), special.example)
    return out
