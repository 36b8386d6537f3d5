"""The Blackwell attention kernel for pairs of CTAs against float64: shapes, masks, types, rescales, schedules."""

from __future__ import annotations

import pytest

from blackwell_attention import findings_and_error
from warpsmith.kernels.attention.blackwell import two_cta

CASES = [
    ({"sequence": 256}, 0.0, "exact"),
    ({"sequence": 512, "heads": 2}, 0.0, "exact"),
    ({"sequence": 1024, "heads": 8, "multiprocessors": 4}, 0.0, "fast"),
    ({"sequence": 2048, "causal": True}, 4.0, "fast"),
    ({"sequence": 2047, "dim": 64, "heads": 2, "multiprocessors": 4}, 4.0, "fast"),
    ({"sequence": 512, "multiprocessors": 2, "heads": 2}, 8.0, "exact"),
    ({"sequence": 512, "rescale_threshold": 0.0}, 8.0, "exact"),
    ({"sequence": 512, "fresh_maximum": True}, 20.0, "exact"),
    ({"sequence": 384, "dtype": "f16"}, 20.0, "exact"),
    ({"sequence": 300, "heads": 2, "multiprocessors": 2, "causal": True, "dim": 64, "dtype": "f16"}, 4.0, "exact"),
    ({"sequence": 70, "causal": True}, 0.0, "exact"),
    ({"sequence": 1, "dim": 64}, 0.0, "exact"),
    ({"sequence": 641, "causal": True, "multiprocessors": 2}, 4.0, "exact"),
    ({"sequence": 512, "emulated_pairs": ()}, 0.0, "exact"),
    ({"sequence": 512, "emulated_pairs": tuple(range(16))}, 8.0, "exact"),
    ({"sequence": 512, "heads": 2, "multiprocessors": 2, "epilogue_gate": "mma"}, 8.0, "exact"),
]


@pytest.mark.parametrize(("how", "growth", "numerics"), CASES)
def test_against_float64(how, growth, numerics):
    found, error = findings_and_error(how, growth, two_cta, numerics=numerics)
    assert found == []
    assert error < 0.015


@pytest.mark.parametrize(("schedule", "seed"), [*(("random", s) for s in range(50)), *(("adversarial", s) for s in range(20))])
def test_schedules_of_two_items(schedule, seed):
    """Four key tiles, two work items on one cluster; with growing scores (every other order) warps rescale."""
    growth = 6.0 * (seed % 2)
    how = {"sequence": 512, "heads": 2, "multiprocessors": 2, "dim": 64}
    found, error = findings_and_error(how, growth, two_cta, schedule=schedule, seed=seed, numerics="fast")
    assert found == []
    assert error < 0.015
