"""The attention kernels: time to trace one, and to simulate one head of S=1024, D=64, exactly and with checks.

    PYTHONPATH=src python benchmarks/attention.py [--headline]

Warp-instructions are what warps execute, each counted once per warp, products of tensor cores among them. Rates are by the
processor time of one core, so that other work on the computer does not count; bounds on seconds are by the clock.
--headline: B=1, H=8, S=4096, D=64 on Hopper, numerics="fast", two processes; and the memory it takes.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np

from warpsmith.kernels.attention import ampere, hopper
from warpsmith.kernels.attention.reference import attention

TRACE_BOUND = 0.1
TILE_BOUND = 6.0
RATE_BOUND = 300_000
HEADLINE_BOUND = 120.0
MEMORY_BOUND = 1 << 30


def line(what: str, value: float, bound: float, more: str = "", *, unit: str = "s", least: bool = False) -> None:
    holds = value >= bound if least else value <= bound
    shown = f"{value:.3f}" if unit == "s" else f"{value:,.0f}"
    word = "at least" if least else "bound"
    print(f"{what}: {shown} {unit} ({word} {bound:,g} {unit}: {'holds' if holds else 'BROKEN'}){more}")


def trace() -> float:
    hopper.build.cache_clear()
    kernel = hopper.build(hopper.Config(heads=1, sequence=1024))
    start = time.perf_counter()
    kernel.module()
    return time.perf_counter() - start


def problem(heads: int, sequence: int) -> Any:
    return np.random.default_rng(0).standard_normal((3, heads, sequence, 64)).astype(np.float16)


def tile(kernel: Any, **options: Any) -> tuple[float, float, int, float]:
    """Return (seconds, seconds of the processor, warp-instructions, largest error), the best of three runs."""
    q, k, v = problem(1, 1024)
    best = (1e9, 1e9, 0, 0.0)
    for _ in range(3):
        start, busy = time.perf_counter(), time.process_time()
        result = kernel.simulate(q, k, v, **options)
        seconds, processor = time.perf_counter() - start, time.process_time() - busy
        error = float(np.abs(result.outputs[0] - attention(q, k, v)[0]).max())
        best = min(best, (seconds, processor, result.counters.warp_instructions, error))
    return best


def headline() -> None:
    q, k, v = problem(8, 4096)
    kernel = hopper.build(hopper.Config(heads=8, sequence=4096))
    start = time.perf_counter()
    result = kernel.simulate(q, k, v, numerics="fast", jobs=2)
    seconds = time.perf_counter() - start
    error = float(np.abs(result.outputs[0] - attention(q, k, v)[0]).max())
    line("simulate H=8 S=4096 D=64, fast", seconds, HEADLINE_BOUND, f", {result.processes}, error {error:.1e}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"  processor time of both: {used.ru_utime + used.ru_stime:.1f} s")
    line("memory of its largest process", used.ru_maxrss << 10, MEMORY_BOUND, unit="bytes")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--headline", action="store_true")
    arguments = parser.parse_args()
    line("trace the Hopper attention kernel", min(trace() for _ in range(5)), TRACE_BOUND)
    kernels = {
        "Hopper": hopper.build(hopper.Config(heads=1, sequence=1024)),
        "Ampere": ampere.build(ampere.Config(heads=1, sequence=1024)),
    }
    for name, kernel in kernels.items():
        for how, options in (
            ("exact, checked", {}),
            ("exact", {"check": False}),
            ("fast", {"check": False, "numerics": "fast"}),
        ):
            seconds, processor, count, error = tile(kernel, **options)
            line(f"simulate {name} S=1024 D=64, one head, {how}", seconds, TILE_BOUND, f", error {error:.1e}")
            line("  of one core", count / processor, RATE_BOUND, unit="warp-instr/s", least=True)
    if arguments.headline:
        headline()


if __name__ == "__main__":
    main()
