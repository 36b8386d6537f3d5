"""Write tables: a file of its own for an architecture, or what differs from another's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warpsmith.assembly.sass.table_text import COLUMNS, Shared, row_text, shared_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warpsmith.assembly.sass.row import Row

__all__ = ["table_text"]

_LEGEND = """\
# SASS of {arch}: one form of an instruction a line, found by probing {tool}.
# Columns, separated by tabs; a dash is an empty one; the grammar is explained in docs/design/sass.md:
#   {columns}
# A bit range is low+width, the most significant run first; % lines are issue tables, @ lines texts that several rows share.
"""


def table_text(
    arch: str, tool: str, rows: Sequence[Row], issues: Mapping[str, int], parent: tuple[str, Sequence[Row]] | None
) -> str:
    """Return the text of a table; with a parent, only the classes whose rows are not the same there."""
    lines = [_LEGEND.format(arch=arch, tool=tool, columns="  ".join(COLUMNS)).rstrip()]
    lines += [f"%{name}\t{value:#x}" for name, value in issues.items()]
    if parent:
        name, inherited = parent
        theirs, ours = _by_class(inherited), _by_class(rows)
        equal = {k for k in ours if k in theirs and [_bare(r) for r in ours[k]] == [_bare(r) for r in theirs[k]]}
        lines.append(f"inherit {name}")
        lines += [f"drop {k}" for k in theirs if k not in ours]
        rows = [r for r in rows if r.name not in equal]
    shared: Shared = {}
    text = [row_text(r, shared) for r in rows]
    lines += [shared_text(k, v) for k, v in sorted(shared.items())]
    return "\n".join([*lines, *text]) + "\n"


def _by_class(rows: Sequence[Row]) -> dict[str, list[Row]]:
    out: dict[str, list[Row]] = {}
    for r in rows:
        out.setdefault(r.name, []).append(r)
    return out


def _bare(row: Row) -> Row:
    """Return the row without provenance, for comparison."""
    keep = {k: v for k, v in row.notes.items() if k in ("write", "read", "issues")}
    return replace(row, notes=keep)
