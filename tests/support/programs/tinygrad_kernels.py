"""tests/data/tinygrad/kernels.py: several kernels a computation, launched in tinygrad's order on the buffers it planned."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from functools import cache
from typing import Any

import numpy as np

from programs.program import Collection, Judge, Launch
from ptx_corpus import DATA
from warpsmith.simulator import SimulationResult, ptr

program = Collection("tinygrad", "", ("sm_80", "sm_90", "sm_120"))
PROGRAMS = program.programs
Arrays = list[np.ndarray]


@cache
def _launches() -> dict[str, Any]:
    return json.loads((DATA.parent / "tinygrad" / "launches.json").read_text())


def steps(name: str, inputs: dict[str, np.ndarray]) -> Generator[Launch, SimulationResult | None, Arrays]:
    """Launch a computation's kernels one after the other; return its outputs as bytes."""
    plan = _launches()[name]
    memory = [np.zeros(size, np.uint8) for size in plan["sizes"]]
    for given, (buffer, offset) in plan["inputs"].items():
        raw = np.ascontiguousarray(inputs[given]).reshape(-1).view(np.uint8)
        memory[buffer][offset : offset + raw.size] = raw
    for kernel, grid, block, buffers, values in plan["steps"]:
        pointers = [ptr(memory[b], offset) for b, offset in buffers]
        yield Launch([*pointers, *map(np.int32, values)], kernel, tuple(grid), tuple(block))
    return [memory[b][offset:] for b, offset in plan["outputs"]]


def computation(
    *expected: tuple[Callable[..., Any], float | None],
) -> Callable[[Callable[[np.random.Generator], dict[str, np.ndarray]]], None]:
    """Register a computation by its inputs; each output is a function of them in numpy, with a tolerance (None: same bits)."""

    def register(inputs: Callable[[np.random.Generator], dict[str, np.ndarray]]) -> None:
        def body(rng: np.random.Generator) -> Judge:
            given = inputs(rng)
            outputs = yield from steps(inputs.__name__, given)
            for got, (reference, tolerance) in zip(outputs, expected, strict=True):
                want = np.asarray(reference(**given))
                value = got[: want.nbytes].view(want.dtype).reshape(want.shape)
                if tolerance is None:
                    assert np.array_equal(value, want), f"{inputs.__name__}: {value} {want}"
                else:
                    assert np.allclose(value.astype(float), want.astype(float), rtol=tolerance, atol=tolerance)

        body.__doc__ = inputs.__doc__
        program(inputs.__name__, source=inputs.__name__)(body)

    return register


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _normal(rng: np.random.Generator, *shape: int, kind: Any = np.float32) -> np.ndarray:
    return rng.standard_normal(shape).astype(kind)


