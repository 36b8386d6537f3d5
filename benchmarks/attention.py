"""The Hopper attention kernel: time to trace it, and to simulate one head of S=1024, D=64, exactly and with checks.

Run: PYTHONPATH=src python benchmarks/attention.py
"""

from __future__ import annotations

import time

import numpy as np

from warpsmith.kernels.attention import hopper
from warpsmith.kernels.attention.reference import attention

TRACE_BOUND = 0.1
TILE_BOUND = 20.0


def line(what: str, seconds: float, bound: float, more: str = "") -> None:
    print(f"{what}: {seconds:.3f} s (bound {bound:g} s: {'holds' if seconds <= bound else 'BROKEN'}){more}")


def trace() -> float:
    hopper.build.cache_clear()
    kernel = hopper.build(hopper.Config(heads=1, sequence=1024))
    start = time.perf_counter()
    kernel.module()
    return time.perf_counter() - start


def tile() -> tuple[float, float, int]:
    kernel = hopper.build(hopper.Config(heads=1, sequence=1024))
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((1, 1024, 64)).astype(np.float16) for _ in range(3))
    start = time.perf_counter()
    result = kernel.simulate(q, k, v)
    seconds = time.perf_counter() - start
    error = float(np.abs(result.outputs[0] - attention(q, k, v)[0]).max())
    return seconds, error, result.counters.warp_instructions


if __name__ == "__main__":
    line("trace the Hopper attention kernel", min(trace() for _ in range(5)), TRACE_BOUND)
    seconds, error, count = min(tile() for _ in range(2))
    line(
        "simulate S=1024 D=64, one head",
        seconds,
        TILE_BOUND,
        f", {count / seconds:,.0f} warp-instructions/s, error {error:.1e}",
    )
