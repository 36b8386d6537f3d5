"""What the ptxas at hand makes of each pattern: patterns.txt names the releases that make wrong code, by the machine code.

A release that was not measured is judged, too: if it makes wrong code of a pattern, or right code, the table should say so.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

import warpsmith as ws
from miscompiled_cases import Case, cases, module_text
from warpsmith.assembly.ptx.miscompiled import table
from warpsmith.assembly.ptx.miscompiled.table import release
from warpsmith.toolchain import compile_ptx, require_tool

if TYPE_CHECKING:
    from collections.abc import Iterator

ENTRIES = {e.name: e for e in table().entries}


def at_hand() -> tuple[int, int]:
    """The release of the ptxas at hand."""
    return release(require_tool("ptxas").version())


def accepted(arch: str) -> Iterator[Case]:
    """The cases that this release does not reject, of those that show on the architecture."""
    return (c for c in cases().values() if at_hand() >= ENTRIES[c.name].first and ENTRIES[c.name].shows_on(arch))


@cache
def compiled(arch: str) -> dict[str, str]:
    """The listing of every program by `case-which`, of one run of ptxas."""
    kernels = [(c, which, f"k{n}_{which}") for n, c in enumerate(accepted(arch)) for which in ("broken", "repaired")]
    cubin = ws.cubin.open(compile_ptx(module_text(kernels, arch), arch).cubin)
    out: dict[str, str] = {}
    for case, which, name in kernels:
        program = ws.sass.decode(cubin.functions[name].code, arch)
        out[f"{case.name}-{which}"] = "\n".join(program[i].text for i in range(len(program)))
    return out


def is_wrong(case: Case, listing: str) -> bool:
    """Whether machine code is what the case calls wrong."""
    shown = all(re.search(e, listing, re.MULTILINE) for e in case.wrong)
    return shown and not any(re.search(e, listing, re.MULTILINE) for e in case.missing)


@pytest.mark.parametrize("arch", table().targets)
def test_the_table_is_what_ptxas_does(arch: str) -> None:
    wrong = {c.name for c in accepted(arch) if is_wrong(c, compiled(arch)[f"{c.name}-broken"])}
    assert wrong == {name for name, e in ENTRIES.items() if e.first <= at_hand() <= e.last and e.shows_on(arch)}


@pytest.mark.parametrize("arch", table().targets)
def test_the_repaired_programs_are_compiled_right(arch: str) -> None:
    assert [c.name for c in accepted(arch) if is_wrong(c, compiled(arch)[f"{c.name}-repaired"])] == []
