"""What the checker costs: processor time of a checked call over that of an unchecked one, each the best of several in turn.

    python benchmarks/checker.py [CASE...]

The promise is at most 3. loop-1, loop-64, divergent: nvcc's tiled matmul on one CTA and on 64, its mandelbrot. ampere,
hopper: attention, 200 and 300 keys; hopper-wide: on 32 CTAs; gemm: a tiled product; with `numerics="fast"`, so that products
cost little.
"""

import sys
import time

import numpy as np
from simulator_speed import cases as speed_cases

from warpsmith.kernels import gemm
from warpsmith.kernels.attention import ampere, hopper

BOUND = 3.0
ROUNDS = 5


def kernels():
    """Return name → (kernel, inputs)."""
    rng = np.random.default_rng(0)

    def halves(*shapes):
        return [rng.standard_normal(s).astype(np.float16) for s in shapes]

    return {
        "hopper": (hopper.build(hopper.Config(1, 300, causal=True, keys=64, multiprocessors=2)), halves(*[(1, 300, 64)] * 3)),
        "ampere": (ampere.build(ampere.Config(1, 200, causal=True)), halves(*[(1, 200, 64)] * 3)),
        "gemm": (
            gemm.build(gemm.Config(136, 136, 328, "f16", columns=64, stages=2, multiprocessors=2)),
            halves((136, 328), (136, 328)),
        ),
        "hopper-wide": (hopper.build(hopper.Config(32, 256, keys=64, multiprocessors=32)), halves(*[(32, 256, 64)] * 3)),
    }  # fmt: skip


def cases():
    """Return name → a function that runs the case, checked or not, and returns its result."""
    out = {name: run for name, run in speed_cases().items() if name not in ("straight", "wide")}
    for name, (kernel, inputs) in kernels().items():
        out[name] = lambda kernel=kernel, inputs=inputs, **o: kernel.simulate(*(a.copy() for a in inputs), numerics="fast", **o)
    return out


def main() -> None:
    """Measure every case, or those named."""
    for name, run in cases().items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        checked, unchecked = [], []
        for i in range(ROUNDS + 1):
            for seconds, check in ((unchecked, False), (checked, True)):
                started = time.process_time()
                result = run(check=check)
                took = time.process_time() - started
                assert not result.findings, str(result)
                if i:
                    seconds.append(took)
        ratio = min(checked) / min(unchecked)
        verdict = "holds" if ratio <= BOUND else "does not hold"
        print(f"checker {name}: {ratio:.2f} times an unchecked run (at most {BOUND:g}: {verdict})")


if __name__ == "__main__":
    main()
