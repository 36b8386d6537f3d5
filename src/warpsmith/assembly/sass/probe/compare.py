"""Compare two tables: what a new version of the disassembler renamed, rejects, gained or prints differently."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.control import NO_CONTROL
from warpsmith.assembly.sass.decode import Decoder
from warpsmith.assembly.sass.probe.adopt import entries
from warpsmith.assembly.sass.tokens import tokenize

if TYPE_CHECKING:
    from collections.abc import Iterable

    from warpsmith.assembly.sass.probe.oracle import Oracle
    from warpsmith.assembly.sass.row import Row
    from warpsmith.assembly.sass.table import Table

__all__ = ["Difference", "compare_tables"]


@final
@dataclass(frozen=True, slots=True)
class Difference:
    """One difference, on the word of least value that shows it.

    `kind` is `renamed` (the instruction class has another name), `changed` (another text), `new`, `lost` (the second table
    has no form for it), or `illegal` (the disassembler of the second table rejects it).
    """

    kind: str
    name: str
    word: int
    before: str
    after: str
    words: int = 1
    """How many of the words tried show the same: the same class, and the same tokens gone and come."""

    def __str__(self) -> str:
        more = f"  ({self.words} words)" if self.words > 1 else ""
        return f"{self.kind:8} {self.name}  {self.word:#034x}  {self.before or '-'}  ->  {self.after or '-'}{more}"


def compare_tables(old: Table, new: Table, oracle: Oracle | None = None) -> list[Difference]:
    """Return the differences in order of kind and class.

    Tried are the words that the rows of both tables were learned from, with every entry of every table and the extremes of
    every field. `oracle`, the disassembler of the second table, tells words that have become illegal from those that the
    table merely lacks.
    """
    first, second = Decoder(old), Decoder(new)
    found: list[Difference] = []
    for word in sorted({w for t in (old, new) for w in _words(t.rows)}):
        a, b = first.form(word), second.form(word)
        before, after = a.text(word, 0) if a else "", b.text(word, 0) if b else ""
        if a and b:
            if a.row.name != b.row.name:
                found.append(Difference("renamed", f"{a.row.name} -> {b.row.name}", word, before, after))
            if before != after:
                found.append(Difference("changed", b.row.name, word, before, after))
        elif a:
            found.append(Difference("lost", a.row.name, word, before, ""))
        elif b:
            found.append(Difference("new", b.row.name, word, "", after))
    if oracle:
        lost = [d for d in found if d.kind == "lost"]
        gone = {d for d, text in zip(lost, oracle.texts([d.word for d in lost]), strict=True) if text is None}
        found = [replace(d, kind="illegal") if d in gone else d for d in found]
    return _grouped(found)


def _words(rows: Iterable[Row]) -> Iterable[int]:
    for row in rows:
        bases = [int(row.notes[k], 0) | NO_CONTROL for k in ("seed", "default") if k in row.notes]
        yield from bases
        if bases:
            yield from entries(row, bases[-1])


def _grouped(found: Iterable[Difference]) -> list[Difference]:
    groups: dict[tuple[str, str, frozenset[str]], list[Difference]] = {}
    for d in found:
        # of words that one side lacks the texts differ in all; the class says enough
        tokens = frozenset({*tokenize(d.before)} ^ {*tokenize(d.after)}) if d.kind == "changed" else frozenset[str]()
        groups.setdefault((d.kind, d.name, tokens), []).append(d)
    out = [replace(ds[0], words=len(ds)) for ds in groups.values()]
    return sorted(out, key=lambda d: (d.kind, d.name, d.word))
