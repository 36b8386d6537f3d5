"""Time of tracing: a straight-line kernel of 5,000 instructions, 8,000 predicates, the Hopper attention kernel.

Run: PYTHONPATH=src python benchmarks/trace.py
"""

from __future__ import annotations

import time

from warpsmith import kernel, ptx, reg
from warpsmith.kernels.attention import hopper
from warpsmith.kernels.attention.hopper_config import Config
from warpsmith.types import f32, u32


def straight_line(count: int):
    @kernel(block=(128, 1, 1))
    def straight():
        a = reg.array(f32, 16)
        b = reg.scalar(u32, init=1)
        for i in range(count // 5):
            ptx.inst.fma.rn.f32(a[i % 16], a[(i + 1) % 16], a[(i + 2) % 16], a[i % 16])
            ptx.inst.add.rn.f32(a[i % 16], a[(i + 3) % 16], 1.0)
            b += i
            ptx.inst.xor.b32(b, b, i & 255)
            ptx.inst.mov.b32(a[i % 16], b)

    return straight


def predicates(count: int):
    @kernel(block=(128, 1, 1))
    def compare():
        a = reg.scalar(u32, init=1)
        for i in range(count):
            a > i  # noqa: B015 - emits a setp into a new predicate

    return compare


def seconds(kernel_object) -> float:
    start = time.process_time()  # what others run on the machine does not count
    kernel_object.build()
    return time.process_time() - start


def main() -> None:
    seconds(straight_line(100))
    for make, count, limit in ((straight_line, 5000, 0.1), (straight_line, 20000, 0.4), (predicates, 8000, 0.5)):
        best = min(seconds(make(count)) for _ in range(5))
        each = best / count * 1e6
        print(f"{make.__name__:14} {count:6} instructions  {best * 1e3:7.1f} ms   {each:5.1f} us each   limit {limit} s")
    k = hopper.build(Config(heads=8, sequence=1024, dim=128))
    print(f"Hopper attention, first trace {seconds(k) * 1e3:28.1f} ms   limit 0.1 s")
    k = straight_line(5000)
    k.build()
    start = time.perf_counter()
    k.ptx()
    print(f"print text     {5000:6} instructions  {(time.perf_counter() - start) * 1e3:7.1f} ms")


if __name__ == "__main__":
    main()
