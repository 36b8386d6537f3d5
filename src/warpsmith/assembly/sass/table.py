"""Instruction tables: rows of all forms of an architecture, read from text, checked, and indexed by opcode.

A file is text: comments (`#`), `inherit OTHER` (all rows of another architecture), `drop CLASS` (but for those of a
class), shared tables
(`@name` and entries) and rows. Rows of a class that is inherited replace the inherited ones. The legend is in
`docs/design/sass.md`.
"""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.refused import load_refused, with_refused
from warpsmith.assembly.sass.row import Row, scatter
from warpsmith.assembly.sass.table_text import parse_row, parse_shared
from warpsmith.base.arch import parse_arch
from warpsmith.base.errors import CapabilityError, DeclarationError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from warpsmith.assembly.sass.table_text import Shared

__all__ = ["FOLDER", "Table", "check_row", "load_table", "parse_table", "table_files", "table_names"]

FOLDER = Path(__file__).with_name("tables")
"""The tables that come with the package: `<architecture>.tsv`, or the same compressed as `.tsv.xz`."""

_SHOWN = (1 << 105) - 1
_REUSE = 7 << 122


@final
@dataclass(frozen=True, slots=True)
class Table:
    """All forms of an architecture, in the order in which they are tried."""

    arch: str
    rows: tuple[Row, ...]
    by_opcode: dict[int, tuple[Row, ...]]
    """Bits 0–11 -> forms that may cover a word with them."""

    def row_of(self, word: int) -> Row | None:
        """Return the first form that covers the word and knows its values."""
        for row in self.by_opcode.get(word & 0xFFF, ()):
            if row.covers(word) and row.template(word) is not None:
                return row
        return None


def table_names() -> tuple[str, ...]:
    """Return the architectures that have a table, those of the package."""
    return tuple(sorted((p.name.partition(".")[0] for p in FOLDER.glob("sm_*.tsv*")), key=lambda n: (parse_arch(n).number, n)))


def _file(folder: Path, name: str) -> Path | None:
    return next((p for p in (folder / f"{name}.tsv", folder / f"{name}.tsv.xz") if p.exists()), None)


def load_table(arch: str, folder: Path = FOLDER) -> Table:
    """Return the table of an architecture, read once; `sm_90` and `sm_90a` share one.

    Raises `CapabilityError` where the folder has none, `DeclarationError` for a file that contradicts the legend.
    """
    return _load(_name(arch, folder), folder.absolute())


@cache
def _load(name: str, folder: Path) -> Table:
    return parse_table(name, folder)


def table_files(arch: str, folder: Path = FOLDER) -> list[Path]:
    """Return the files that make up the table of an architecture: its own, those it inherits from, what it refuses."""
    out: list[Path] = []
    name: str | None = _name(arch, folder)
    refused = folder / "refused" / f"{name}.tsv"
    while name and (path := _file(folder, name)) and path not in out:
        out.append(path)
        name = next((_named(line) for line in _text(path).splitlines() if line.startswith("inherit ")), None)
    return [*out, refused] if refused.exists() else out


def _name(arch: str, folder: Path) -> str:
    parsed = parse_arch(arch)
    for name in (arch, f"sm_{parsed.number}a", f"sm_{parsed.number}"):
        if _file(folder, name):
            return name
    have = sorted(p.name.partition(".")[0] for p in folder.glob("sm_*.tsv*"))
    raise CapabilityError(f"there is no SASS table for {arch}; tables in {folder.name}: {', '.join(have) or 'none'}")


def parse_table(name: str, folder: Path) -> Table:
    """Read the file of table `name` in a folder, and those it inherits from."""
    rows = with_refused(_rows(name, folder, ()), load_refused(name, folder / "refused"))
    index: dict[int, list[Row]] = {}
    for row in rows:
        free = 0xFFF & ~row.mask
        spare = free
        while True:  # all values of opcode bits that the key leaves open
            index.setdefault(row.value & 0xFFF | spare, []).append(row)
            if not spare:
                break
            spare = (spare - 1) & free
    return Table(name, tuple(rows), {k: tuple(v) for k, v in index.items()})


