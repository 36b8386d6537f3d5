"""Say why a text is refused, and what is near it: a number that does not fit, a modifier that there is not, a combination."""

from __future__ import annotations

import re
from difflib import get_close_matches
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Protocol

from warpsmith.assembly.sass.control import NO_CONTROL
from warpsmith.assembly.sass.floats import FLOAT_KINDS, format_float
from warpsmith.assembly.sass.lex import mnemonic_of
from warpsmith.assembly.sass.token_bits import REGISTERS, field_bits, integer, nearest_float

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warpsmith.assembly.sass.decode import Decoder
    from warpsmith.assembly.sass.match import Match
    from warpsmith.assembly.sass.row import Field, Row
    from warpsmith.assembly.sass.table import Table

__all__ = ["refusal"]

_HEAD = re.compile(r"((?:@!?\w+ )?[A-Za-z_0-9]+)((?:\.[A-Za-z0-9_?]+)*)(.*)", re.DOTALL)
_MODIFIER = re.compile(r"(?<![0-9])\.[A-Za-z0-9_?]*[A-Za-z_?][A-Za-z0-9_?]*|(?<![0-9\s(])\.[0-9]+")
_TOGETHER = 8
"""Modifiers of which all combinations are tried; more are only compared with what is near."""
_FLOATS = {"f16": "binary16", "bf16": "bfloat16", "f32": "binary32", "f64": "binary64 with a lower half of zeros"}


class Reader(Protocol):
    """What is asked of the encoder."""

    table: Table
    decoder: Decoder

    def rows(self, mnemonic: str) -> Sequence[Row]:
        """Return the rows that have a mnemonic."""
        ...

    def mnemonics(self) -> Iterable[str]:
        """Return all mnemonics."""
        ...

    def matches(self, text: str) -> tuple[Sequence[Match], Sequence[str]]:
        """Return the ways to read texts that differ from this one in numbers only, and its numbers."""
        ...

    def reads(self, text: str, address: int) -> bool:
        """Say whether a text has a word."""
        ...


def refusal(text: str, address: int, reader: Reader) -> str:
    """Return the message for a normal text without labels that no form prints."""
    name = mnemonic_of(text)
    arch = reader.table.arch
    rows = reader.rows(name)
    if not rows:
        near = get_close_matches(name, [m for m in reader.mnemonics() if m], n=4, cutoff=0.5)
        return f"{text!r}: {arch} has no instruction {name!r}" + (f"; near it: {', '.join(near)}" if near else "")
    why = (
        _guard(text)
        or _number(text, address, reader)
        or _modifier(text, name, rows, arch)
        or _together(text, address, name, reader)
    )
    if why:
        return f"{text!r}: {why}"
    examples = dict.fromkeys(x for row in rows if (x := reader.decoder.text(_default(row))))
    near = get_close_matches(text, list(examples), n=4, cutoff=0.0)
    return f"{text!r}: no form of {name} of {arch} reads like this; the nearest are\n" + "\n".join(f"  {n}" for n in near)


def _guard(text: str) -> str:
    m = re.match(r"@!?(U?P(?!T |[0-6] )\w+) ", text)
    if not m:
        return ""
    kind = m[1].rstrip("0123456789T") or m[1]
    return f"{m[1]} is no predicate to guard an instruction: {kind}0 to {kind}6 and {kind}T"


def _default(row: Row) -> int:
    return int(row.notes.get("default", "0"), 0) & ~row.mask | row.value | NO_CONTROL


def _number(text: str, address: int, reader: Reader) -> str:
    """Return what is wrong with the numbers of a text that is one of the table but for them."""
    matches, tokens = reader.matches(text)
    best: list[str] = []
    for match in matches:
        if match.reading(tokens, reader.decoder) is None:
            continue
        wrong: list[str] = []
        for slot, values in match.values:
            if field_bits(values.field, tokens[slot], values.sign) is None:
                wrong.append(_misfit(values.field, tokens[slot], values.sign, 0))
        for slot, f, sign in match.relative:
            if field_bits(f, tokens[slot], sign, address) is None:
                wrong.append(_misfit(f, tokens[slot], sign, address))
        if not wrong:
            wrong = [_differently(match, tokens, address, reader)]
        if not best or len(wrong) < len(best):
            best = wrong
    return "; ".join(dict.fromkeys(best))


