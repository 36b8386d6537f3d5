"""The Blackwell attention kernel: one small checked run, and what it refuses."""

from __future__ import annotations

import pytest

from blackwell_attention import findings_and_error
from warpsmith.base.errors import InputError
from warpsmith.kernels.attention.blackwell import one_cta


def test_two_items_masks_and_rescales_against_float64():
    how = {"sequence": 300, "multiprocessors": 1, "causal": True, "dim": 64, "rescale_threshold": 0.5}
    found, error = findings_and_error(how, 12.0)
    assert found == []
    assert error < 0.015


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"dim": 96}, "attention: head dimension 96 is not supported; use 64 or 128"),
        ({"arch": "sm_120a"}, "attention: arch 'sm_120a' has no tensor memory; use sm_100a, sm_103a or sm_110a"),
        ({"emulated_pairs": (16,)}, "attention: emulated_pairs are numbers from 0 to 15, not (16,)"),
        (
            {"epilogue_gate": ""},
            "attention: epilogue_gate is 'softmax' or 'mma', not ''; without a gate the softmax of an item disturbs the "
            "epilogue of the one before",
        ),
        ({"rescale_threshold": 9.0, "dtype": "f16"}, "attention: rescale_threshold is 0 to 8 with f16, not 9.0"),
        (
            {"fresh_maximum": False, "dtype": "f16"},
            "attention: f16 needs fresh_maximum: probabilities behind a stale basis exceed 65504",
        ),
        ({"scale": -1.0}, "attention: scale is greater than 0, not -1.0"),
        ({"multiprocessors": 0}, "attention: multiprocessors is at least 1, not 0"),
    ],
)
def test_what_is_refused(how, message):
    with pytest.raises(InputError) as caught:
        one_cta.build(one_cta.Config(**{"heads": 1, "sequence": 256, "dim": 128, "dtype": "bf16", **how}))
    assert str(caught.value) == message
