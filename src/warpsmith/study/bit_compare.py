"""Run random problems of the shipped kernels on the simulator and on the GPU, and compare every output bit.

    python -m warpsmith.study.bit_compare [PROBLEMS]

PROBLEMS (default 50) of each kernel (`bit_problems`): GEMM, RMS norm, Hopper and Ampere attention, Hopper attention with its
options, in e4m3, and of packed sequences. ptxas compiles with `--fmad=false`; the kernels write their contractions
themselves. Prints a line a kernel and the first difference of each problem that differs; exits with 1 if any does.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.base.module_command import run_module
from warpsmith.dsl.call import bind
from warpsmith.hardware.gpu_run import prepare
from warpsmith.launch.driver import driver
from warpsmith.study.bit_problems import Problem, problems
from warpsmith.toolchain import compile_ptx

__all__ = ["main"]


def _simulate(task: tuple[int, str, int]) -> tuple[bytes, list[Any], list[str]]:
    """Compile and simulate problem `seed` of `problems(count, arch)`: modules do not travel between processes."""
    count, arch, seed = task
    problem = problems(count, arch)[seed]
    kernel = problem.built()
    cubin = compile_ptx(kernel.ptx(), kernel.arch, ("--fmad=false",)).cubin
    result = kernel.simulate(*problem.inputs(seed))
    return cubin, [np.array(o) for o in result.outputs], [str(f) for f in result.findings]


def _on_gpu(problem: Problem, cubin: bytes, seed: int) -> list[Any]:
    bound = bind(problem.built(), problem.inputs(seed), {})
    prepared = prepare(
        cubin, bound.built.name, grid=bound.grid, block=bound.block, cluster=bound.cluster, args=bound.args,
        dynamic_shared=bound.built.dynamic_shared,
    )  # fmt: skip
    prepared.run()
    prepared.free()
    return bound.outputs


def _differences(gpu: list[Any], ours: list[Any]) -> str:
    for i, (a, b) in enumerate(zip(gpu, ours, strict=True)):
        bits = np.uint16 if a.dtype.itemsize == 2 else np.uint32
        wrong = np.argwhere(a.view(bits) != b.view(bits))
        if len(wrong):
            at = tuple(int(x) for x in wrong[0])
            return f"output {i}: {len(wrong)} of {a.size} differ, first {at}: GPU {a[at]}, simulator {b[at]}"
    return ""


def main(arguments: list[str]) -> int:
    """Compare; 1 when a bit differs or the simulator has a finding."""
    if len(arguments) > 1 or not all(word.isdecimal() for word in arguments):
        raise InputError(f"bit_compare takes a number of problems, e.g. 100; {' '.join(arguments)!r} was given")
    count, arch = int(arguments[0]) if arguments else 50, driver().arch
    tasks = problems(count, arch)
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        simulated = list(pool.map(_simulate, [(count, arch, seed) for seed in range(len(tasks))], chunksize=4))
    same: dict[str, list[bool]] = {}
    for seed, (problem, (cubin, ours, findings)) in enumerate(zip(tasks, simulated, strict=True)):
        text = "; ".join(findings[:1]) or _differences(_on_gpu(problem, cubin, seed), ours)
        same.setdefault(problem.name, []).append(not text)
        if text:
            sys.stdout.write(f"{problem.name} {problem.config}: {text}\n")
    for name, results in same.items():
        sys.stdout.write(f"{name}: {sum(results)} of {len(results)} problems bit-identical\n")
    return 0 if all(all(r) for r in same.values()) else 1


if __name__ == "__main__":
    sys.exit(run_module(main, __doc__, sys.argv[1:]))
