"""Choose a word to study: one that shows as many operands as it can, all numbers ordinary and different, nothing invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.sass.probe.fields import field_of
from warpsmith.assembly.sass.row import gather, scatter
from warpsmith.assembly.sass.tokens import kind_of, number_of

if TYPE_CHECKING:
    from warpsmith.assembly.sass.probe.requests import Asking
    from warpsmith.assembly.sass.probe.subject import Subject

__all__ = ["enrich", "find_fields"]

_REGISTERS = {
    "R": (36, 72, 20, 100, 52, 84, 116, 132),
    "UR": (20, 36, 12, 44, 28, 52),
    "P": (1, 2, 3, 4, 5),
    "UP": (1, 2, 3, 4, 5),
}
_SPECIAL = ("RZ", "URZ", "PT", "UPT", "0", "1", "-0.0 ")
_ROUNDS = 8


def enrich(s: Subject) -> Asking[bool]:
    """Move the base to a richer word of its class until nothing improves; False if the class has no legal word here."""
    if not (yield from s.settle()):
        return False
    for _ in range(_ROUNDS):
        yield from s.flip()
        find_fields(s)
        if not (yield from _improve(s)):
            break
    else:
        yield from s.flip()
        find_fields(s)
    return True


def find_fields(s: Subject) -> None:
    """Group the bits whose inversion changes one number, always the same, into fields.

    A number that stands twice is one field only where both read alike; `[R17+UR4], desc[UR5]`, of one number, is none.
    """
    at: dict[tuple[int, ...], dict[int, str]] = {}
    for bit, effect in s.single.items():
        if (
            effect
            and bit < 105
            and all(e - b == len(t) == 1 and kind_of(t[0]) == kind_of(s.tokens[b]) != "" for b, e, t in effect)
            and len({(s.tokens[b], t) for b, _, t in effect}) == 1
        ):
            at.setdefault(tuple(b for b, _, _ in effect), {})[bit] = effect[0][2][0]
    spare = {bit for bit, effect in s.single.items() if effect is None}
    s.fields = []
    for places, flips in at.items():
        found = field_of(s.base, s.tokens[places[0]], flips, spare)
        if found and found.width > 1:
            s.fields.append((found, places))


def _improve(s: Subject) -> Asking[bool]:
    """Try single changes of the base and all of them together; take the best legal word."""
    changes = [*_reveal(s), *_distinct(s), *_repair(s)]
    if not changes:
        return False
    words = [s.base ^ c for c in changes]
    together = s.base
    for c in changes:
        together ^= c
    halves = [s.base, s.base]
    for i, c in enumerate(changes):
        halves[i & 1] ^= c
    words = [together, *halves, *words]
    found = yield from s.ask_tokens(words)
    same = yield from s.ask_same(words)
    size = s.numeric()
    good: list[tuple[int, int, int]] = []
    for i, (word, tokens, ours) in enumerate(zip(words, found, same, strict=True)):
        if tokens is not None and ours and word != s.base:
            numbers = sum(1 for t in tokens if kind_of(t))
            better = numbers > size or _ordinary(tokens) > _ordinary(s.tokens) or _strange(tokens) < _strange(s.tokens)
            if numbers >= size and (i < 3 or better):
                good.append((_worth(tokens), -i, word))
    if not good:
        return False
    best = max(good)
    if best[0] <= _worth(s.tokens):
        return False
    s.base = best[2]
    return (yield from s.settle())


def _worth(tokens: tuple[str, ...]) -> int:
    """Return how good a text is to study: numbers count most, then what is invalid, then how many numbers are ordinary."""
    return (64 * sum(1 for t in tokens if kind_of(t)) - 16 * _strange(tokens)) + _ordinary(tokens)


def _strange(tokens: tuple[str, ...]) -> int:
    """Count the tokens that the disassembler prints for undefined values: what it does beside them may be undefined, too."""
    return sum(1 for t in tokens if "INVALID" in t or "?" in t)


def _repair(s: Subject) -> list[int]:
    """Return changes that make an invalid modifier a valid one."""
    return [
        1 << bit
        for bit, effect in s.single.items()
        if effect and bit < 105 and any(_strange(t) < _strange(s.tokens[b:e]) for b, e, t in effect)
    ]


def _ordinary(tokens: tuple[str, ...]) -> int:
    """Count the different tokens that are numbers out of the ordinary run of 0, 1, RZ and PT."""
    return len(
        {
            t
            for t in tokens
            if (kind := kind_of(t))
            and t not in _SPECIAL
            and "N" not in t
            and not (kind in "xr" and _sparse(number_of(t, kind)))
        }
    )


def _sparse(number: int | None) -> bool:
    """Say whether a number has one bit set, or none, or all."""
    n = abs(number or 0)
    return not n & (n - 1) or number == -1


def _reveal(s: Subject) -> list[int]:
    """Return changes that make hidden operands appear."""
    at: dict[tuple[int, int], list[int]] = {}
    for bit, effect in s.single.items():
        if effect and bit < 105:
            for b, e, t in effect:
                if sum(1 for x in t if kind_of(x)) > sum(1 for x in s.tokens[b:e] if kind_of(x)):
                    at.setdefault((b, e), []).append(bit)
                    break
    out: list[int] = []
    known = {p for _, places in s.fields for p in places}
    numbers: dict[int, list[int]] = {}  # numbers that change together with other things: at a special value
    for bit, effect in s.single.items():
        for b, e, t in (effect or ()) if bit < 105 else ():
            if (
                e - b == len(t) == 1
                and b not in known
                and kind_of(t[0]) in (kind_of(s.tokens[b]), "x")
                and kind_of(s.tokens[b])
            ):
                numbers.setdefault(b, []).append(bit)
    for bits in numbers.values():
        if len(bits) >= 5:
            bits.sort()
            out.append(1 << bits[1] | 1 << bits[3] | 1 << bits[4])
    for bits in at.values():
        bits.sort()
        out.append(1 << bits[0] if len(bits) < 5 else 1 << bits[1] | 1 << bits[3])
    return out


def _distinct(s: Subject) -> list[int]:
    """Return changes that give fields ordinary values, all different."""
    used = {t for t in s.tokens if kind_of(t)}
    seen: set[str] = set()
    out: list[int] = []
    for found, places in s.fields:
        token = s.tokens[places[0]]
        special = token in _SPECIAL or token in seen
        seen.add(token)
        now = gather(s.base, found.bits)
        if found.kind in _REGISTERS:
            if special:
                for value in _REGISTERS[found.kind]:
                    if value < (1 << found.width) - 1 and f"{found.kind}{value}" not in used:
                        used.add(f"{found.kind}{value}")
                        out.append(scatter(now ^ value, found.bits))
                        break
        elif found.kind in ("u", "s", "r"):
            if found.width >= 5 and (now < 4 or not now & (now - 1) or now == (1 << found.width) - 1):
                out.append(scatter(now ^ (0b10100 if found.width < 16 else 0x1A50), found.bits))
        elif token in ("0", "1", "-0.0 ") or special:
            out.append(scatter(now ^ (0x40490FD0 if found.width == 32 else 0x4049), found.bits))
    return out
