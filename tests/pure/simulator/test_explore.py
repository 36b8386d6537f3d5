"""Many schedules of a launch: the order, the budget, the smallest failing one, what is passed over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsmith.base.errors import InputError
from warpsmith.simulator import simulate
from warpsmith.simulator.explore import explore, schedules

RACE = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .b32 %r<9>; .reg .b64 %rd<3>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5;
st.global.b32 [%rd1], %r2;
ret; }"""
CLEAN = RACE.replace("st.global.b32 [%rd1], %r2;", "atom.global.add.u32 %r3, [%rd1], 1;")


def launch(text: str) -> Any:
    def run(schedule: str, seed: int) -> Any:
        return simulate(text, grid=1, block=64, args=[np.zeros(1, np.uint32)], schedule=schedule, seed=seed)

    return run


def test_the_order_of_schedules() -> None:
    assert list(schedules(4)) == [("fair", 0), ("adversarial", 0), ("random", 0), ("adversarial", 1), ("random", 1)]


@pytest.mark.parametrize("jobs", [1, 2, 10**12])
def test_the_budget_ends_schedules_without_number(jobs: int) -> None:
    done: list[str] = []

    def run(schedule: str, seed: int) -> Any:
        done.append(schedule)
        return launch(CLEAN)(schedule, seed)

    found = explore(run, count=10**30, budget=0, jobs=jobs)
    assert [r.name for r in found.runs] == ["fair"] == done
    assert len(explore(launch(CLEAN), count=1, jobs=jobs).runs) == 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_schedule_is_run(jobs: int) -> None:
    found = explore(launch(CLEAN), count=4, jobs=jobs)
    assert [r.name for r in found.runs] == [
        "fair",
        "adversarial seed 0",
        "random seed 0",
        "adversarial seed 1",
        "random seed 1",
    ]
    assert all(r.completed for r in found.runs)
    assert (found.smallest, found.distinct()) == (None, [])


def test_the_smallest_failing_run() -> None:
    found = explore(launch(RACE), count=4)
    assert all(r.errors for r in found.runs)
    assert found.smallest is not None
    assert found.smallest.steps == min(r.steps for r in found.runs)
    (finding,) = found.distinct()
    assert (finding.kind, finding.schedule) == ("global-race", found.smallest.name)


def test_a_budget_ends_it_after_the_fair_schedule() -> None:
    assert [r.name for r in explore(launch(CLEAN), count=50, budget=0).runs] == ["fair"]


@pytest.mark.parametrize("key", ["global-race", "global-race@<string>:7"])
def test_findings_are_passed_over(key: str) -> None:
    found = explore(launch(RACE), count=2, suppress={key: "one value is as good as another"})
    assert found.smallest is None
    assert [(f.kind, reason) for f, reason in found.suppressed] == [("global-race", "one value is as good as another")]


def test_another_line_is_not_passed_over() -> None:
    assert explore(launch(RACE), count=0, suppress={"global-race@<string>:8": "x"}).smallest is not None


def test_a_place_must_be_one() -> None:
    with pytest.raises(InputError) as caught:
        explore(launch(RACE), suppress={"global-race@kernel.py": "x"})
    assert str(caught.value) == "suppress: 'global-race@kernel.py': write a place as FILE:LINE, e.g. global-race@kernel.py:12"
