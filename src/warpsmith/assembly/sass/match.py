"""Match text against the pieces of a form: the inverse of printing."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.floats import FLOAT_KINDS
from warpsmith.assembly.sass.row import Row, gather, scatter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from warpsmith.assembly.sass.row import Field, Template

__all__ = ["Matcher", "field_bits"]

_INTEGER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)")
_FLOAT = re.compile(r"[+-](?:INF|QNAN|SNAN) ?|-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?: (?=,|$))?")
_LABEL = re.compile(r"`\(([^)]+)\)|-?0x[0-9a-f]+|[.A-Za-z_][\w.$]*|-?\d+")
_REGISTER = {kind: re.compile(rf"{kind}(\d+|{'Z' if kind.endswith('R') else 'T'})(?![\w])") for kind in ("R", "UR", "P", "UP")}


def field_bits(f: Field, token: str, address: int, labels: Mapping[str, int]) -> int | None:
    """Return the bits of a field whose text is `token`; None if it has no such value."""
    if f.kind in FLOAT_KINDS:
        return _float_bits(f.kind, token.strip())
    if f.kind in _REGISTER:
        rest = token[len(f.kind) :]
        if not rest.isdigit():
            return (1 << f.width) - 1
        return int(rest) if int(rest) < (1 << f.width) - 1 else None
    if f.kind == "r" and not re.match(r"-?\d", token):
        target = labels.get(token[2:-1] if token.startswith("`(") else token)
        if target is None:
            return None
        number = target - address
    else:
        number = int(token, 0) - (address if f.kind == "r" else 0)
    number -= f.offset
    if number & ((1 << f.shift) - 1):
        return None
    number >>= f.shift
    low, high = (0, (1 << f.width) - 1) if f.kind == "u" else (-(1 << (f.width - 1)), (1 << (f.width - 1)) - 1)
    return number & ((1 << f.width) - 1) if low <= number <= high else None


def _float_bits(kind: str, token: str) -> int | None:
    width, exponent = FLOAT_KINDS[kind]
    mantissa = width - 1 - exponent
    sign = 1 << (width - 1) if token.startswith("-") else 0
    infinite = ((1 << exponent) - 1) << mantissa
    if token[1:] in ("INF", "QNAN", "SNAN"):
        return sign | infinite | {"INF": 0, "QNAN": (1 << mantissa) - 1, "SNAN": 1}[token[1:]]
    value = float(token)
    try:
        if kind == "f16":
            return int.from_bytes(struct.pack("<e", value), "little")
        if kind == "f32":
            return int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:
        return None
    bits = int.from_bytes(struct.pack("<d", value), "little")
    if kind == "f64":
        return bits >> 32 if not bits & 0xFFFFFFFF else None
    single = int.from_bytes(struct.pack("<f", value), "little")
    return single >> 16 if not single & 0xFFFF else None


@final
class Matcher:
    """One form, prepared for matching."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.default = int(row.notes.get("default", "0"), 0) & ~row.mask | row.value
        """What bits are that the text does not determine."""
        preferred = [s.of(self.default) for s in row.selectors]
        self.pieces: list[tuple[tuple[int, ...], list[tuple[Template, list[tuple[int, ...]]]]]] = []
        for piece in row.pieces:
            by_text: dict[Template, list[tuple[int, ...]]] = {}
            liked = tuple([preferred[i] for i in piece.selectors])
            for key in sorted(piece.table, key=lambda k: (k != liked, k)):
                by_text.setdefault(piece.table[key], []).append(key)
            options = sorted(by_text.items(), key=lambda kv: -sum(len(t) if isinstance(t, str) else 3 for t in kv[0]))
            self.pieces.append((piece.selectors, options))

    def words(self, text: str, address: int, labels: Mapping[str, int]) -> Iterator[int]:
        """Yield the words whose text may be this one, the likeliest first."""
        for picked, holes in self._match(0, 0, text, {}, {}):
            word = self._word(picked, holes, address, labels)
            if word is not None:
                yield word

    def _match(
        self, number: int, at: int, text: str, picked: dict[int, int], holes: dict[int, str]
    ) -> Iterator[tuple[dict[int, int], dict[int, str]]]:
        if number == len(self.pieces):
            if at == len(text):
                yield picked, holes
            return
        selectors, options = self.pieces[number]
        for template, keys in options:
            end = _read(self.row, template, text, at, found := {})
            if end is None or any(holes.get(i, t) != t for i, t in found.items()):
                continue
            for key in keys:
                if all(picked.get(s, v) == v for s, v in zip(selectors, key, strict=True)):
                    now = {**picked, **dict(zip(selectors, key, strict=True))} if selectors else picked
                    yield from self._match(number + 1, end, text, now, {**holes, **found} if found else holes)

    def _word(self, picked: dict[int, int], holes: dict[int, str], address: int, labels: Mapping[str, int]) -> int | None:
        row = self.row
        word = self.default
        for index, selector in enumerate(row.selectors):
            value = picked.get(index)
            if value is None:
                continue
            if not selector.predicates:
                word ^= scatter(gather(word, selector.bits) ^ value, selector.bits)
            elif value and selector.predicates[value - 1][0] == "eq":
                word ^= scatter(gather(word, selector.bits) ^ selector.predicates[value - 1][1][0], selector.bits)
        for index, token in holes.items():
            f = row.fields[index]
            bits = field_bits(f, token, address, labels)
            if bits is None:
                return None
            word ^= scatter(gather(word, f.bits) ^ bits, f.bits)
        wanted = all(row.selectors[i].of(word) == v for i, v in picked.items())
        return word if wanted and row.covers(word) else None


def _read(row: Row, template: Template, text: str, at: int, found: dict[int, str]) -> int | None:
    """Match a template at a position; return where it ends and put the holes' texts into `found`."""
    for part in template:
        if isinstance(part, str):
            if not text.startswith(part, at):
                return None
            at += len(part)
            continue
        kind = row.fields[part].kind
        pattern = _FLOAT if kind in FLOAT_KINDS else _LABEL if kind == "r" else _REGISTER.get(kind, _INTEGER)
        m = pattern.match(text, at)
        if not m or found.setdefault(part, m[0]) != m[0]:
            return None
        at = m.end()
    return at
