"""The Blackwell attention kernels against float64: shapes, masks, types, rescales, options, schedules."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from blackwell_attention import findings_and_error, simulated
from warpsmith.kernels.attention.blackwell import builders, one_cta, two_per_sm
from warpsmith.kernels.attention.reference import attention

ACCEPTANCE = [(1, 1, 256), (1, 2, 512), (2, 4, 1024), (1, 8, 4096)]
"""Batches, heads and lengths of the acceptance test; head dimension 128, bf16, errors below 0.05."""


BUILDERS = [builders.build_attention, builders.build_attention_occ2, builders.build_attention_2cta]
SIZES = [
    *((b, *shape) for b in BUILDERS for shape in ACCEPTANCE[:3]),
    (BUILDERS[0], *ACCEPTANCE[3]),
    *((b, 1, 2, 4096) for b in BUILDERS[1:]),
]
"""The longest with all its heads for one kernel only, with two for the others: it takes minutes."""


@pytest.mark.parametrize(("build", "batch", "heads", "length"), SIZES)
def test_acceptance(build, batch, heads, length):
    random = np.random.default_rng(0)
    rows = batch * heads * length
    q, k, v = ((random.standard_normal((rows, 128)) * f).astype(ml_dtypes.bfloat16) for f in (0.5, 0.5, 1.0))
    large = length == 4096
    result = build(length, batch * heads).simulate(q, k, v, check=not large, numerics="fast" if large else "exact")
    assert (result.completed, result.findings) == (True, [])
    shape = (batch * heads, length, 128)
    output = result.outputs[0].astype(np.float32).reshape(shape)
    worst = 0.0
    for head in range(batch * heads):
        expected, _ = attention(q.reshape(shape)[head], k.reshape(shape)[head], v.reshape(shape)[head])
        worst = max(worst, float(np.abs(output[head] - expected).max()))
    assert worst < 2e-3


CASES = [
    ({"sequence": 1024, "heads": 2}, 0.0),
    ({"sequence": 2048, "causal": True, "multiprocessors": 4}, 6.0),
    ({"sequence": 2047, "dim": 64, "dtype": "f16"}, 4.0),
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
    ({"sequence": 512, "heads": 2, "multiprocessors": 1, "lockstep": "no_softmax"}, 0.0),
    ({"sequence": 512, "heads": 2, "multiprocessors": 1, "lockstep": "no_corr"}, 0.0),
    ({"sequence": 512, "heads": 2, "multiprocessors": 1, "lockstep": "no_load"}, 0.0),
    ({"sequence": 512, "heads": 2, "multiprocessors": 1, "epilogue_gate": "mma"}, 8.0),
    ({"sequence": 513, "heads": 2, "multiprocessors": 1, "dtype": "f16", "half_scores": True}, 8.0),
    ({"sequence": 384, "heads": 2, "flat": True, "causal": True}, 8.0),
]  # fmt: skip


@pytest.mark.parametrize(("how", "growth"), CASES)
def test_against_float64(how, growth):
    found, error = findings_and_error(how, growth)
    assert found == []
    assert error < 0.015


TWO_CASES = [
    ({"sequence": 512}, 0.0),
    ({"sequence": 2048, "causal": True}, 6.0),
    ({"sequence": 2047, "dim": 64, "dtype": "f16"}, 4.0),
    ({"sequence": 256, "heads": 3}, 8.0),
    ({"sequence": 300, "causal": True, "dim": 64, "dtype": "f16"}, 8.0),
    ({"sequence": 257, "heads": 2, "rescale_threshold": 0.0}, 8.0),
    ({"sequence": 1, "causal": True}, 0.0),
    ({"sequence": 300, "emulated_pairs": tuple(range(16)), "causal": True}, 8.0),
    ({"sequence": 513, "dtype": "f16", "half_scores": True}, 8.0),
]


@pytest.mark.parametrize(("how", "growth"), TWO_CASES)
def test_two_ctas_a_multiprocessor_against_float64(how, growth):
    found, error = findings_and_error(how, growth, two_per_sm)
    assert found == []
    assert error < 0.015


@pytest.mark.parametrize(
    ("scale", "growth", "fresh"), [(1e-3, 30.0, False), (0.2, 30.0, False), (3.0, 0.0, False), (3.0, 30.0, True)]
)
def test_scales_whose_scores_are_all_low_or_high(scale, growth, fresh):
    """The basis starts at a maximum: rows far from 0 neither overflow nor vanish. Scores that rise by more than 2^120 from one
    tile to the next want `fresh_maximum`."""
    how = {"sequence": 200, "dim": 64, "scale": scale, "fresh_maximum": fresh}
    result, error, late = simulated(how, growth)
    assert result.findings == []
    assert error < 0.03
    assert late < 5e-3


ORDERS = [*(("random", s) for s in range(50)), *(("adversarial", s) for s in range(20))]


@pytest.mark.parametrize("module", [one_cta, two_per_sm])
@pytest.mark.parametrize(("schedule", "seed"), ORDERS)
def test_schedules_of_two_items(schedule, seed, module):
    """Four key tiles, two work items (on one CTA, if persistent); with growing scores (every other order) warps rescale."""
    growth = 6.0 * (seed % 2)
    how = {"sequence": 512, "multiprocessors": 1, "dim": 64}
    found, error = findings_and_error(how, growth, module, schedule=schedule, seed=seed, numerics="fast")
    assert found == []
    assert error < 0.015
