"""Random problems of the shipped kernels: shapes, options, inputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, final

import ml_dtypes
import numpy as np

from warpsmith.kernels import gemm, rms_norm
from warpsmith.kernels.attention import ampere, hopper, hopper_fp8, hopper_packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.random import Generator

__all__ = ["Problem", "problems"]

_DTYPE = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "e4m3": np.dtype(ml_dtypes.float8_e4m3fn)}
_DIMS = (64, 128, 96, 256, 32, 80, 192, 112)


@final
@dataclass(frozen=True, slots=True)
class Problem:
    """A kernel with its configuration, and what makes its inputs."""

    name: str
    module: Any
    config: Any
    make: Callable[[Generator], list[Any]]

    def built(self) -> Any:
        """Return the kernel."""
        return self.module.build(self.config)

    def inputs(self, seed: int) -> list[Any]:
        """Return the inputs of this seed, anew."""
        return self.make(np.random.default_rng(1000 + seed))


def problems(count: int, arch: str) -> list[Problem]:
    """Return `count` random problems of each kernel, the same ones each time; `arch` is an H100's or H200's."""
    rng = np.random.default_rng(20)
    return [problem for i in range(count) for problem in _of_round(rng, i, arch)]


def _of_round(rng: Generator, i: int, arch: str) -> Iterator[Problem]:
    dtype = ("f16", "bf16")[i % 2]
    m, n, k = (8 * int(x) for x in rng.integers(1, 40, 3))
    layout = ("nt", "nn")[i // 2 % 2]
    b = (n, k) if layout == "nt" else (k, n)
    product = gemm.Config(m, n, k, dtype, layout, multiprocessors=3)
    yield Problem("gemm", gemm, product, partial(_normal, ((m, k), b), dtype))
    rows, columns = int(rng.integers(1, 6)), 8 * int(rng.integers(1, 400))
    norm = rms_norm.Config(rows, columns, dtype, arch=arch)
    yield Problem("rms_norm", rms_norm, norm, partial(_normal, ((rows, columns), (columns,)), dtype))
    sequence, dim, causal = int(rng.integers(1, 300)), (64, 128)[i // 4 % 2], bool(i // 2 % 2)
    whole = partial(_normal, ((1, sequence, dim),) * 3, dtype)
    yield Problem("hopper", hopper, hopper.Config(1, sequence, dim, dtype, causal, multiprocessors=2), whole)
    yield Problem("ampere", ampere, ampere.Config(1, sequence, dim, dtype, causal, arch=arch), whole)
    yield _options(rng, i, dtype)
    yield _fp8(rng, i)
    yield _packed(rng, i, dtype)


def _normal(shapes: tuple[tuple[int, ...], ...], dtype: str, rng: Generator) -> list[Any]:
    return [rng.standard_normal(shape).astype(_DTYPE[dtype]) for shape in shapes]


def _wide(shapes: tuple[tuple[int, ...], ...], dtype: str, rng: Generator) -> list[Any]:
    """Scores beyond what a threshold allows: maxima that move from tile to tile."""
    return [(rng.standard_normal(shape) * 3).astype(_DTYPE[dtype]) for shape in shapes]


def _options(rng: Generator, i: int, dtype: str) -> Problem:
    """Hopper attention as `choose` tiles it: head dimensions, grouped heads, windows, soft caps, emulated exponentials."""
    sequence, keys = (int(x) for x in rng.integers(1, 400, 2))
    dim, causal = _DIMS[i % len(_DIMS)], bool(rng.integers(2))
    given: dict[str, Any] = {"kv_heads": 1 + i % 2, "kv_sequence": (0, keys)[i // 2 % 2], "multiprocessors": 2}
    if causal and i % 3 == 0:
        given["window"] = int(rng.integers(1, 150))
    if i % 5 == 0:
        given["soft_cap"] = 5.0
    if i % 4 == 1:
        given["emulated"] = int(rng.integers(1, 9))
    if i % 4 == 2:
        given["threshold"] = 8.0
    if dim == 192:
        given["value_dim"] = 128
    c = hopper.choose(2, sequence, dim, dtype, causal, **given)
    shapes = (2, sequence, dim), (c.key_heads, c.key_count, dim), (c.key_heads, c.key_count, c.width)
    return Problem("hopper, options", hopper, c, partial(_wide, shapes, dtype))


def _fp8(rng: Generator, i: int) -> Problem:
    """Attention in e4m3, V by rows or by columns."""
    columns, dim, causal = i % 2, (64, 128, 96, 256, 32)[i // 2 % 5], bool(rng.integers(2))
    sequence, keys = int(rng.integers(1, 300)), 16 * int(rng.integers(1, 25))
    given: dict[str, Any] = {"columns": columns, "kv_heads": 1, "kv_sequence": keys, "multiprocessors": 2}
    c = hopper_fp8.choose(2, sequence, dim, "e4m3", causal, **given, output=("bf16", "f16")[i // 4 % 2])
    k = (1, keys // 4, 4, dim) if columns else (1, keys, dim)
    v = (1, c.width, keys) if columns else (1, keys, c.width)

    def make(rng: Generator) -> list[Any]:
        factors = [rng.uniform(0.5, 2.0, 1).astype(np.float32) for _ in range(3)]
        return _wide(((2, sequence, dim), k, v), "e4m3", rng) + factors

    return Problem("hopper_fp8", hopper_fp8, c, make)


def _packed(rng: Generator, i: int, dtype: str) -> Problem:
    """Sequences of random lengths, one behind the other; some empty."""
    lengths = [int(x) for x in rng.integers(0, 200, 4)] + [1]
    keys = None if i % 3 == 0 else [int(x) for x in rng.integers(0, 200, 5)]
    dim = (64, 128, 96, 48)[i // 2 % 4]
    given: dict[str, Any] = {"kv_heads": 1 + i % 2, "packed": 1, "multiprocessors": 3}
    c = hopper.choose(2, 1, dim, dtype, bool(rng.integers(2)), **given)
    table = hopper_packed.plan(c, lengths, keys)
    total = max(1, sum(lengths if keys is None else keys))
    shapes = (sum(lengths), 2, dim), (total, c.key_heads, dim), (total, c.key_heads, c.width)
    return Problem("hopper_packed", hopper_packed, c, lambda rng: [*_wide(shapes, dtype, rng), table])
