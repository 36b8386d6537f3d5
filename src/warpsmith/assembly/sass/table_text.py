"""The text of table rows: what `table.py` reads and probing writes. The legend is in `docs/design/sass.md`."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, TypeVar

from warpsmith.assembly.sass.floats import FLOAT_KINDS
from warpsmith.assembly.sass.row import Bits, Field, Piece, Row, Selector
from warpsmith.base.errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from warpsmith.assembly.sass.row import Template

__all__ = [
    "COLUMNS",
    "Shared",
    "bits_text",
    "combinations_text",
    "key_text",
    "parse_bits",
    "parse_combinations",
    "parse_row",
    "parse_shared",
    "row_text",
    "shared_text",
]

COLUMNS = ("class", "key", "except", "fields", "selectors", "text", "ignored", "notes")
"""Columns of a row, separated by tabs; `-` is an empty one."""

KINDS = ("R", "UR", "P", "UP", "u", "s", "r", *FLOAT_KINDS)
_SPECIAL = re.compile(r"[\\{}<>;=]")
T = TypeVar("T")
_MANY = 4
"""A table of more entries than this stands on a line of its own, once."""

Shared = dict[str, dict[tuple[int, ...], "Template"]]
"""Name -> table used by several pieces."""


def bits_text(bits: Bits) -> str:
    """Return `low+width`, the most significant run first, runs joined by commas."""
    return ",".join(f"{low}+{width}" for low, width in reversed(bits))


def parse_bits(text: str) -> Bits:
    """Read what `bits_text` writes."""
    out: list[tuple[int, int]] = []
    for part in reversed(text.split(",")):
        m = re.fullmatch(r"(\d+)\+(\d+)", part)
        if not m or int(m[1]) + int(m[2]) > 128 or not int(m[2]):
            raise DeclarationError(f"bad bit range {part!r}; write low+width, e.g. 16+8")
        out.append((int(m[1]), int(m[2])))
    return tuple(out)


def _mask_text(mask: int, value: int) -> str:
    out: list[str] = []
    low = 0
    while mask >> low:
        if mask >> low & 1:
            width = 1
            while mask >> (low + width) & 1:
                width += 1
            out.append(f"{low}+{width}={value >> low & ((1 << width) - 1):#x}")
            low += width
        low += 1
    return " ".join(out) or "-"


def _parse_mask(text: str) -> tuple[int, int]:
    mask = value = 0
    for part in text.split() if text != "-" else ():
        where, _, number = part.partition("=")
        for low, width in parse_bits(where):
            new = ((1 << width) - 1) << low
            if mask & new:
                raise DeclarationError(f"bits {low}+{width} stand twice in {text!r}")
            mask |= new
            value |= int(number, 0) << low
            if int(number, 0) >> width:
                raise DeclarationError(f"{number} does not fit into {where}")
    return mask, value


def key_text(row: Row) -> str:
    """Return a row's `key` column; with its class it names the row."""
    return _mask_text(row.mask, row.value)


def combinations_text(combinations: Sequence[tuple[int, int]]) -> str:
    """Return combinations of bits (mask, value) as the `except` column writes them."""
    return " / ".join(_mask_text(m, v) for m, v in combinations) or "-"


def parse_combinations(text: str) -> tuple[tuple[int, int], ...]:
    """Read what `combinations_text` writes."""
    return tuple(_parse_mask(n) for n in text.split(" / ")) if text != "-" else ()


def _field_text(f: Field) -> str:
    return f"{f.kind}:{bits_text(f.bits)}" + (f"<<{f.shift}" if f.shift else "") + (f"{f.offset:+d}" if f.offset else "")


def _parse_field(text: str) -> Field:
    m = re.fullmatch(r"(\w+):((?:\d+\+\d+,)*\d+\+\d+)(?:<<(\d+))?((?:[+-]\d+)?)", text)
    if not m or m[1] not in KINDS:
        raise DeclarationError(f"bad field {text!r}; write kind:low+width with a kind of {', '.join(KINDS)}")
    return Field(parse_bits(m[2]), m[1], int(m[3] or 0), int(m[4] or 0))


def _selector_text(s: Selector) -> str:
    marks = [f"{name}:{'/'.join(f'{a:#x}' for a in args)}" for name, args in s.predicates]
    return bits_text(s.bits) + ("?" + "&".join(marks) if marks else "")


def _parse_selector(text: str) -> Selector:
    where, _, marks = text.partition("?")
    predicates: list[tuple[str, tuple[int, ...]]] = []
    for part in marks.split("&") if marks else ():
        name, _, args = part.partition(":")
        if name not in ("eq", "pow2"):
            raise DeclarationError(f"bad predicate {part!r}; write eq:0x1 or pow2:0x10000/0x80000000")
        predicates.append((name, tuple(int(a, 0) for a in args.split("/")) if args else ()))
    return Selector(parse_bits(where), tuple(predicates))


def _template_text(template: Template) -> str:
    return "".join(_SPECIAL.sub(r"\\\g<0>", t) if isinstance(t, str) else f"{{{t}}}" for t in template)


