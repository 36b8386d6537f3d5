"""The approximate functions executed a second time on an array library: here numpy again, so that both must agree."""

import numpy as np
import pytest

from warpsmith.hardware import mufu_verify
from warpsmith.hardware.device_functions import functions_on
from warpsmith.simulator.meanings import approx

COPY = functions_on(np)


@pytest.mark.parametrize("operation", mufu_verify.EVERY)
@pytest.mark.parametrize("first", [0, 0x3F7F8000, 0x7FFF8000, 0xFF7F8000])
def test_both_evaluations_agree(operation, first):
    copied = mufu_verify.evaluate(operation, first, 1 << 16, np, COPY)
    assert (copied == mufu_verify.evaluate(operation, first, 1 << 16, np, approx)).all()


def test_pairs_mix_near_and_far_exponents():
    a, b = mufu_verify.pairs(np.arange(1 << 14, dtype=np.uint64))
    apart = np.abs((a >> 23 & 255).astype(int) - (b >> 23 & 255).astype(int))
    assert 0.7 < (apart <= 32).mean() < 0.9
    assert len(np.unique(b)) > 16000
