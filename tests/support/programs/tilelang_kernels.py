"""tests/data/tilelang/kernels.py: TileLang makes CUDA of it, with tensor copies, wgmma and roles of warpgroups for Hopper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from programs.program import Collection, Judge, Launch
from warpsmith.simulator.tensormap import TensorMap

program = Collection("tilelang", "", ("sm_80",))
PROGRAMS = program.programs
Maps = Callable[..., Any]


def _plain(array: np.ndarray, *_: Any) -> Any:
    return array


def _described(array: np.ndarray, box: tuple[int, ...], swizzle: str) -> Any:
    """A map of a matrix; of what has heads, of its transposition (batch, head, place, element)."""
    view = array.swapaxes(1, 2) if array.ndim == 4 else array
    return TensorMap(view, box=box, swizzle=swizzle, memory=array)


def _halves(rng: np.random.Generator, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [rng.standard_normal(s).astype(np.float16) for s in shapes]


def _close(got: np.ndarray, want: np.ndarray, tolerance: float = 2e-3) -> bool:
    return bool(abs(got.astype(float) - want).max() <= tolerance * abs(want).max())


def _product(rng: np.random.Generator, of: Maps, threads: int) -> Judge:
    a, b = _halves(rng, (96, 256), (256, 128))
    c = np.zeros((96, 128), np.float16)
    args = [of(a, (64, 32), "64B"), of(b, (32, 64), "128B"), c]
    yield Launch(args, "product_kernel", grid=(2, 2), block=threads, shared=24576)
    assert _close(c, a.astype(float) @ b.astype(float))


@program(source="product")
def product(rng: np.random.Generator) -> Judge:
    """A product of halves: cp.async in three stages, mma.sync; rows that fill no tile"""
    return _product(rng, _plain, 128)


@program(source="product_hopper", archs=("sm_90a",))
def product_hopper(rng: np.random.Generator) -> Judge:
    """The same product: a warpgroup that loads and one that multiplies (wgmma), ready and free mbarriers"""
    return _product(rng, _described, 256)


def _attention(rng: np.random.Generator, of: Maps, threads: int) -> Judge:
    q, k, v = _halves(rng, *[(1, 192, 2, 64)] * 3)
    o = np.zeros((1, 192, 2, 64), np.float16)
    q_, k_, v_ = (of(x, (1, 1, 64, 64), "128B") for x in (q, k, v))
    yield Launch([k_, o, q_, v_], "attention_kernel", grid=(3, 2), block=threads, shared=40960)
    q, k, v = (x[0].astype(float).swapaxes(0, 1) for x in (q, k, v))
    e = np.exp(q @ k.swapaxes(1, 2) / 8) * np.tri(192)
    assert _close(o[0].swapaxes(0, 1), e / e.sum(2, keepdims=True) @ v)


@program(source="attention")
def attention(rng: np.random.Generator) -> Judge:
    """Flash attention, causal: keys and values by cp.async in two stages"""
    return _attention(rng, _plain, 128)


def attention_geforce(rng: np.random.Generator) -> Judge:
    """The same attention for sm_120a, which hangs in some orders: not among the programs"""
    return _attention(rng, _described, 256)


@program(source="attention_hopper", archs=("sm_90a",))
def attention_hopper(rng: np.random.Generator) -> Judge:
    """The same attention: tensor copies of four dimensions by a warpgroup of their own, wgmma"""
    return _attention(rng, _described, 256)


def _linear(rng: np.random.Generator, of: Maps, threads: int) -> Judge:
    q, k, v = _halves(rng, *[(256, 64)] * 3)
    o = np.zeros((256, 64), np.float32)
    q_, k_, v_ = (of(x, (64, 64), "128B") for x in (q, k, v))
    yield Launch([k_, o, q_, v_], "linear_attention_kernel", block=threads, shared=65536)
    q, k, v = (x.astype(float) for x in (q, k, v))
    assert _close(o, (q @ k.T * np.tri(256)) @ v, 4e-3)


@program(source="linear_attention")
def linear_attention(rng: np.random.Generator) -> Judge:
    """Linear attention in chunks: the state in registers, what was before by a product of it"""
    return _linear(rng, _plain, 128)


@program(source="linear_attention_hopper", archs=("sm_90a",))
def linear_attention_hopper(rng: np.random.Generator) -> Judge:
    """The same linear attention by wgmma, operands transposed in shared memory"""
    return _linear(rng, _described, 256)


@program(source="rms_norm")
def rms_norm(rng: np.random.Generator) -> Judge:
    """RMS norm of rows of floats: reductions over warps"""
    x, w = rng.standard_normal((24, 256)).astype(np.float32), rng.standard_normal(256).astype(np.float32)
    y = np.zeros_like(x)
    yield Launch([w, x, y], "rms_norm_kernel", grid=3, block=128, shared=8192)
    v = x.astype(float)
    assert _close(y, v / np.sqrt((v * v).mean(1, keepdims=True) + 1e-6) * w, 1e-5)
