"""Attention in e4m3 on the simulator, short problems; every length is in `tests/slow/kernels`."""

import numpy as np
import pytest

from fp8_attention import agrees, inputs
from warpsmith.base.errors import InputError
from warpsmith.kernels.attention import hopper, hopper_fp8

PROBLEMS = {
    "rows": {"causal": True},
    "columns": {"sequence": 208, "columns": 1, "causal": True, "keys": 96},
    "rows-128": {"dim": 128, "consumers": 3, "keys": 96, "ordered": 1, "kv_heads": 1},
    "columns-128": {"sequence": 160, "dim": 128, "columns": 1, "keys": 160, "output": "f16", "threshold": 2.0},
    "rows-four": {"causal": True, "consumers": 4, "keys": 64, "ordered": 1},
    "fewer-keys": {"causal": True, "kv_sequence": 90},
    "window": {"causal": True, "window": 50},
    "soft-cap": {"soft_cap": 5.0, "dim": 96, "value_dim": 48},
    "two-stripes": {"dim": 192, "value_dim": 160, "keys": 64, "sequence": 130},
    "columns-wide": {"dim": 256, "columns": 1, "sequence": 96, "keys": 64},
}


@pytest.mark.parametrize("options", PROBLEMS.values(), ids=PROBLEMS)
def test_agrees_with_float64(options):
    agrees(hopper_fp8.Config(**{"heads": 2, "sequence": 201, "dtype": "e4m3", "staged": 1, "multiprocessors": 2} | options))


def test_one_key_is_exact():
    """P is 1, that is 2⁸, and 1 · v · factor rounds once, to bf16."""
    config = hopper_fp8.Config(1, 1, 64, "e4m3", staged=1)
    given, (_, _, v) = inputs(config)
    output = hopper_fp8.build(config).simulate(*given).outputs[0]
    assert np.abs(output.astype(np.float64) / v - 1).max() <= 2**-8


E4M3 = {"dtype": "e4m3", "staged": 1}


@pytest.mark.parametrize(
    ("module", "config", "message"),
    [
        (hopper_fp8, hopper.Config(1, 64), "attention: hopper_fp8 takes e4m3, not 'f16'; hopper.build takes 'f16' and 'bf16'"),
        (hopper, hopper.Config(1, 64, **E4M3), "attention: inputs in e4m3 are for hopper_fp8.build"),
        (
            hopper_fp8,
            hopper.Config(1, 64, output="f32", **E4M3),
            "attention: output 'f32' is not supported; use 'bf16' or 'f16'",
        ),
        (
            hopper_fp8,
            hopper.Config(1, 1, packed=1, **E4M3),
            "attention: packed sequences in e4m3 are not supported; use 'f16' or 'bf16'",
        ),
        (
            hopper_fp8,
            hopper.Config(1, 64, threshold=9.0, **E4M3),
            "attention: threshold 9.0 is not supported with e4m3; use 0 to 8",
        ),
        (
            hopper_fp8,
            hopper.Config(1, 64, keys=80, **E4M3),
            "attention: 80 keys a tile; wgmma of bytes takes multiples of 32",
        ),
        (
            hopper_fp8,
            hopper.Config(1, 100, columns=1, **E4M3),
            "attention: V by columns has rows of 100 bytes, and TMA wants multiples of 16; use columns=0",
        ),
        (
            hopper_fp8,
            hopper.Config(1, 64, dtype="e4m3"),
            "attention: outputs of 64 numbers do not fit where queries of 64 were; use staged=1",
        ),
    ],
)
def test_refuses_by_name(module, config, message):
    with pytest.raises(InputError) as caught:
        module.build(config)
    assert str(caught.value) == message


@pytest.mark.parametrize("dim", range(16, 272, 16))
@pytest.mark.parametrize("columns", [0, 1])
def test_every_width_has_a_tiling(dim, columns):
    for value_dim in (0, 16, 96, 128, 256):
        config = hopper_fp8.choose(4, 1008, dim, "e4m3", causal=True, value_dim=value_dim, columns=columns)
        assert (config.dim, config.width) == (dim, value_dim or dim)
        hopper.check(config)