@computation((lambda a, b: (a.astype(float) @ b.astype(float)).astype(np.float32), 1e-4))
def product_of_halves(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A product of halves on tensor cores"""
    return {"a": _normal(rng, 64, 64, kind=np.float16), "b": _normal(rng, 64, 64, kind=np.float16)}


@computation((lambda a, b: a @ b, 1e-4))
def product_of_floats(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A product of floats"""
    return {"a": _normal(rng, 40, 24), "b": _normal(rng, 24, 56)}


@computation((_softmax, 1e-6))
def softmax(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Softmax in three kernels"""
    return {"x": _normal(rng, 16, 200)}


def _rms_norm(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    f = x.astype(float)
    return (f / np.sqrt((f * f).mean(1, keepdims=True) + 1e-5) * w).astype(np.float16)


@computation((_rms_norm, 4e-3))
def rms_norm(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """RMS norm of halves"""
    return {"x": _normal(rng, 12, 96, kind=np.float16), "w": _normal(rng, 96, kind=np.float16)}


def _attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    scores = q @ k.swapaxes(-1, -2) / 4
    return _softmax(np.where(np.tri(32, dtype=bool), scores, -np.inf)) @ v


@computation((_attention, 5e-3))
def attention(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Attention, causal, in four kernels; its products are of tf32"""
    return {n: _normal(rng, 1, 2, 32, 16) for n in "qkv"}


def _convolution(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))
    y = np.maximum(np.einsum("bcyxij,ocij->boyx", windows, w), 0)
    return y.reshape(2, 4, 6, 2, 6, 2).max((3, 5))


@computation((_convolution, 1e-5))
def convolution(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A convolution and the greatest of squares"""
    return {"x": _normal(rng, 2, 3, 12, 12), "w": _normal(rng, 4, 3, 3, 3)}


@computation(
    (lambda x: x.cumsum(1, dtype=np.int32), None),
    (lambda x: np.maximum.accumulate(x, 1), None),
    (lambda x: x[:, ::-1].cumsum(1, dtype=np.int32), None),
)
def running_sums(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Running sums and greatest, from both ends"""
    return {"x": rng.integers(-99, 99, (3, 64)).astype(np.int32)}


@computation((lambda x: np.sort(x, 1), None), (lambda x: np.argsort(x, 1, kind="stable").astype(np.int32), None))
def sorted_rows(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Rows sorted by a bitonic network of many kernels, and the places they come from"""
    return {"x": rng.integers(-9, 9, (4, 32)).astype(np.float32)}


@computation(
    (lambda x: abs(x) + x * x, 1e-14),
    (lambda x: np.maximum(x, 0) * x - np.floor(x), 1e-14),
    (lambda x: x.cumsum(), 1e-12),
)
def doubles(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Doubles: sizes, rounding, running sums"""
    return {"x": rng.uniform(-30, 30, 100)}


@computation(
    (lambda x, y, z: x // y, None),
    (lambda x, y, z: x % y, None),
    (lambda x, y, z: (x << 3) ^ (y >> 1), None),
    (lambda x, y, z: z // y, None),
    (lambda x, y, z: np.where(x < y, x, y), None),
    (lambda x, y, z: (z & 255).astype(np.uint8), None),
)
def integers(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Quotients, remainders, shifts, logic"""
    x, y = rng.integers(-(2**27), 2**27, 100).astype(np.int32), rng.integers(1, 999, 100) * rng.choice([-1, 1], 100)
    return {"x": x, "y": y.astype(np.int32), "z": rng.integers(-(2**62), 2**62, 100)}


@computation(
    (lambda x: x.astype(np.float16), None),
    (lambda x: x.astype(np.int8), None),
    (lambda x: x.astype(np.int16).astype(np.float32), None),
    (lambda x: x.astype(np.int64), None),
    (lambda x: x > 0, None),
    (lambda x: x.view(np.uint32), None),
    (lambda x: abs(x).astype(np.uint8), None),
)
def conversions(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Conversions of floats to halves, integers of all sizes, truth values"""
    return {"x": rng.uniform(-120, 120, 90).astype(np.float32)}


@computation(
    (lambda x, index: x[index], None),
    (lambda x, index: x.argmax(1).astype(np.int32), None),
    (lambda x, index: x.T.copy(), None),
)
def rows_taken(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Rows by index, the place of the greatest, transposition"""
    return {"x": _normal(rng, 50, 8), "index": rng.integers(0, 50, 20).astype(np.int32)}


@computation((lambda x, labels: np.float32(-np.log(_softmax(x))[np.arange(6), labels].mean()), 1e-5))
def cross_entropy(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Cross entropy"""
    return {"x": _normal(rng, 6, 40), "labels": rng.integers(0, 40, 6).astype(np.int32)}


@computation(
    (lambda x: np.float16(x.astype(float).sum()), 2e-2),
    (lambda x: x.max(), None),
    (lambda x: np.float32(x.astype(float).std(ddof=1)), 1e-4),
)
def sums_of_halves(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Sum, greatest and deviation of halves"""
    return {"x": _normal(rng, 300, kind=np.float16)}
