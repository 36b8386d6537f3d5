"""Programs of other compilers for every architecture, under eight schedules."""

from __future__ import annotations

import pytest

from programs.every import RUNS
from programs.program import MANY, Program, run


@pytest.mark.parametrize(("program", "arch"), RUNS, ids=lambda v: v if isinstance(v, str) else f"{v.compiler}-{v.name}")
def test_runs_right(program: Program, arch: str) -> None:
    first = run(program, arch, MANY[0])
    for order in MANY[1:]:
        again = run(program, arch, order)
        if program.ordered:
            assert [a.tobytes() for a in again.arrays] == [a.tobytes() for a in first.arrays]
