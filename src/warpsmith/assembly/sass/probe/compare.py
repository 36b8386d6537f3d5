"""Compare two tables: what a new version of the disassembler renamed, lost, gained or prints differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.control import NO_CONTROL
from warpsmith.assembly.sass.decode import Decoder

if TYPE_CHECKING:
    from warpsmith.assembly.sass.table import Table

__all__ = ["Difference", "compare_tables"]


@final
@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: `kind` is `lost`, `new`, `renamed` or `changed`."""

    kind: str
    name: str
    word: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.kind:8} {self.name}  {self.word:#034x}  {self.before or '-'}  ->  {self.after or '-'}"


def compare_tables(old: Table, new: Table) -> list[Difference]:
    """Return the differences on the words that the rows of both tables were learned from, in order of class."""
    first, second = Decoder(old), Decoder(new)
    words = {int(r.notes[k], 0) | NO_CONTROL for t in (old, new) for r in t.rows for k in ("seed", "default") if k in r.notes}
    out: list[Difference] = []
    for word in sorted(words):
        a, b = first.form(word), second.form(word)
        before, after = a.text(word, 0) if a else "", b.text(word, 0) if b else ""
        if a and b:
            if a.row.name != b.row.name:
                out.append(Difference("renamed", f"{a.row.name} -> {b.row.name}", word, before, after))
            elif before != after:
                out.append(Difference("changed", a.row.name, word, before, after))
        elif a:
            out.append(Difference("lost", a.row.name, word, before, ""))
        elif b:
            out.append(Difference("new", b.row.name, word, "", after))
    return sorted(out, key=lambda d: (d.kind, d.name, d.word))
