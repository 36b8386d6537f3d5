"""From seed words to a table on disk: learn, order, add control rules, write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.sass.probe.arrange import arrange
from warpsmith.assembly.sass.probe.controls import study_controls
from warpsmith.assembly.sass.probe.learn import learn
from warpsmith.assembly.sass.probe.oracle import Oracle
from warpsmith.assembly.sass.probe.store import Store
from warpsmith.assembly.sass.probe.write import table_text
from warpsmith.assembly.sass.table import parse_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from warpsmith.assembly.sass.row import Row
    from warpsmith.toolchain.find import Tool

__all__ = ["publish"]


def publish(
    arch: str,
    words: Iterable[int],
    folder: Path,
    state: Path,
    *,
    resume: bool = False,
    inherit: str | None = None,
    since: Sequence[Row] = (),
    tool: Tool | None = None,
    wander: bool = True,
    tell: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> list[str]:
    """Write `folder/<arch>.tsv` and return the log of what was not explained.

    `words` are seeds. `state` keeps what was learned; with `resume` it is used. `inherit` names a table in the folder
    whose rows are taken over where they hold, and not repeated. `since` are the rows of a table of the same architecture
    by an earlier disassembler, taken over where they hold for `tool`, and written with the rest. `wander` follows flipped
    bits into classes that no seed belongs to.
    """
    oracle = Oracle(arch, tool)
    store = Store(state, f"{arch} nvdisasm {oracle.version}", resume=resume)
    parent = (inherit, parse_table(inherit, folder).rows) if inherit else None
    learned = learn(oracle, words, store, tell, parent=parent[1] if parent else since, wander=wander)
    rows = arrange(oracle, learned)
    issues = study_controls(oracle, rows)
    text = table_text(arch, f"nvdisasm {oracle.version}", rows, issues, parent)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{arch}.tsv"
    draft = target.with_suffix(".tsv.part")
    draft.write_text(text, encoding="utf-8")
    draft.replace(target)
    return learned.log
