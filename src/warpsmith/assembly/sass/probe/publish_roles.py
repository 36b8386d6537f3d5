"""Derive the file of register roles of an architecture: every form of its table is asked for, inherited ones aside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from warpsmith.assembly.sass.probe.liveness import LifeRanges
from warpsmith.assembly.sass.probe.oracle import Oracle
from warpsmith.assembly.sass.probe.roles import learn_roles
from warpsmith.assembly.sass.roles import FormRoles, Rule, form_text, load_roles, parse_form
from warpsmith.assembly.sass.table import FOLDER, load_table
from warpsmith.assembly.sass.table_text import key_text
from warpsmith.base.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from warpsmith.assembly.sass.row import Row

__all__ = ["STEERING", "publish_roles"]

STEERING = frozenset(
    (
        "BPT",
        "BRA",
        "BREAK",
        "BRX",
        "BRXU",
        "BSSY",
        "BSYNC",
        "CALL",
        "EXIT",
        "JMP",
        "JMX",
        "JMXU",
        "KILL",
        "PREEXIT",
        "RET",
        "RTT",
        "WARPSYNC",
        "YIELD",
    )
)
"""Mnemonics that steer the flow of control: life ranges behind them need a function of their own."""
_BATCH = 40

_HEADER = """\
# Registers that the forms of {arch} read and write: life ranges that nvdisasm {version} gives for words made for it.
# Columns, separated by tabs; a dash is an empty one; the grammar is explained in docs/design/sass.md:
#   class  key  slots  implicit
"""


def publish_roles(
    arch: str,
    out: Path,
    *,
    tables: Path = FOLDER,
    inherit: str | None = None,
    resume: bool = False,
    tell: Callable[[int, int], None] = lambda _a, _b: None,
) -> list[str]:
    """Write `out/<table>.tsv`; return remarks on forms of which something stays unknown.

    Forms that are the same in the table of `inherit` are taken from its file; with `resume`, so are those that the file states
    already with nothing unknown. `tell(done, all)` is called as the work goes on.
    """
    table = load_table(arch, tables)
    base = {(r.name, key_text(r)): r for r in load_table(inherit, tables).rows} if inherit else {}
    known = load_roles(inherit, out) if inherit else {}
    rows = [r for r in table.rows if base.get((r.name, key_text(r))) != r or (r.name, key_text(r)) not in known]
    oracle, ranges = Oracle(table.arch), LifeRanges(table.arch)
    lines: dict[tuple[str, str], str] = {}
    if resume and (out / f"{table.arch}.tsv").exists():
        lines = _settled(out / f"{table.arch}.tsv", {(r.name, key_text(r)) for r in rows})
        rows = [r for r in rows if (r.name, key_text(r)) not in lines]
    log: list[str] = []
    done = 0
    for batch, alone in _batches(rows):
        for row, roles, remarks in learn_roles(batch, oracle, ranges, alone=alone):
            learned = _callee(row, roles)
            log += [f"{row.name} {key_text(row)}: {r}" for r in remarks]
            if known.get((row.name, key_text(row))) != learned:
                lines[row.name, key_text(row)] = form_text(row.name, key_text(row), learned)
        done += len(batch)
        tell(done, len(rows))
    head = _HEADER.format(arch=table.arch, version=oracle.version)
    body = ([f"inherit {inherit}"] if inherit else []) + [lines[k] for k in sorted(lines)]
    write_whole(out / f"{table.arch}.tsv", (head + "\n".join(body) + "\n").encode())
    return log


def _settled(path: Path, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the rows of a file that are wanted and leave nothing unknown."""
    out: dict[tuple[str, str], str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", "inherit ")):
            key, roles = parse_form(line)
            if key in wanted and roles.implicit.table and all(s.rule.table for s in roles.slots):
                out[key] = line
    return out


def _batches(rows: Sequence[Row]) -> Iterator[tuple[list[Row], bool]]:
    for alone in (False, True):
        mine = [r for r in rows if (r.notes.get("mnemonic", "").split("/")[0] in STEERING) == alone]
        for start in range(0, len(mine), _BATCH):
            yield mine[start : start + _BATCH], alone


def _callee(row: Row, roles: FormRoles) -> FormRoles:
    """Leave out what the disassembler assumes of a function that is called: its registers are not the instruction's."""
    if row.notes.get("mnemonic") != "CALL":
        return roles
    own = Rule((), {0: "r1"})
    slots = tuple(replace(s, rule=own if s.group == "P" else _reads(s.rule)) for s in roles.slots)
    return FormRoles(slots, Rule((), {}))


def _reads(rule: Rule) -> Rule:
    return Rule(rule.bits, {k: text.partition("w")[0] or "-" for k, text in rule.table.items()})
