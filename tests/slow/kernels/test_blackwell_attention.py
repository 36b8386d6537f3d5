"""The Blackwell attention kernel against float64: shapes, masks, types, rescales, schedules."""

from __future__ import annotations

import pytest

from blackwell_attention import findings_and_error
from warpsmith.kernels.attention.blackwell import one_cta, two_per_sm

CASES = [
    ({"sequence": 1024, "heads": 2}, 0.0),
    ({"sequence": 512, "multiprocessors": 1, "heads": 2}, 8.0),
    ({"sequence": 512, "rescale_threshold": 0.0}, 8.0),
    ({"sequence": 512, "fresh_maximum": True}, 20.0),
    ({"sequence": 384, "dtype": "f16"}, 20.0),
    ({"sequence": 300, "heads": 2, "multiprocessors": 1, "causal": True, "dim": 64, "dtype": "f16"}, 4.0),
    ({"sequence": 70, "causal": True}, 0.0),
    ({"sequence": 1, "dim": 64}, 0.0),
    ({"sequence": 641, "causal": True, "multiprocessors": 2}, 4.0),
    ({"sequence": 512, "emulated_pairs": ()}, 0.0),
    ({"sequence": 512, "emulated_pairs": tuple(range(16))}, 8.0),
    ({"sequence": 512, "heads": 2, "multiprocessors": 1, "lockstep": True}, 0.0),
    ({"sequence": 512, "heads": 2, "multiprocessors": 1, "epilogue_gate": "mma"}, 8.0),
]


@pytest.mark.parametrize(("how", "growth"), CASES)
def test_against_float64(how, growth):
    found, error = findings_and_error(how, growth)
    assert found == []
    assert error < 0.015


TWO_CASES = [
    ({"sequence": 512}, 0.0),
    ({"sequence": 256, "heads": 3}, 8.0),
    ({"sequence": 300, "causal": True, "dim": 64, "dtype": "f16"}, 8.0),
    ({"sequence": 257, "heads": 2, "rescale_threshold": 0.0}, 8.0),
    ({"sequence": 1, "causal": True}, 0.0),
]


@pytest.mark.parametrize(("how", "growth"), TWO_CASES)
def test_two_ctas_a_multiprocessor_against_float64(how, growth):
    found, error = findings_and_error(how, growth, two_per_sm)
    assert found == []
    assert error < 0.015


@pytest.mark.parametrize("module", [one_cta, two_per_sm])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("schedule", ["random", "adversarial"])
def test_schedules_of_two_items(schedule, seed, module):
    """Four key tiles, two work items on one CTA; growing scores, so that some warps rescale and others do not."""
    found, error = findings_and_error({"sequence": 512, "multiprocessors": 1}, 6.0, module, schedule=schedule, seed=seed)
    assert found == []
    assert error < 0.015
