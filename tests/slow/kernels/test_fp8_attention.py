"""Attention in e4m3: every length and tiling against float64, many schedules without findings."""

import pytest

from fp8_attention import agrees
from warpsmith.kernels.attention import hopper_fp8

TILINGS = [(64, 2, 128), (64, 3, 128), (64, 4, 64), (128, 2, 128), (128, 3, 96), (96, 2, 128)]
"""(dim, consumers, keys)"""


def config(sequence: int, causal: bool, columns: int, tiling: tuple[int, int, int], **options: object) -> hopper_fp8.Config:
    dim, consumers, keys = tiling
    shape = {"staged": 1, "ordered": 1, "multiprocessors": 2, "consumers": consumers, "keys": keys, "columns": columns}
    return hopper_fp8.Config(2, sequence, dim, "e4m3", causal, **(shape | options))


def halved(lengths: list[int]) -> list[tuple[int, tuple[int, int, int], bool]]:
    """Every length with every tiling, causal for every other pair of them."""
    return [(n, t, (i + j) % 2 == 1) for i, n in enumerate(lengths) for j, t in enumerate(TILINGS)]


@pytest.mark.parametrize(("sequence", "tiling", "causal"), halved([1, 64, 127, 128, 129, 512, 1000]))
def test_rows(sequence, tiling, causal):
    agrees(config(sequence, causal, 0, tiling))


@pytest.mark.parametrize(("keys", "tiling", "causal"), halved([16, 64, 112, 128, 144, 512, 1008]))
def test_columns(keys, tiling, causal):
    agrees(config(keys, causal, 1, tiling))


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("columns", [0, 1])
@pytest.mark.parametrize(("dim", "value_dim"), [(256, 0), (192, 128), (16, 16), (80, 112), (32, 256)])
def test_widths(dim, value_dim, columns, causal):
    agrees(hopper_fp8.choose(2, 304, dim, "e4m3", causal, value_dim=value_dim, columns=columns, kv_heads=1, multiprocessors=3))


@pytest.mark.parametrize("threshold", [1.0, 2.0, 4.0, 8.0])
def test_thresholds(threshold):
    agrees(config(400, True, 0, (64, 2, 128), threshold=threshold))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("columns", [0, 1])
@pytest.mark.parametrize("tiling", TILINGS, ids=str)
@pytest.mark.parametrize("schedule", ["random", "adversarial"])
def test_schedules_have_no_findings(schedule, tiling, columns, seed):
    agrees(config(304, seed % 2 == 0, columns, tiling), schedule=schedule, seed=seed)
