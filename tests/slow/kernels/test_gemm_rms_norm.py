"""GEMM and RMS norm on the simulator against float64."""

import ml_dtypes
import numpy as np
import pytest

from warpsmith.kernels import gemm, rms_norm
from warpsmith.testing import assert_clean

DTYPE = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("layout", ["nt", "nn"])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (200, 136, 72), (300, 264, 520)])
def test_gemm(m, n, k, layout, dtype):
    rng = np.random.default_rng(m)
    a = rng.standard_normal((m, k)).astype(DTYPE[dtype])
    b = rng.standard_normal((n, k) if layout == "nt" else (k, n)).astype(DTYPE[dtype])
    result = gemm.build(gemm.Config(m, n, k, dtype, layout, multiprocessors=3)).simulate(a, b)
    assert [str(f) for f in result.findings] == []
    b64 = b.astype(np.float64)
    want = a.astype(np.float64) @ (b64.T if layout == "nt" else b64)
    error = np.abs(result.outputs[0].astype(np.float64) - want).max() / k**0.5
    assert error <= {"f16": 4e-3, "bf16": 3e-2}[dtype]


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 8), (3, 1024), (5, 5000)])
def test_rms_norm(rows, columns, dtype):
    rng = np.random.default_rng(columns)
    x, w = rng.standard_normal((rows, columns)).astype(DTYPE[dtype]), rng.standard_normal(columns).astype(DTYPE[dtype])
    result = rms_norm.build(rms_norm.Config(rows, columns, dtype)).simulate(x, w)
    assert [str(f) for f in result.findings] == []
    x64 = x.astype(np.float64)
    want = x64 / np.sqrt((x64**2).mean(axis=1, keepdims=True) + 1e-6) * w.astype(np.float64)
    error = np.abs(result.outputs[0].astype(np.float64) - want) / np.maximum(1, np.abs(want))
    assert error.max() <= {"f16": 4e-3, "bf16": 3e-2}[dtype]


def test_random_schedules_have_no_findings():
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((200, 136)).astype(np.float16), rng.standard_normal((136, 136)).astype(np.float16)
    for layout in ("nt", "nn"):
        assert_clean(gemm.build(gemm.Config(200, 136, 136, "f16", layout, multiprocessors=3)), a, b, schedules=20)
    assert_clean(
        rms_norm.build(rms_norm.Config(5, 1000, "f16")),
        rng.standard_normal((5, 1000)).astype(np.float16),
        rng.standard_normal(1000).astype(np.float16),
        schedules=20,
    )
