"""Every declared row has a meaning, or its refusal stands in docs/design/not-modelled.md."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from warpsmith.assembly.ptx.isa import Match, rows
from warpsmith.assembly.ptx.isa.availability import lowest
from warpsmith.assembly.ptx.isa.generate import samples
from warpsmith.base.arch import ARCHITECTURES, parse_arch
from warpsmith.simulator.meanings.registry import Refused, build, find

PAGE = Path(__file__).parents[4] / "docs" / "design" / "not-modelled.md"
SUPPORTED = sorted((a for a in ARCHITECTURES if parse_arch(a).number >= 75), key=lambda a: (parse_arch(a).number, a))


def refusals() -> Iterator[tuple[str, Match]]:
    """Every refused sample of a row that PTX still has, with its reason."""
    for row in rows():
        meaning = find(row)
        if row.removed or (meaning is not None and meaning.kind == "control"):
            continue
        for sample in samples(row):
            built = build(sample.match)
            reason = row.refused or (built.reason if isinstance(built, Refused) else "")
            if reason:
                yield reason, sample.match


def table() -> str:
    opcodes: dict[str, set[str]] = defaultdict(set)
    first: dict[str, tuple[int, str]] = {}
    for reason, m in refusals():
        text = re.sub(r"^`\w+` of \.\w+x4", "arithmetic of .e4m3x4, .e2m1x4 and the like", reason)
        opcodes[text].add(m.row.opcode)
        found = lowest(m, SUPPORTED)
        assert found, m.row.id
        (major, minor), arch = found
        first[text] = min(first.get(text, (999, "")), (parse_arch(arch).number, f"{arch}, PTX {major}.{minor}"))
    ordered = sorted(opcodes, key=lambda text: (first[text][0], sorted(opcodes[text]), text))
    lines = [f"| {' '.join(f'`{o}`' for o in sorted(opcodes[t]))} | {t} | {first[t][1]} |" for t in ordered]
    return "\n".join(["| instructions | reason | from |", "|---|---|---|", *lines, ""])


def test_refusals_are_listed(pytestconfig: pytest.Config) -> None:
    head, _, listed = PAGE.read_text().partition("| instructions ")
    now = table()
    if pytestconfig.getoption("--regenerate"):
        PAGE.write_text(head + now)
    else:
        assert "| instructions " + listed == now


def test_nothing_is_without_a_meaning() -> None:
    assert [row.id for row in rows() if find(row) is None and not row.refused and not row.removed] == []