def _rows(name: str, folder: Path, seen: tuple[str, ...]) -> list[Row]:
    path = _file(folder, name)
    if path is None or name in seen:
        raise DeclarationError(
            f"table {seen[-1] if seen else name} inherits from {name}, which is {'itself' if path else 'not there'}"
        )
    return _read(_text(path).splitlines(), path, folder, (*seen, name))


def _text(path: Path) -> str:
    try:
        return lzma.decompress(path.read_bytes()).decode() if path.suffix == ".xz" else path.read_text(encoding="utf-8")
    except (OSError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the table cannot be read: {error}") from error


def _read(lines: Iterable[str], path: Path, folder: Path, seen: tuple[str, ...]) -> list[Row]:
    inherited: list[Row] = []
    own: list[Row] = []
    dropped: set[str] = set()
    shared: Shared = {}
    issues: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        try:
            if not line or line.startswith("#"):
                continue
            if line.startswith("%"):
                name, _, value = line[1:].partition("\t")
                issues[name] = int(value, 16)
            elif line.startswith("@"):
                key, table = parse_shared(line)
                shared[key] = table
            elif line.startswith("inherit "):
                inherited = _rows(_named(line), folder, seen)
            elif line.startswith("drop "):
                dropped.add(_named(line))
            else:
                row = parse_row(line, shared)
                check_row(row)
                own.append(row)
                if (issue := row.notes.get("issue")) is not None:
                    if issue not in issues:
                        raise DeclarationError(
                            f"the row names the set of control bits {issue!r}, and no line %{issue} stands above"
                        )
                    row.notes["issues"] = f"{issues[issue]:#x}"
        except (DeclarationError, KeyError, ValueError) as error:
            raise DeclarationError(f"{path.name}:{number}: {error}") from error
    replaced = dropped | {r.name for r in own}
    return [r for r in inherited if r.name not in replaced] + own


def _named(line: str) -> str:
    word, *names = line.split()
    if len(names) != 1:
        raise DeclarationError(f"`{word}` takes one name, and here are {len(names)}")
    return names[0]


def check_row(row: Row) -> None:
    """Raise `DeclarationError` unless every bit that text may show is owned once or ignored, and tables fit their selectors."""
    owned = row.mask
    for what, bits in (
        ("ignored", row.ignored),
        *((f"field {i}", _bits(f.bits)) for i, f in enumerate(row.fields)),
        *((f"selector {i}", _bits(s.bits)) for i, s in enumerate(row.selectors) if not s.predicates),
    ):
        if owned & bits:
            raise DeclarationError(f"{row.name}: {what} owns bits that have an owner: {owned & bits:#x}")
        owned |= bits
    if owned & ~_REUSE != _SHOWN:
        raise DeclarationError(
            f"{row.name}: bits without an owner: {_SHOWN & ~owned:#x}, beyond the text: {owned & ~_SHOWN & ~_REUSE:#x}"
        )
    if row.value & ~row.mask:
        raise DeclarationError(f"{row.name}: the key's value has bits outside its mask: {row.value & ~row.mask:#x}")
    for piece in row.pieces:
        if any(i >= len(row.selectors) for i in piece.selectors):
            raise DeclarationError(f"{row.name}: a piece names a selector beyond the {len(row.selectors)} there are")
        for key, template in piece.table.items():
            if len(key) != len(piece.selectors):
                raise DeclarationError(f"{row.name}: key {key} for {len(piece.selectors)} selectors")
            if any(isinstance(t, int) and t >= len(row.fields) for t in template):
                raise DeclarationError(f"{row.name}: a text names a field beyond the {len(row.fields)} there are")


def _bits(bits: tuple[tuple[int, int], ...]) -> int:
    return scatter(-1 & ((1 << sum(w for _, w in bits)) - 1), bits)
