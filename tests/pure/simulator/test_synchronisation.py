"""Locks, barriers, rings and reductions of nvcc: correct ones have no findings, each faulty twin the right one at its line."""

from __future__ import annotations

import pytest

from synchronisation import CORRECT, FAULTY, HARMLESS, judge, run


def schedule(kernel: str) -> dict[str, object]:
    """The fair one takes many turns where all threads poll through a barrier."""
    return {"schedule": "random", "seed": 1} if kernel.startswith("stream_k") else {}


@pytest.mark.parametrize("kernel", [*CORRECT, *HARMLESS])
def test_a_correct_program_has_no_findings(kernel: str) -> None:
    result = run(kernel, **schedule(kernel))
    assert (result.completed, result.findings) == (True, [])


@pytest.mark.parametrize("kernel", FAULTY)
def test_a_faulty_twin_is_named_at_its_line(kernel: str) -> None:
    assert judge(kernel, run(kernel, **schedule(kernel)).findings) == []


def test_each_lock_counts_every_cta() -> None:
    for kernel in ("spin_lock_0", "cas_lock_0", "ticket_lock_0"):
        assert run(kernel).outputs[1][0] == 4
