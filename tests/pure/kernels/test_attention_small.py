"""The attention kernels on the simulator, one short problem each; every length and type is in `tests/slow/kernels`."""

import numpy as np
import pytest

from warpsmith.base.errors import InputError
from warpsmith.kernels.attention import ampere, hopper
from warpsmith.kernels.attention.hopper_schedule import plan
from warpsmith.kernels.attention.reference import attention


@pytest.mark.parametrize(
    ("module", "config"),
    [
        (ampere, ampere.Config(1, 129, causal=True)),
        (hopper, hopper.Config(2, 129, causal=True, multiprocessors=2)),
        (hopper, hopper.Config(1, 200, dim=128)),
        # all that the tilings for the GPU use: turns, staged output, planned items, rescaling by need
        (
            hopper,
            hopper.Config(3, 300, causal=True, consumers=4, keys=64, threshold=8.0, ordered=1, staged=1, multiprocessors=2),
        ),
        (hopper, hopper.Config(2, 260, dim=128, consumers=3, keys=80, ordered=1, staged=1, multiprocessors=2)),
        # the first tile visited hides every key from the first rows; the scale rounds scale times maximum upwards
        (hopper, hopper.Config(1, 129, dim=128, causal=True, keys=64, multiprocessors=1)),
    ],
    ids=["ampere", "hopper", "hopper-128", "hopper-4", "hopper-128-3", "hopper-hidden-rows"],
)
def test_agrees_with_float64(module, config):
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((config.heads, config.sequence, config.dim)).astype(np.float16) for _ in range(3))
    result = module.build(config).simulate(q, k, v)
    assert [str(f) for f in result.findings] == []
    o, lse = result.outputs
    want, want_lse = attention(q, k, v, causal=config.causal)
    assert np.abs(o.astype(np.float64) - want).max() <= 4e-3
    assert np.abs(lse - want_lse).max() <= 4e-3


OPTIONS = {
    "grouped": {"kv_heads": 1},
    "more-keys": {"causal": True, "kv_sequence": 300, "ordered": 1, "staged": 1},
    "fewer-keys": {"causal": True, "kv_sequence": 90},
    "window": {"causal": True, "window": 50, "consumers": 3, "ordered": 1, "staged": 1},
    "small-tiles": {"causal": True, "keys": 16},
    "soft-cap": {"soft_cap": 5.0},
    "wide": {"dim": 192, "keys": 96},
    "half-a-stripe": {"dim": 96, "causal": True, "ordered": 1, "staged": 1},
    "narrow-values": {"dim": 192, "value_dim": 128, "keys": 112, "staged": 1},
    "wide-values": {"dim": 48, "value_dim": 80, "staged": 1, "kv_heads": 1},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_agree_with_float64(options):
    """Queries that see no key (fewer keys than queries) have output 0 and log-sum-exp -inf."""
    config = hopper.Config(2, 200, multiprocessors=2, **options)
    rng = np.random.default_rng(2)
    q = rng.standard_normal((2, 200, config.dim)).astype(np.float16)
    keys = (config.key_heads, config.key_count)
    k, v = (rng.standard_normal((*keys, width)).astype(np.float16) for width in (config.dim, config.width))
    result = hopper.build(config).simulate(q, k, v, schedule="random", seed=1)
    assert [str(f) for f in result.findings] == []
    what = {"first_row": config.ahead, "window": config.window, "soft_cap": config.soft_cap}
    want, want_lse = attention(q, k, v, causal=config.causal, **what)
    assert np.abs(result.outputs[0].astype(np.float64) - want).max() <= (2e-2 if config.soft_cap else 4e-3)
    seen = np.isfinite(want_lse)
    assert np.abs(result.outputs[1][seen] - want_lse[seen]).max() <= (2e-2 if config.soft_cap else 4e-3)
    assert (result.outputs[1][~seen] == -np.inf).all()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            hopper.Config(1, 64, 100),
            "attention: head dimension 100 is not supported; use multiples of 16 from 16 to 256",
        ),
        (
            hopper.Config(1, 64, value_dim=272),
            "attention: value_dim 272 is not supported; use multiples of 16 from 16 to 256",
        ),
        (
            hopper.Config(1, 64, 64, value_dim=80),
            "attention: outputs of 80 numbers do not fit where queries of 64 were; use staged=1",
        ),
        (ampere.Config(1, 64, 96), "attention: head dimension 96 is not supported; use 64 or 128"),
        (hopper.Config(1, 64, dtype="f32"), "attention: dtype 'f32' is not supported; use 'f16' or 'bf16'"),
        (hopper.Config(1, 64, consumers=5), "attention: 5 consumer warpgroups are not supported; use 2, 3 or 4"),
        (
            hopper.Config(1, 64, 128, consumers=3),
            "attention: 3 consumers, 128 keys a tile and outputs of 128 numbers need more than 160 registers a thread; "
            "use fewer keys",
        ),
        (hopper.Config(6, 64, kv_heads=4), "attention: 6 query heads do not share 4 heads of keys evenly"),
        (
            hopper.Config(1, 64, window=8),
            "attention: a window goes with causal=True; a query sees its own key and those before it",
        ),
        (hopper.Config(1, 64, soft_cap=-1.0), "attention: kv_heads, kv_sequence, window and soft_cap are not negative"),
        (hopper.Config(0, 64), "attention: heads=0 and sequence=64 must be at least 1"),
        (hopper.Config(1, 64, keys=72), "attention: 72 keys a tile; wgmma takes multiples of 16 from 16 to 256"),
    ],
)
def test_refuses_by_name(config, message):
    with pytest.raises(InputError) as caught:
        (ampere if isinstance(config, ampere.Config) else hopper).build(config)
    assert str(caught.value) == message


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize(("heads", "sequence", "dim"), [(8, 4096, 64), (32, 512, 128), (5, 1000, 64), (7, 3000, 128)])
def test_the_plan_holds_every_item_once(heads, sequence, dim, causal):
    config = hopper.choose(heads, sequence, dim, "f16", causal)
    planned = [item for items in plan(config) for item in items]
    assert sorted(planned) == [(head, block) for head in range(config.heads) for block in range(config.blocks)]


@pytest.mark.parametrize("dim", range(16, 272, 16))
def test_every_width_has_a_tiling(dim):
    for value_dim in (0, 16, 96, 128, 256):
        config = hopper.choose(4, 1000, dim, "f16", causal=True, value_dim=value_dim)
        assert (config.dim, config.width) == (dim, value_dim or dim)
        hopper.check(config)


def test_causal_work_is_spread_evenly():
    """Longest first: the busiest multiprocessor has at most 3 % more than the mean where there are 15 items for each."""
    config = hopper.choose(32, 8192, 128, "f16", causal=True)
    work = [sum(config.tiles_of(block) for _, block in items) for items in plan(config)]
    assert max(work) <= 1.03 * sum(work) / config.multiprocessors
