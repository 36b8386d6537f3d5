"""Matrix products that Triton compiled (mma, wgmma, tcgen05, maps made on the device) against numpy, without findings."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptx_corpus import sample_text
from warpsmith.assembly.ptx import parse
from warpsmith.simulator.api import simulate

DTYPES: dict[str, tuple[Any, Any, float]] = {
    "fp16": (np.float16, np.float16, 1e-3),
    "bf16": (ml_dtypes.bfloat16, np.float32, 1e-6),
    "tf32": (np.float32, np.float32, 2e-6),
    "int8": (np.int8, np.int32, 0),
    "fp8": (ml_dtypes.float8_e4m3fn, np.float32, 2e-3),
}


@pytest.mark.parametrize(
    "name",
    [
        "matmul.fp16.sm_80",
        "matmul.tf32.sm_80",
        "matmul.int8.sm_80",
        "matmul.fp16.sm_90",
        "matmul.bf16.sm_90",
        "matmul.tf32.sm_90",
        "matmul.fp8.sm_90",
        "matmul.int8.sm_90",
        "matmul_descriptor.sm_90",
        "matmul.fp16.sm_100",
        "matmul.bf16.sm_100",
        "matmul.fp8.sm_100",
        "matmul.int8.sm_100",
        "matmul_descriptor.sm_100",
        "matmul.fp8.sm_120",
        "matmul_descriptor.sm_120",
    ],
)
def test_product(name: str) -> None:
    kind = "fp16" if "descriptor" in name else name.split(".")[1]
    of, to, tolerance = DTYPES[kind]
    m, n, k = 128, 64, 192
    rng = np.random.default_rng(0)
    if kind == "int8":
        a, b = rng.integers(-50, 50, (m, k)).astype(of), rng.integers(-50, 50, (k, n)).astype(of)
    else:
        a, b = rng.standard_normal((m, k)).astype(of), rng.standard_normal((k, n)).astype(of)
    if kind == "tf32":
        a, b = ((x.view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (a, b))
    right = np.ascontiguousarray(b.T) if "descriptor" in name else b
    c = np.zeros((m, n), to)
    source = sample_text(f"triton/{name}")
    scratch = [np.zeros(1 << 16, np.uint8)] * (len(set(re.findall(r"_param_\d+", source))) - 6)
    shared = (90 if "sm_120" in name or "sm_80" in name else 200) * 1024
    r = simulate(
        parse(source), grid=(m // 64, n // 64, 1), block=(128, 1, 1), args=[a, right, c, m, n, k, *scratch],
        dynamic_shared=shared, schedule="random", seed=1,
    )  # fmt: skip
    assert r.completed
    if "sm_100" in name:  # Triton leaves the fences of tcgen05 out, and converts what it has loaded before it waits
        kinds = {(f.kind, f.severity) for f in r.findings}
        assert kinds <= {("missing-tcgen05-fence", "portability"), ("missing-tcgen05-wait", "portability")}
    else:
        assert [str(f) for f in r.findings] == []
    want = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(c.astype(np.float64) - want).max() <= tolerance * np.abs(want).max()
