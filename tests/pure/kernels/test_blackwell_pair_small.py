"""The Blackwell attention kernel for pairs of CTAs: one small checked run, and what it refuses."""

from __future__ import annotations

import pytest

from blackwell_attention import findings_and_error
from warpsmith.base.errors import InputError
from warpsmith.kernels.attention.blackwell import builders, two_cta


def test_two_items_masks_and_rescales_against_float64():
    how = {"sequence": 300, "heads": 2, "multiprocessors": 2, "causal": True, "dim": 64, "rescale_threshold": 0.5}
    found, error = findings_and_error(how, 12.0, two_cta)
    assert found == []
    assert error < 0.015


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"dim": 96}, "attention: head dimension 96 is not supported; use 64 or 128"),
        ({"arch": "sm_120a"}, "attention: arch 'sm_120a' has no tensor memory; use sm_100a, sm_103a or sm_110a"),
        ({"multiprocessors": 1}, "attention: a cluster of two CTAs needs 2 multiprocessors, not 1"),
        ({"value_stride": 24}, "attention: offsets in a descriptor are multiples of 16 below 2^18, not (24, 16384)"),
    ],
)
def test_what_is_refused(how, message):
    with pytest.raises(InputError) as caught:
        two_cta.build(two_cta.Config(**{"heads": 1, "sequence": 256, "dim": 128, "dtype": "bf16", **how}))
    assert str(caught.value) == message


def test_all_roles_of_both_ctas_meet():
    how = {"sequence": 128, "heads": 2, "multiprocessors": 2, "dim": 64, "lockstep": True, "epilogue_gate": "mma"}
    found, error = findings_and_error(how, 0.0, two_cta)
    assert found == []
    assert error < 0.015


def test_the_builder_takes_the_numbers_of_a_problem():
    kernel = builders.build_attention_2cta(128, 1, 64)
    assert (kernel.grid, kernel.block, kernel.cluster) == ((2, 1, 1), (512, 1, 1), (2, 1, 1))
    assert [t.dims for t in (*kernel.in_specs, *kernel.out_specs)] == [(128, 64)] * 4


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"debug_mma_level": 1},
            "attention: debug_mma_level is 4 only: leaving products out looks for the one that hangs on hardware; the "
            "simulator names the line of a wrong product, and `warpsmith check` the barrier of a hang with every role's wait",
        ),
        (
            {"debug_beacon": True},
            "attention: debug_beacon is False only: bounded waits that go on compute wrong results; waitmap=True records every "
            "wait instead",
        ),
        (
            {"debug": True},
            "attention: there is no option 'debug'; debug modes are debug_plumbing, debug_blind_feed, debug_paced_sim, "
            "debug_mma_level, debug_pv_smem_a, debug_beacon",
        ),
    ],
)
def test_debug_modes_are_refused_with_the_reason(how, message):
    with pytest.raises(InputError) as caught:
        builders.build_attention_2cta(512, 1, **how)
    assert str(caught.value) == message
