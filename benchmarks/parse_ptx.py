"""Speed of the PTX reader, printer and checker on what compilers emit: `python benchmarks/parse_ptx.py`.

Prints instructions per second for each sample and for all of them, the best of five runs. The floor for reading is 60,000.
"""

from __future__ import annotations

import lzma
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.check import check
from warpsmith.assembly.ptx.tree import Instruction, Scope, Statement

DATA = Path(__file__).parents[1] / "tests" / "data" / "ptx"
FLOOR = 60_000
SAMPLES = (
    "nvcc/arithmetic.sm_90a.ptx.xz",
    "nvcc/launchable.sm_90a.lines.ptx",
    "triton/attention.bf16.sm_90.ptx.xz",
    "triton/matmul.tf32.sm_80.ptx.xz",
)


def count(body: Iterable[Statement]) -> int:
    """Return the number of instructions, those in scopes included."""
    return sum(count(s.body) if isinstance(s, Scope) else isinstance(s, Instruction) for s in body)


def best(function: Callable[[], object], runs: int = 5) -> float:
    """Return the shortest time of `runs` calls."""
    times: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> int:
    """Measure, print a table, and return 1 when reading is below the floor."""
    print(f"{'sample':36}{'instructions':>13}{'read/s':>10}{'print/s':>10}{'check/s':>10}")
    total, spent = 0, [0.0, 0.0, 0.0]
    for name in SAMPLES:
        data = (DATA / name).read_bytes()
        text = lzma.decompress(data).decode() if name.endswith(".xz") else data.decode()
        module = parse(text)
        n = sum(count(f.body or ()) for f in module.functions())
        seconds = [best(lambda t=text: parse(t)), best(lambda m=module: str(m)), best(lambda m=module: check(m))]
        print(f"{name:36}{n:13,}" + "".join(f"{n / s:10,.0f}" for s in seconds))
        total += n
        spent = [a + b for a, b in zip(spent, seconds, strict=True)]
    print(f"{'all':36}{total:13,}" + "".join(f"{total / s:10,.0f}" for s in spent))
    return 0 if total / spent[0] >= FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
