"""Packed attention under many schedules, and batches of random lengths."""

import numpy as np
import pytest

from packed_attention import agrees
from warpsmith.kernels.attention import hopper


@pytest.mark.parametrize("seed", range(12))
def test_random_batches(seed):
    rng = np.random.default_rng(seed)
    lengths = [int(x) for x in rng.integers(0, 300, 5)] + [1]
    keys = None if seed % 3 == 0 else [int(x) for x in rng.integers(0, 300, 6)]
    options = {"causal": bool(seed & 1), "staged": seed >> 1 & 1, "consumers": 2 + seed % 2, "kv_heads": 1 + seed % 2}
    dim = (64, 128, 96, 48)[seed % 4]
    config = hopper.choose(2, 1, dim, "f16", packed=1, keys=(128, 80)[seed % 2], **options)
    agrees(config, lengths, keys, schedule="random", seed=seed)


@pytest.mark.parametrize("seed", range(10))
def test_adversarial_schedules_have_no_findings(seed):
    config = hopper.Config(2, 1, packed=1, causal=True, staged=1, ordered=1, multiprocessors=2)
    agrees(config, [130, 5, 70], [130, 140, 0], schedule="adversarial", seed=seed)
