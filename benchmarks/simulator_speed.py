"""Warp-instructions per second of the simulator, one process.

    python benchmarks/simulator_speed.py [--profile NAME]

straight: 16,000 fma on 16 accumulators, 8 warps. loop: nvcc's tiled matmul (shared memory, barriers).
divergent: nvcc's mandelbrot, every lane with a trip count of its own. wide: straight on 132 CTAs. Then how much
longer 64,000 instructions in a straight line take to prepare and run once than 8,000: 8 is linear.
"""

import cProfile
import pstats
import sys
import time
from pathlib import Path

import numpy as np

from warpsmith.assembly.ptx import parse
from warpsmith.simulator import simulate

DATA = Path(__file__).parents[1] / "tests" / "data" / "ptx" / "nvcc" / "launchable.sm_90a.ptx"


def straight_text(unrolled: int = 160, times: int = 100, accumulators: int = 16) -> str:
    """Return a kernel that runs `unrolled` fma on interleaved accumulators, `times` over."""
    lines = [f"  fma.rn.f32 %f{i % accumulators}, %f{i % accumulators}, %f30, %f31;" for i in range(unrolled)]
    start = [f"  mov.f32 %f{i}, 0f3F800000;" for i in range(32)]
    return "\n".join([
        ".version 8.0", ".target sm_90", ".address_size 64", ".visible .entry straight(.param .u64 out)", "{",
        "  .reg .f32 %f<32>; .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p<2>;", "  ld.param.u64 %rd1, [out];",
        "  mov.u32 %r1, %tid.x; mov.u32 %r2, 0;", *start, "  mov.f32 %f30, 0f3F7FFFFF;", "  mov.f32 %f31, 0f3A83126F;",
        "LOOP:", *lines, f"  add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, {times}; @%p1 bra LOOP;",
        "  mul.wide.u32 %rd2, %r1, 4;", "  add.s64 %rd3, %rd1, %rd2;", "  st.global.f32 [%rd3], %f0;", "  ret;", "}",
    ])  # fmt: skip


def cases():
    """Return name → a function that runs the case and returns its result."""
    text = parse(straight_text())
    module = parse(DATA.read_text(), DATA.name)
    n = 512
    a, b = np.random.default_rng(0).standard_normal((2, n, n)).astype(np.float32)
    c = np.zeros((n, n), np.float32)
    image = np.zeros((64, 64), np.int32)
    return {
        "straight": lambda **o: simulate(text, grid=1, block=256, args=[np.zeros(256, np.float32)], **o),
        "wide": lambda **o: simulate(text, grid=132, block=256, args=[np.zeros(256, np.float32)], **o),
        "loop-1": lambda **o: simulate(module, kernel="matmul", grid=(1, 1), block=(16, 16), args=[c, a, b, n], **o),
        "loop-64": lambda **o: simulate(module, kernel="matmul", grid=(8, 8), block=(16, 16), args=[c, a, b, n], **o),
        "divergent": lambda **o: simulate(
            module, kernel="mandelbrot", grid=(4, 8), block=(16, 8), args=[image, 64, 64, 200], **o
        ),
    }


def growth() -> float:
    """Return how many times longer 64,000 instructions take than 8,000, by the time of the processor."""
    took: list[float] = []
    for count in (8_000, 64_000):
        module = parse(straight_text(count, 1))
        start = time.process_time()
        simulate(module, grid=1, block=32, args=[np.zeros(32, np.float32)], check=False)
        took.append(time.process_time() - start)
    return took[1] / took[0]


def main() -> None:
    """Measure every case, or profile one."""
    all_cases = cases()
    if "--profile" in sys.argv:
        run = all_cases[sys.argv[sys.argv.index("--profile") + 1]]
        run()
        profile = cProfile.Profile()
        profile.runcall(run)
        pstats.Stats(profile).sort_stats("tottime").print_stats(22)
        return
    for name, run in all_cases.items():
        run()
        results = [run() for _ in range(3)]
        seconds = min(r.timeline.running for r in results)
        rate = results[0].counters.warp_instructions / seconds
        bound = 1_000_000 if name in ("straight", "wide", "loop-64") else 200_000
        verdict = "holds" if rate >= bound else "does not hold"
        print(f"simulate {name}: {rate:,.0f} warp-instr/s (at least {bound:,}: {verdict})")
    times = growth()
    verdict = "holds" if times <= 12 else "does not hold"
    print(f"prepare: 64,000 instructions take {times:.1f} times as long as 8,000 (at most 12: {verdict})")


if __name__ == "__main__":
    main()
