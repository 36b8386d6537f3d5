"""Kernels of tests/data/cuda/tensor.cu as nvcc compiled them, and Triton's attention, against numpy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from ptx_corpus import sample, sample_text
from warpsmith.assembly.ptx import parse
from warpsmith.simulator.api import simulate
from warpsmith.simulator.fragments import accumulator, operand_a, operand_b
from warpsmith.simulator.tensormap import TensorMap


def launch(kernel: str, block: int, *args: Any) -> None:
    module = sample("nvcc/tensor.sm_90a.lines")
    r = simulate(module, kernel=kernel, grid=(1, 1, 1), block=(block, 1, 1), args=list(args), schedule="random", seed=2)
    assert r.completed
    assert [str(f) for f in r.findings] == []


def test_mma_tile() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (16, 16)).astype(np.float16), rng.integers(-9, 9, (16, 8)).astype(np.float16)
    maps = operand_a(16, 16, 16), operand_b(16, 8, 16)
    registers = [np.ascontiguousarray(x[m]).view(np.uint32)[..., 0].T.copy() for x, m in zip((a, b), maps, strict=True)]
    out = np.zeros((32, 4), np.float32)
    launch("mma_tile", 32, out, *registers)
    got = np.zeros((16, 8))
    row, column = accumulator(16, 8, 32)
    got[row[..., 0], column[..., 0]] = out.T
    assert (got == a.astype(float) @ b.astype(float)).all()


def test_wmma_tile() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, (16, 16)).astype(np.float16) for _ in range(2))
    out = np.zeros((16, 16), np.float32)
    launch("wmma_tile", 32, out, a, b)
    assert (out == a.astype(float) @ b.T.astype(float)).all()


def test_ldmatrix_copy() -> None:
    data, out = np.arange(256, dtype=np.uint16), np.zeros((32, 4, 2), np.uint16)
    launch("ldmatrix_copy", 32, out, data)
    matrices = data.reshape(4, 8, 8)
    for lane in range(32):
        for i in range(4):
            assert out[lane, i].tolist() == [matrices[i, 2 * (lane % 4) + k, lane // 4] for k in (0, 1)]


def test_tma_copy() -> None:
    a, out = np.arange(96 * 64, dtype=np.float32).reshape(96, 64), np.zeros((32, 32), np.float32)
    launch("tma_copy", 128, out, TensorMap(a, box=(32, 32)), 40, 70)
    want = np.zeros((32, 32))
    want[:26, :24] = a[70:, 40:]
    assert (out == want).all()


def test_wgmma_tile() -> None:
    """8x16-byte core matrices: 128 bytes from one to the next along K, 256 along M."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (64, 16)).astype(np.float16), rng.integers(-9, 9, (8, 16)).astype(np.float16)
    cores = [x.reshape(-1, 8, 2, 8).transpose(0, 2, 1, 3).reshape(-1) for x in (a, b)]
    out = np.zeros((128, 4), np.float32)
    launch("wgmma_tile", 128, out, np.concatenate(cores))
    want = a.astype(float) @ b.T.astype(float)
    for t in range(128):
        for i in range(4):
            assert out[t, i] == want[16 * (t // 32) + t % 32 // 4 + 8 * (i // 2), 2 * (t % 4) + i % 2]


@pytest.mark.parametrize("name", ["attention.sm_80", "attention.sm_90", "attention.sm_120"])
def test_attention_of_triton(name: str) -> None:
    source = sample_text(f"triton/{name}")
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((112, 64)).astype(np.float16) for _ in range(3))
    out = np.zeros((112, 64), np.float16)
    scratch = [np.zeros(1 << 16, np.uint8)] * (len(set(re.findall(r"_param_\d+", source))) - 6)
    r = simulate(
        parse(source), grid=(2, 1, 1), block=(128, 1, 1), args=[q, k, v, out, 112, np.float32(0.18), *scratch],
        dynamic_shared=90 * 1024, schedule="random", seed=5,
    )  # fmt: skip
    assert r.completed
    assert [str(f) for f in r.findings] == []
    s = q.astype(float) @ k.astype(float).T * 0.18
    p = np.exp2(s - s.max(1, keepdims=True))
    assert np.abs(out - p @ v.astype(float) / p.sum(1, keepdims=True)).max() < 1e-3
