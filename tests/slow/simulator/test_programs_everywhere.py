"""Programs of other compilers for every architecture, under eight schedules, long ones under four."""

from __future__ import annotations

import pytest

from programs.every import RUNS
from programs.program import LONG, MANY, Program, run


@pytest.mark.parametrize(("program", "arch"), RUNS, ids=lambda v: v if isinstance(v, str) else f"{v.compiler}-{v.name}")
def test_runs_right(program: Program, arch: str) -> None:
    orders = LONG if program.slow else MANY
    first = run(program, arch, orders[0])
    for order in orders[1:]:
        again = run(program, arch, order)
        if program.ordered:
            assert [a.tobytes() for a in again.arrays] == [a.tobytes() for a in first.arrays]