def _entries_text(table: Mapping[tuple[int, ...], Template]) -> str:
    return ";".join(f"{','.join(map(str, k))}={_template_text(v)}" for k, v in sorted(table.items()))


def shared_text(name: str, table: Mapping[tuple[int, ...], Template]) -> str:
    """Return the line of a shared table."""
    return f"@{name}\t{_entries_text(table)}"


def row_text(row: Row, shared: Shared) -> str:
    """Return the line of a row; tables of many entries are put into `shared`."""
    columns = (
        row.name,
        _mask_text(row.mask, row.value),
        combinations_text(row.nots),
        " ".join(_field_text(f) for f in row.fields) or "-",
        " ".join(_selector_text(s) for s in row.selectors) or "-",
        "".join(_piece_text(p, shared) for p in row.pieces),
        _ranges(row.ignored),
        " ".join(f"{k}={v}" for k, v in row.notes.items() if k != "issues") or "-",
    )
    return "\t".join(columns)


def _ranges(mask: int) -> str:
    return " ".join(part.partition("=")[0] for part in _mask_text(mask, 0).split())


def _piece_text(piece: Piece, shared: Shared) -> str:
    if not piece.selectors:
        return _template_text(piece.table[()])
    picks = " ".join(map(str, piece.selectors))
    if len(piece.table) <= _MANY:
        return f"<{picks}:{_entries_text(piece.table)}>"
    name = f"{zlib.crc32(_entries_text(piece.table).encode()):08x}"
    if shared.setdefault(name, dict(piece.table)) != piece.table:
        raise DeclarationError(f"two tables are called {name}")
    return f"<{picks}:@{name}>"


class _Reader:
    """Reads templates and pieces from a string."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def template(self, stop: str) -> Template:
        """Read up to, and not including, an unescaped character of `stop`."""
        out: list[str | int] = []
        plain = ""
        while self.at < len(self.text) and self.text[self.at] not in stop:
            c = self.text[self.at]
            if c == "\\":
                plain += self.text[self.at + 1 : self.at + 2]
                self.at += 2
            elif c == "{":
                end = self.text.index("}", self.at)
                if plain:
                    out.append(plain)
                    plain = ""
                out.append(int(self.text[self.at + 1 : end]))
                self.at = end + 1
            else:
                plain += c
                self.at += 1
        if plain:
            out.append(plain)
        return tuple(out)

    def entries(self, stop: str) -> dict[tuple[int, ...], Template]:
        """Read `key=template;…` up to `stop`."""
        out: dict[tuple[int, ...], Template] = {}
        while True:
            end = self.text.index("=", self.at)
            key = tuple(int(k) for k in self.text[self.at : end].split(","))
            self.at = end + 1
            if key in out:
                raise DeclarationError(f"key {key} stands twice in {self.text!r}")
            out[key] = self.template(";" + stop)
            if self.at >= len(self.text) or self.text[self.at] == stop:
                return out
            self.at += 1

    def pieces(self, shared: Shared) -> list[Piece]:
        """Read a whole `text` column."""
        out: list[Piece] = []
        while self.at < len(self.text):
            if self.text[self.at] != "<":
                out.append(Piece((), {(): self.template("<")}))
                continue
            end = self.text.index(":", self.at)
            picks = tuple(int(k) for k in self.text[self.at + 1 : end].split())
            self.at = end + 1
            if self.text[self.at] == "@":
                end = self.text.index(">", self.at)
                name = self.text[self.at + 1 : end]
                if name not in shared:
                    raise DeclarationError(f"there is no table @{name}")
                out.append(Piece(picks, shared[name]))
                self.at = end + 1
            else:
                out.append(Piece(picks, self.entries(">")))
                self.at += 1
        return out


def parse_shared(line: str) -> tuple[str, dict[tuple[int, ...], Template]]:
    """Read the line of a shared table."""
    name, _, text = line[1:].partition("\t")
    return name, _guarded(lambda: _Reader(text).entries("\n"), line)


def parse_row(line: str, shared: Shared) -> Row:
    """Read the line of a row; raise `DeclarationError` for what does not follow the legend."""
    columns = line.split("\t")
    if len(columns) != len(COLUMNS):
        raise DeclarationError(f"{len(columns)} columns instead of {len(COLUMNS)} ({', '.join(COLUMNS)})")
    name, key, nots, fields, selectors, text, ignored, notes = columns
    mask, value = _parse_mask(key)
    idle = 0
    for part in ignored.split() if ignored != "-" else ():
        for low, width in parse_bits(part):
            idle |= ((1 << width) - 1) << low
    split: Callable[[str], Sequence[str]] = lambda t: t.split() if t != "-" else ()  # noqa: E731
    return Row(
        name, mask, value,
        parse_combinations(nots),
        tuple(_parse_field(f) for f in split(fields)),
        tuple(_parse_selector(s) for s in split(selectors)),
        tuple(_guarded(lambda: _Reader(text).pieces(shared), text)),
        idle,
        {k: v for k, _, v in (n.partition("=") for n in split(notes))},
    )  # fmt: skip


def _guarded(read: Callable[[], T], text: str) -> T:
    try:
        return read()
    except ValueError as error:
        raise DeclarationError(f"unfinished text {text[:60]!r}: {error}") from error
