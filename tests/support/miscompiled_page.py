"""The page docs/findings/ptxas-miscompiles.md: the patterns, and the programs of each with what is said of the broken one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from miscompiled_cases import ROOT, cases
from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.miscompiled import miscompiled, table

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.miscompiled.table import Release


def body_of() -> str:
    """Return the body of the page: the table of patterns, then the programs of each."""
    t = table()
    rows, sections = "", ""
    for e in t.entries:
        case = cases()[e.name]
        (found,) = miscompiled(parse(case.text("broken"), "k.ptx"), _shown(e.last))
        seen = f"{_shown(e.first)} to {_shown(e.last)}"
        rows += f"| [`{e.name}`](#{e.name}) | {seen} | {e.makes} | {e.instead} |\n"
        sections += f"\n## {e.name}\n\n```ptx\n{_program(case.before, case.broken)}```\n\n```text\n{found}\n```\n\n"
        sections += f"Repaired:\n\n```ptx\n{_program(case.before, case.repaired)}```\n"
    first, last = _shown(t.measured[0]), _shown(t.measured[-1])
    head = (ROOT / "page.md").read_text("utf-8")
    return head.format(rows=rows, releases=len(t.measured), first=first, last=last, targets=", ".join(t.targets)) + sections


def _shown(at: Release) -> str:
    return f"{at[0]}.{at[1]}"


def _program(before: str, body: str) -> str:
    return "".join(f"{line.removeprefix(' ')}\n" for line in (*before.splitlines(), *body.splitlines()))
