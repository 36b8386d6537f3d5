"""Add forms to a table for words that it does not know; what it has stays as it is, byte for byte.

A new form is tried after all others, so that it prints only what was unknown. Tables that inherit from the extended one take
the new forms over where they hold for them; where not, they keep what they had.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

from warpsmith.assembly.sass.probe.adopt import holds
from warpsmith.assembly.sass.probe.arrange import arrange
from warpsmith.assembly.sass.probe.controls import study_controls
from warpsmith.assembly.sass.probe.learn import learn
from warpsmith.assembly.sass.probe.oracle import Oracle
from warpsmith.assembly.sass.probe.serve import serve
from warpsmith.assembly.sass.probe.store import Store
from warpsmith.assembly.sass.table import parse_table
from warpsmith.assembly.sass.table_text import Shared, row_text, shared_text
from warpsmith.base.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from warpsmith.assembly.sass.row import Row
    from warpsmith.toolchain.find import Tool

__all__ = ["Extended", "extend"]

Classes = dict[str, list["Row"]]


@final
@dataclass(slots=True)
class Extended:
    """What a table gained, class -> forms; the heirs that do not take classes over; what was not explained."""

    gained: dict[str, int] = field(default_factory=dict[str, int])
    kept: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    log: list[str] = field(default_factory=list[str])


def extend(
    arch: str,
    words: Iterable[int],
    folder: Path,
    state: Path,
    *,
    resume: bool = False,
    tool: Tool | None = None,
    tell: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Extended:
    """Learn the forms of those words that the table of `folder` does not know, and add them to its file."""
    oracle = Oracle(arch, tool)
    table = parse_table(arch, folder)
    store = Store(state, f"{arch} nvdisasm {oracle.version}", resume=resume)
    unknown = [w for w in words if table.row_of(w) is None]
    learned = learn(oracle, unknown, store, tell, wander=False)
    texts = [(w, answer) for w, answer in zip(unknown, oracle.texts(unknown), strict=True) if answer]
    rows = [r for r in arrange(oracle, learned) if any(r.covers(w) and r.text(w, at) == text for w, (at, text) in texts)]
    study_controls(oracle, rows)
    heirs = _heirs(table.arch, folder)
    before = {heir: _classes(heir, folder) for heir in heirs}
    path = folder / f"{table.arch}.tsv"
    text = path.read_text(encoding="utf-8")
    gaining = {r.name for r in rows} - _own(text)
    write_whole(path, _added(text, [*(r for r in table.rows if r.name in gaining), *rows]).encode())
    out = Extended(log=learned.log)
    for row in rows:
        out.gained[row.name] = out.gained.get(row.name, 0) + 1
    for heir in heirs:
        if kept := _keep(heir, before[heir], folder, tool):
            out.kept[heir] = kept
    return out


def _classes(name: str, folder: Path) -> Classes:
    out: Classes = {}
    for row in parse_table(name, folder).rows:
        out.setdefault(row.name, []).append(replace(row, refused=()))
    return out


def _own(text: str) -> set[str]:
    """Return the classes that the text of a table states itself."""
    lines = (line for line in text.splitlines() if line and line[0] not in "#%@")
    return {line.split("\t")[0] for line in lines if "\t" in line}


def _heirs(name: str, folder: Path) -> list[str]:
    """Return the tables that inherit from one, those that do so directly first."""
    parents: dict[str, str] = {}
    for path in sorted(folder.glob("sm_*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("inherit "):
                parents[path.stem] = line.split()[1]
    out = [name]
    for parent in out:
        out += [heir for heir, theirs in parents.items() if theirs == parent]
    return out[1:]


def _keep(heir: str, before: Classes, folder: Path, tool: Tool | None) -> list[str]:
    """Undo in a table the classes that it inherits anew and that do not hold for it; return them."""
    now = _classes(heir, folder)
    changed = {name: holds(rows) for name, rows in now.items() if before.get(name) != rows}
    strange = [name for name, tried in serve(Oracle(heir, tool), changed).items() if not tried]
    if strange:
        path = folder / f"{heir}.tsv"
        text = path.read_text(encoding="utf-8")
        drops = "".join(f"drop {name}\n" for name in strange if name not in before)
        at = text.index("\n", text.index("\ninherit ") + 1) + 1
        rows = [row for name in strange for row in before.get(name, ())]
        write_whole(path, _added(text[:at] + drops + text[at:], rows).encode())
    return strange


def _added(text: str, rows: Iterable[Row]) -> str:
    """Return the text of a table with more rows."""
    lines = text.splitlines()
    fresh = list(rows)
    shared: Shared = {}
    added = [row_text(row, shared) for row in fresh]
    have = {line.split("\t")[0] for line in lines if line and line[0] in "%@"}
    issues = {f"%{r.notes['issue']}": r.notes["issues"] for r in fresh if "issue" in r.notes}
    top = next((i for i, line in enumerate(lines) if line and line[0] != "#"), len(lines))
    lines[top:top] = [f"{name}\t{value}" for name, value in issues.items() if name not in have]
    lines += [t for k, v in sorted(shared.items()) if (t := shared_text(k, v)).split("\t")[0] not in have]
    return "\n".join([*lines, *added]) + "\n"
