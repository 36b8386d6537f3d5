"""The verdict on a program that synchronises is the same under every schedule (tests/data/cuda/synchronisation.cu)."""

from __future__ import annotations

import pytest

from synchronisation import CORRECT, FAULTY, HARMLESS, judge, run

SCHEDULES = [("fair", 0), *(("random", seed) for seed in range(4)), *(("adversarial", seed) for seed in range(4))]


@pytest.mark.parametrize("kernel", [*CORRECT, *HARMLESS])
def test_a_correct_program_has_no_findings_in_any_schedule(kernel: str) -> None:
    for schedule, seed in SCHEDULES:
        result = run(kernel, schedule=schedule, seed=seed)
        assert (result.completed, result.findings) == (True, []), (schedule, seed)


@pytest.mark.parametrize("kernel", FAULTY)
def test_a_faulty_twin_is_named_in_every_schedule(kernel: str) -> None:
    for schedule, seed in SCHEDULES:
        assert judge(kernel, run(kernel, schedule=schedule, seed=seed).findings) == [], (schedule, seed)
