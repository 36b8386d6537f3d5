"""Correct kernels under random and adversarial schedules: no findings, and the results of the fair one bit for bit."""

import numpy as np
import pytest

from ptx_corpus import sample
from warpsmith.simulator import simulate

SEEDS = range(20)


def launches():
    """Return name → (file, kernel, grid, block, arguments, options): arguments are made anew by calling them."""
    rng = np.random.default_rng(0)
    f = rng.standard_normal((4096,)).astype(np.float32)
    i = rng.integers(-99, 99, 2048).astype(np.int32)
    h = rng.standard_normal((2, 80 * 64)).astype(np.float16)
    zeros = np.zeros
    return {
        "matmul": ("nvcc/launchable.sm_90a", "matmul", (3, 3), (16, 16), lambda: (zeros(2304, "f"), f, f[1024:], 48), {}),
        "softmax": ("nvcc/launchable.sm_90a", "softmax", 4, 128, lambda: (zeros(1200, "f"), f, 300), {}),
        "bitonic_sort": ("nvcc/launchable.sm_90a", "bitonic_sort", 1, 512, lambda: (i[:512].astype(np.uint32),), {}),
        "merge_sort": ("nvcc/algorithms.sm_75", "merge_sort", 1, 256, lambda: (i[:1024].copy(), 1024), {}),
        "sgemm": ("nvcc/algorithms.sm_75", "sgemm", (1, 1), 256, lambda: (zeros(4096, "f"), f, f, 64, 64, 32), {}),
        "chained_scan": (
            "nvcc/algorithms.sm_75", "chained_scan", 8, 128,
            lambda: (zeros(1024, np.int32), i, zeros(8, np.int32), zeros(8, np.int32), zeros(1, np.int32)), {},
        ),
        "lock_each": ("nvcc/algorithms.sm_75", "lock_each", 2, 32, lambda: (zeros(1, np.int32), zeros(1, np.int32), 2), {}),
        "triton attention": (
            "triton/attention.sm_80", "attention", 2, 128,
            lambda: (h[0], h[1], h[0], zeros(5120, np.float16), 80, 0.18, 0, 0), {"dynamic_shared": 65536},
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", launches())
def test_schedules_agree(name):
    file, kernel, grid, block, arguments, options = launches()[name]

    def run(**order):
        args = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments()]
        result = simulate(sample(file), kernel=kernel, grid=grid, block=block, args=args, **options, **order)
        assert not result.findings, str(result)
        assert result.completed
        return [a for a in args if isinstance(a, np.ndarray)]

    fair = run()
    for schedule, seed in [("random", s) for s in SEEDS] + [("adversarial", s) for s in range(12)]:
        for a, b in zip(fair, run(schedule=schedule, seed=seed), strict=True):
            assert np.array_equal(a.view(np.uint8), b.view(np.uint8)), (schedule, seed)
