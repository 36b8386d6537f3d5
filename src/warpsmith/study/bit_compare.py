"""Run random problems of the shipped kernels on the simulator and on the GPU, and compare every output bit.

    python -m warpsmith.study.bit_compare [PROBLEMS]

PROBLEMS (default 50) of each kernel: Hopper and Ampere attention, GEMM, RMS norm. ptxas compiles with `--fmad=false`;
the kernels write their contractions themselves. Prints a line a kernel and the first difference of each problem that
differs; exits with 1 if any does.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import ml_dtypes
import numpy as np

from warpsmith.dsl.call import bind
from warpsmith.hardware.gpu_run import prepare
from warpsmith.kernels import gemm, rms_norm
from warpsmith.kernels.attention import ampere, hopper
from warpsmith.launch.driver import driver
from warpsmith.toolchain import compile_ptx

__all__ = ["main"]

_DTYPE = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
Problem = tuple[Any, Any, tuple[tuple[int, ...], ...]]
"""Kernel module, its configuration, shapes of the inputs."""


def problems(count: int, arch: str) -> list[Problem]:
    """Return `count` random problems of each kernel."""
    rng = np.random.default_rng(20)
    out: list[Problem] = []
    for i in range(count):
        dtype = ("f16", "bf16")[i % 2]
        m, n, k = (8 * int(x) for x in rng.integers(1, 40, 3))
        layout = ("nt", "nn")[i // 2 % 2]
        b = (n, k) if layout == "nt" else (k, n)
        out.append((gemm, gemm.Config(m, n, k, dtype, layout, multiprocessors=3), ((m, k), b)))
        rows, columns = int(rng.integers(1, 6)), 8 * int(rng.integers(1, 400))
        out.append((rms_norm, rms_norm.Config(rows, columns, dtype, arch=arch), ((rows, columns), (columns,))))
        sequence, dim, causal = int(rng.integers(1, 300)), (64, 128)[i // 4 % 2], bool(i // 2 % 2)
        shapes = ((1, sequence, dim),) * 3
        out.append((hopper, hopper.Config(1, sequence, dim, dtype, causal, multiprocessors=2), shapes))
        out.append((ampere, ampere.Config(1, sequence, dim, dtype, causal, arch=arch), shapes))
    return out


def _inputs(problem: Problem, seed: int) -> list[Any]:
    rng = np.random.default_rng(1000 + seed)
    return [rng.standard_normal(shape).astype(_DTYPE[problem[1].dtype]) for shape in problem[2]]


def _simulate(task: tuple[int, str, int]) -> tuple[bytes, list[Any], list[str]]:
    """Compile and simulate problem `seed` of `problems(count, arch)`: modules do not travel between processes."""
    count, arch, seed = task
    problem = problems(count, arch)[seed]
    kernel = problem[0].build(problem[1])
    cubin = compile_ptx(kernel.ptx(), kernel.arch, ("--fmad=false",)).cubin
    result = kernel.simulate(*_inputs(problem, seed))
    return cubin, [np.array(o) for o in result.outputs], [str(f) for f in result.findings]


def _on_gpu(problem: Problem, cubin: bytes, seed: int) -> list[Any]:
    bound = bind(problem[0].build(problem[1]), _inputs(problem, seed), {})
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
    count, arch = int(arguments[0]) if arguments else 50, driver().arch
    tasks = problems(count, arch)
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        simulated = list(pool.map(_simulate, [(count, arch, seed) for seed in range(len(tasks))], chunksize=4))
    same: dict[str, list[bool]] = {}
    for seed, (problem, (cubin, ours, findings)) in enumerate(zip(tasks, simulated, strict=True)):
        name = problem[0].__name__.rpartition(".")[2]
        text = "; ".join(findings[:1]) or _differences(_on_gpu(problem, cubin, seed), ours)
        same.setdefault(name, []).append(not text)
        if text:
            sys.stdout.write(f"{name} {problem[1]}: {text}\n")
    for name, results in same.items():
        sys.stdout.write(f"{name}: {sum(results)} of {len(results)} problems bit-identical\n")
    return 0 if all(all(r) for r in same.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
