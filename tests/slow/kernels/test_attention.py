"""Both attention kernels on the simulator against float64 attention."""

import ml_dtypes
import numpy as np
import pytest

from warpsmith.kernels.attention import ampere, hopper
from warpsmith.kernels.attention.reference import attention

LIMIT = {"f16": 4e-3, "bf16": 3e-2}
DTYPE = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


def run(module, config, **options):
    rng = np.random.default_rng(config.sequence)
    widths = (config.dim, config.dim, getattr(config, "width", config.dim))
    q, k, v = (rng.standard_normal((config.heads, config.sequence, w)).astype(DTYPE[config.dtype]) for w in widths)
    result = module.build(config).simulate(q, k, v, **options)
    assert [str(f) for f in result.findings] == []
    assert result.completed
    o, lse = result.outputs
    want, want_lse = attention(q, k, v, causal=config.causal, scale=config.scale)
    assert np.abs(o.astype(np.float64) - want).max() <= LIMIT[config.dtype]
    assert np.abs(lse - want_lse).max() <= LIMIT[config.dtype]


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("sequence", [1, 64, 127, 128, 129, 512, 1000])
class TestAgainstFloat64:
    def test_ampere(self, sequence, dim, dtype, causal):
        run(ampere, ampere.Config(1, sequence, dim, dtype, causal))

    def test_hopper(self, sequence, dim, dtype, causal):
        run(hopper, hopper.Config(1, sequence, dim, dtype, causal))


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("sequence", [64, 129, 512])
def test_hopper_with_three_consumers(sequence, causal):
    run(hopper, hopper.Config(2, sequence, 64, "f16", causal, consumers=3, multiprocessors=2))


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize(("dim", "value_dim"), [(96, 0), (192, 128), (256, 0), (80, 112), (16, 16)])
@pytest.mark.parametrize("sequence", [1, 127, 300, 700])
def test_hopper_widths(sequence, dim, value_dim, dtype, causal):
    run(hopper, hopper.choose(2, sequence, dim, dtype, causal, value_dim=value_dim, multiprocessors=3))


TILINGS = [(64, 2, 128), (64, 3, 128), (64, 4, 64), (128, 2, 128), (128, 3, 80)]
"""(dim, consumers, keys): what the choice of tilings has."""


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("sequence", [1, 127, 129, 700])
@pytest.mark.parametrize(("dim", "consumers", "keys"), TILINGS)
def test_hopper_tilings(dim, consumers, keys, sequence, causal):
    options = {"consumers": consumers, "keys": keys, "ordered": 1, "staged": 1, "multiprocessors": 3}
    run(hopper, hopper.Config(2, sequence, dim, "bf16", causal, threshold=8.0 * (sequence % 2), **options))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("dim", "consumers", "keys"), TILINGS)
def test_adversarial_schedules_of_the_tilings_have_no_findings(dim, consumers, keys, seed):
    options = {"consumers": consumers, "keys": keys, "ordered": 1, "staged": 1, "multiprocessors": 2, "threshold": 8.0}
    run(hopper, hopper.Config(2, 300, dim, "f16", seed % 2 == 0, **options), schedule="adversarial", seed=seed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("dim", "consumers", "keys"), TILINGS)
def test_random_schedules_of_the_tilings_have_no_findings(dim, consumers, keys, seed):
    options = {"consumers": consumers, "keys": keys, "ordered": 1, "staged": 1, "multiprocessors": 2, "threshold": 8.0}
    run(hopper, hopper.Config(2, 300, dim, "f16", seed % 2 == 0, **options), schedule="random", seed=seed)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_hopper_options(causal):
    run(hopper, hopper.Config(2, 300, 64, "f16", causal, emulated=4, threshold=8.0, keys=64, k_stages=3, multiprocessors=3))


@pytest.mark.parametrize("seed", range(20))
def test_random_schedules_have_no_findings(seed):
    run(hopper, hopper.Config(1, 300, 64, "f16", True, multiprocessors=2), schedule="random", seed=seed)
    run(ampere, ampere.Config(1, 200, 64, "bf16", True), schedule="random", seed=seed)


@pytest.mark.parametrize("seed", range(20))
def test_random_schedules_of_other_tilings_have_no_findings(seed):
    run(hopper, hopper.Config(2, 300, 64, "bf16", False, consumers=3, multiprocessors=2), schedule="random", seed=seed)
    run(hopper, hopper.Config(1, 200, 128, "f16", True, multiprocessors=2), schedule="random", seed=seed)