def _differently(match: Match, tokens: Sequence[str], address: int, reader: Reader) -> str:
    """Say what the disassembler prints for a word whose numbers all fit."""
    for word in match.tries(tokens, address, reader.decoder):
        text = reader.decoder.text(word, address)
        if text is not None:
            return f"no word reads like this; with these operands {match.matcher.row.name} reads {text!r}"
    return f"{match.matcher.row.name} has no word with these operands and modifiers together"


def _misfit(f: Field, token: str, sign: str, address: int) -> str:
    """Say why a number is none of a field."""
    if f.kind in FLOAT_KINDS:
        return _no_float(f.kind, token, sign)
    top = (1 << f.width) - 1
    if f.kind in REGISTERS:
        return f"{f.kind}{token} is not there: {f.kind}0 to {f.kind}{top - 1} and {f.kind}{REGISTERS[f.kind]}"
    number = integer(token, sign)
    if number is None:
        return f"{sign}{token} stands where an integer is wanted"
    low, high = (0, top) if f.kind == "u" else (-(top + 1 >> 1), top >> 1)
    start = f.offset + address if f.kind == "r" else f.offset
    low, high = (low << f.shift) + start, (high << f.shift) + start
    if not low <= number <= high:
        return f"{sign}{token} is out of range: {low:#x} to {high:#x}"
    return f"{sign}{token} is not {start:#x} plus a multiple of {1 << f.shift}" if start else (
        f"{sign}{token} is not a multiple of {1 << f.shift}"
    )  # fmt: skip


def _no_float(kind: str, token: str, sign: str) -> str:
    number = f"{sign}{token}"
    try:
        bits = nearest_float(kind, token)
    except ValueError:
        return f"{number} stands where a decimal number is wanted"
    if bits is None:
        return f"{number} is beyond the numbers of {_FLOATS[kind]}"
    near = format_float(kind, bits | (1 << (FLOAT_KINDS[kind][0] - 1) if sign == "-" else 0)).strip()
    return f"{number} is not a number of {_FLOATS[kind]}; the nearest is {near}"


def _vocabulary(rows: Iterable[Row]) -> set[str]:
    words: set[str] = set()
    for row in rows:
        for piece in row.pieces:
            for template in piece.table.values():
                for part in template:
                    if isinstance(part, str):
                        words.update(re.findall(r"\.[A-Za-z0-9_?]+", part))
    return words


def _modifier(text: str, name: str, rows: Sequence[Row], arch: str) -> str:
    """Name modifiers that no form of the mnemonic has."""
    known = _vocabulary(rows)
    strange = [m for m in dict.fromkeys(_MODIFIER.findall(text)) if m not in known]
    if not strange:
        return ""
    shown = sorted(m for m in known if "INVALID" not in m and "?" not in m)
    near = get_close_matches(strange[0], shown, n=8, cutoff=0.4) or shown
    listed = ", ".join(near[:12]) + (", …" if len(near) > 12 else "")
    return (
        f"{name} of {arch} has no modifier {' and no '.join(strange)}; {'it has' if near else 'it has none'} {listed}".rstrip()
    )


def _together(text: str, address: int, name: str, reader: Reader) -> str:
    """Say which modifiers do not go together, or in which order they are written."""
    m = _HEAD.match(text)
    modifiers = re.findall(r"\.[A-Za-z0-9_?]+", m[2]) if m else []
    once = list(dict.fromkeys(modifiers))
    if m is None or not 0 < len(once) <= _TOGETHER:
        return ""
    if len(once) < len(modifiers) and reader.reads(other := m[1] + "".join(once) + m[3], address):
        twice = [o for o in once if modifiers.count(o) > 1]
        return f"{', '.join(twice)} {'is' if len(twice) == 1 else 'are'} written more than once; there is {other!r}"
    if len(modifiers) > _TOGETHER:
        return ""
    if len(modifiers) <= 5:
        for order in permutations(modifiers):
            if reader.reads(other := m[1] + "".join(order) + m[3], address):
                return f"its modifiers are written in this order: {other!r}"
    for gone in range(1, len(modifiers) + 1):
        for kept in combinations(modifiers, len(modifiers) - gone):
            if reader.reads(other := m[1] + "".join(kept) + m[3], address):
                rest = list(modifiers)
                for k in kept:
                    rest.remove(k)
                others = [k for k in kept if k not in rest]
                what = (
                    f"{', '.join(rest)} together with {', '.join(others)}"
                    if others
                    else f"{', '.join(rest)} {'more than once' if kept else 'with these operands'}"
                )
                return f"no form of {name} has {what}; there is {other!r}"
    return ""
