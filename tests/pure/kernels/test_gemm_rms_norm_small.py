"""GEMM and RMS norm on the simulator, one small problem each; more of them are in `tests/slow/kernels`."""

import numpy as np
import pytest

from warpsmith.base.errors import InputError
from warpsmith.kernels import gemm, rms_norm
from warpsmith.testing import assert_clean


@pytest.mark.parametrize("layout", ["nt", "nn"])
def test_gemm(layout):
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((100, 72)).astype(np.float16), rng.standard_normal((136, 72)).astype(np.float16)
    kernel = gemm.build(gemm.Config(100, 136, 72, "f16", layout, multiprocessors=2))
    result = assert_clean(kernel, a, b if layout == "nt" else np.ascontiguousarray(b.T), schedules=2)
    want = a.astype(np.float64) @ b.astype(np.float64).T
    assert np.abs(result.outputs[0].astype(np.float64) - want).max() / 72**0.5 <= 4e-3


def test_rms_norm():
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((2, 1000)).astype(np.float16), rng.standard_normal(1000).astype(np.float16)
    result = assert_clean(rms_norm.build(rms_norm.Config(2, 1000, "f16")), x, w, schedules=2)
    x64 = x.astype(np.float64)
    want = x64 / np.sqrt((x64**2).mean(axis=1, keepdims=True) + 1e-6) * w.astype(np.float64)
    assert (np.abs(result.outputs[0].astype(np.float64) - want) / np.maximum(1, np.abs(want))).max() <= 4e-3


@pytest.mark.parametrize(
    ("module", "config", "message"),
    [
        (gemm, gemm.Config(0, 64, 64), "gemm: m=0 must be at least 1"),
        (gemm, gemm.Config(64, 60, 64), "gemm: n=60; rows must be multiples of 16 bytes, use a multiple of 8"),
        (gemm, gemm.Config(64, 64, 64, "f32"), "gemm: dtype 'f32' is not supported; use 'f16' or 'bf16'"),
        (
            gemm, gemm.Config(64, 64, 64, layout="tn"),
            "gemm: layout 'tn' is not supported; use 'nt' (B is [n, k]) or 'nn' (B is [k, n])",
        ),
        (gemm, gemm.Config(64, 64, 64, columns=96), "gemm: 96 columns a work item; use 64, 128, 192 or 256"),
        (rms_norm, rms_norm.Config(4, 1001), "rms_norm: 1001 columns; a row is read 16 bytes at a time, use a multiple of 8"),
        (rms_norm, rms_norm.Config(4, 1000, "f64"), "rms_norm: dtype 'f64' is not supported; use 'f16' or 'bf16'"),
        (rms_norm, rms_norm.Config(0, 1000), "rms_norm: rows=0 must be at least 1"),
    ],
)  # fmt: skip
def test_refuses_by_name(module, config, message):
    with pytest.raises(InputError) as caught:
        module.build(config)
    assert str(caught.value) == message
