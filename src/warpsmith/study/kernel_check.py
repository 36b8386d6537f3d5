"""Check the shipped kernels on the GPU of this machine, and time them: `python -m warpsmith.study.kernel_check`.

Attention is compared with float64 attention, RMS norm and GEMM with float64 arithmetic on the same inputs. Prints a line a
problem and exits with 1 when an error is over its limit.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from statistics import median
from typing import Any

import ml_dtypes
import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.base.module_command import run_module
from warpsmith.dsl.call import bind
from warpsmith.dsl.kernel import Kernel
from warpsmith.hardware.gpu_run import prepare
from warpsmith.kernels import gemm, rms_norm
from warpsmith.kernels.attention import ampere, hopper
from warpsmith.kernels.attention.reference import attention
from warpsmith.launch.driver import driver

__all__ = ["main"]

_LIMIT = {"f16": 4e-3, "bf16": 3e-2}
_DTYPE = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


@dataclass(slots=True)
class Outcome:
    """One checked problem."""

    name: str
    error: float
    limit: float
    microseconds: float
    tflops: float

    @property
    def good(self) -> bool:
        """Whether the error is within its limit."""
        return self.error <= self.limit

    def __str__(self) -> str:
        speed = f"{self.tflops:7.1f} TFLOP/s" if self.tflops else ""
        verdict = "ok  " if self.good else "FAIL"
        return f"{verdict} {self.name:50s} error {self.error:.2e} (≤ {self.limit:.0e}) {self.microseconds:9.1f} µs {speed}"


def _random(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(_DTYPE[dtype])


def _run(kernel: Kernel, inputs: tuple[Any, ...], keep: int) -> tuple[list[Any], float]:
    bound = bind(kernel, inputs, {})
    prepared = prepare(
        kernel.cubin(), bound.built.name, grid=bound.grid, block=bound.block, cluster=bound.cluster, args=bound.args,
        dynamic_shared=bound.built.dynamic_shared,
    )  # fmt: skip
    prepared.run()
    outputs = [np.array(o) for o in bound.outputs[:keep]]
    micro = median(prepared.driver.time(prepared.launch))
    prepared.free()
    return outputs, micro


def _worst(got: Any, want: Any) -> float:
    difference = np.abs(np.asarray(got).astype(np.float64) - want)
    return float("inf") if np.isnan(difference).any() else float(difference.max())


def check_attention(module: Any, config: Any, *, heads_checked: int = 2) -> Outcome:
    """Run one attention problem; the first heads are compared with float64."""
    shape = (config.heads, config.sequence, config.dim)
    q, k, v = (_random(shape, config.dtype, seed) for seed in range(3))
    (o, lse), micro = _run(module.build(config), (q, k, v), 2)
    error = 0.0
    for first in sorted({0, config.sequence // 2, max(0, config.sequence - 512)}) if config.sequence > 1024 else (0,):
        some = slice(0, heads_checked)
        rows = slice(first, first + 512 if config.sequence > 1024 else None)
        want, want_lse = attention(q[some, rows], k[some], v[some], causal=config.causal, scale=config.scale, first_row=first)
        error = max(error, _worst(o[some, rows], want), _worst(lse[some, rows], want_lse))
    work = 4 * config.heads * config.sequence**2 * config.dim / (2 if config.causal else 1)
    name = f"{module.__name__.rpartition('.')[2]} {config.dtype} D{config.dim} H{config.heads} S{config.sequence}"
    name += (" causal" if config.causal else "") + (f" {config.consumers}x64/{config.keys}" if hasattr(config, "keys") else "")
    return Outcome(name, error, _LIMIT[config.dtype], micro, work / micro / 1e6)


def check_rms_norm(config: rms_norm.Config) -> Outcome:
    """Run one RMS norm."""
    x, w = _random((config.rows, config.columns), config.dtype, 0), _random((config.columns,), config.dtype, 1)
    (y,), micro = _run(rms_norm.build(config), (x, w), 1)
    x64, w64 = x.astype(np.float64), w.astype(np.float64)
    want = x64 / np.sqrt((x64**2).mean(axis=1, keepdims=True) + config.epsilon) * w64
    error = _worst(y.astype(np.float64) / np.maximum(1, np.abs(want)), want / np.maximum(1, np.abs(want)))
    return Outcome(f"rms_norm {config.dtype} {config.rows}x{config.columns}", error, _LIMIT[config.dtype], micro, 0)


def check_gemm(config: gemm.Config) -> Outcome:
    """Run one GEMM; the error is relative to the square root of k."""
    a = _random((config.m, config.k), config.dtype, 0)
    b = _random((config.n, config.k) if config.layout == "nt" else (config.k, config.n), config.dtype, 1)
    (c,), micro = _run(gemm.build(config), (a, b), 1)
    b32 = b.astype(np.float32)
    rows = slice(0, min(config.m, 512))
    want = a[rows].astype(np.float64) @ (b32.T if config.layout == "nt" else b32).astype(np.float64)
    error = _worst(c[rows], want) / config.k**0.5
    name = f"gemm {config.dtype} {config.layout} {config.m}x{config.n}x{config.k} columns {config.columns}"
    return Outcome(name, error, 2 * _LIMIT[config.dtype], micro, 2 * config.m * config.n * config.k / micro / 1e6)


def problems(arch: str) -> list[tuple[Any, ...]]:
    """Return (check, arguments…) of every problem: all shapes small, a few large ones for the time."""
    out: list[tuple[Any, ...]] = []
    for dtype in ("f16", "bf16"):
        for causal in (False, True):
            for dim in (64, 128):
                for sequence in (1, 64, 127, 128, 129, 512, 1000):
                    shape: dict[str, Any] = {"heads": 2, "sequence": sequence, "dim": dim, "dtype": dtype, "causal": causal}
                    out.append((check_attention, ampere, ampere.Config(**shape, arch=arch)))
                    for consumers in (2, 3) if dim == 64 else (2,):
                        out.append((check_attention, hopper, hopper.Config(**shape, consumers=consumers)))
    for dim in (64, 128):
        for causal in (False, True):
            for heads, sequence in ((8, 4096), (2048 // dim, 16384)):
                for consumers in (2, 3) if dim == 64 else (2,):
                    large = hopper.Config(heads, sequence, dim, "f16", causal, consumers=consumers)
                    out.append((check_attention, hopper, large))
            out.append((check_attention, ampere, ampere.Config(8, 4096, dim, "f16", causal, arch=arch)))
    for columns in (8, 1024, 4096, 5000):
        out += [(check_rms_norm, rms_norm.Config(rows, columns, d, arch=arch)) for rows, d in ((3, "f16"), (4096, "bf16"))]
    for layout in ("nt", "nn"):
        for m, n, k in ((64, 64, 64), (200, 136, 72), (1000, 1000, 1000), (4096, 4096, 4096), (8192, 8192, 8192)):
            out += [
                (check_gemm, gemm.Config(m, n, k, d, layout, columns, stages))
                for d, columns, stages in (("bf16", 128, 4), ("f16", 256, 3))
            ]
    return out


def main(arguments: list[str]) -> int:
    """Check everything; 0 when all is within its limits."""
    if arguments:
        raise InputError(f"kernel_check takes no arguments; {' '.join(arguments)!r} was given")
    bad = 0
    for check, *rest in problems(driver().arch):
        outcome = check_attention(rest[0], rest[1], heads_checked=1) if check is check_attention else check(*rest)
        bad += not outcome.good
        sys.stdout.write(f"{outcome}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{bad} over their limit\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(run_module(main, __doc__, sys.argv[1:]))
