"""Look at one word by hand: what every bit of it does, with witness words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.probe.atoms import base_atoms
from warpsmith.assembly.sass.probe.enrich import find_fields
from warpsmith.assembly.sass.probe.moves import specials_of, study_values, with_value
from warpsmith.assembly.sass.probe.serve import serve
from warpsmith.assembly.sass.probe.subject import Subject, plain
from warpsmith.assembly.sass.row import gather
from warpsmith.base.errors import InputError

if TYPE_CHECKING:
    from warpsmith.assembly.sass.probe.oracle import Oracle
    from warpsmith.assembly.sass.probe.requests import Asking

__all__ = ["Exploration", "Finding", "explore"]


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """What a range of bits does."""

    bits: tuple[int, ...]
    role: str
    """`field`, `modifier`, `ignored`, `illegal` or `key`."""
    meaning: str
    witnesses: tuple[tuple[int, str], ...] = ()
    """Words, and their texts."""


@final
@dataclass(frozen=True, slots=True)
class Exploration:
    """A word, its text, its class, and what its bits do."""

    word: int
    text: str
    name: str
    findings: tuple[Finding, ...]
    probes: int


def explore(oracle: Oracle, word: int) -> Exploration:
    """Flip every bit of a word and try the values of its fields; raise `InputError` for a word that the disassembler
    rejects."""
    word = plain(word)
    text, name = oracle.texts([word])[0], oracle.classes([word])[0]
    if text is None or name is None:
        raise InputError(f"{word:#034x} is no instruction of {oracle.arch}: {oracle.tool.name} rejects it")
    s = Subject(name[0], word, 0)
    findings = serve(oracle, {0: _explore(s)})[0]
    return Exploration(word, text[1], name[0], tuple(findings), s.probes)


def _explore(s: Subject) -> Asking[list[Finding]]:
    yield from s.settle()
    yield from s.flip()
    find_fields(s)
    s.atoms = base_atoms(s)
    values = yield from study_values(s)
    texts: list[tuple[int, str] | None] = yield ("texts", [s.base ^ 1 << b for b in sorted(s.single)])
    witness = {b: t[1] for b, t in zip(sorted(s.single), texts, strict=True) if t}
    out: list[Finding] = []
    owned: set[int] = set()
    for index, (f, _) in enumerate(s.fields):
        bits = tuple(low + i for low, width in f.bits for i in range(width))
        owned.update(bits)
        odd = values[index].odd
        known = specials_of(index, values[index])
        extra = f"; prints otherwise at {', '.join(f'{v:#x}' for v in sorted(odd)[:6])}" if odd else ""
        note = "" if known is not None else " (no list of values explains it)"
        seen = [(with_value(s.base, f, v), "".join(odd[v])) for v in sorted(odd)[:3]] or [
            (s.base ^ 1 << bits[0], witness.get(bits[0], ""))
        ]
        out.append(
            Finding(
                bits, "field", f"{f.kind} {f.text(s.base, 0)} (value {gather(s.base, f.bits):#x}){extra}{note}", tuple(seen)
            )
        )
    for bit, effect in sorted(s.single.items()):
        if bit not in owned and effect:
            shown = ", ".join(f"{''.join(s.tokens[b:e])!r} to {''.join(t)!r}" for b, e, t in effect)
            out.append(Finding((bit,), "modifier", shown, ((s.base ^ 1 << bit, witness.get(bit, "")),)))
    for role, bits in (
        ("ignored", [b for b, e in s.single.items() if e == () and b not in owned]),
        ("illegal", [b for b, e in s.single.items() if e is None and b not in owned]),
        ("key", [b for b in range(105) if s.key >> b & 1]),
    ):
        if bits:
            out.append(Finding(tuple(bits), role, ""))
    return out
