"""The Blackwell attention kernel for pairs of CTAs: one small checked run, and what it refuses."""

from __future__ import annotations

import pytest

from blackwell_attention import findings_and_error
from warpsmith.base.errors import InputError
from warpsmith.kernels.attention.blackwell import two_cta


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
        ({"lockstep": True}, "attention: lockstep is not there for pairs of CTAs"),
    ],
)
def test_what_is_refused(how, message):
    with pytest.raises(InputError) as caught:
        two_cta.build(two_cta.Config(**{"heads": 1, "sequence": 256, "dim": 128, "dtype": "bf16", **how}))
    assert str(caught.value) == message
