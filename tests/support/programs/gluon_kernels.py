"""tests/data/gluon/kernels.py: Triton's Gluon. A tensor descriptor of the host is followed by its sizes and strides."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from typing import Any

import numpy as np

from programs.program import Collection, Judge, Launch
from programs.triton_more import EVERY, launch
from warpsmith.simulator.tensormap import TensorMap

program = Collection("gluon", "", EVERY)
PROGRAMS = program.programs
TMA, HOPPER = ("sm_90", "sm_120"), ("sm_90",)


def _described(array: np.ndarray, *box: int) -> list[Any]:
    sizes = [np.int32(n) for n in array.shape]
    strides = [np.int64(s // array.itemsize) for s in array.strides]
    return [TensorMap(array, box=box, swizzle="128B"), *sizes, *strides]


def _clustered(made: Launch) -> Launch:
    """A launch whose programs are clusters of two CTAs."""
    return replace(made, grid=2 * made.grid, cluster=2)


def _tiles(*arrays: np.ndarray) -> list[Any]:
    return [a for array in arrays for a in _described(array, 64, 64)]


def _halves(rng: np.random.Generator, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [rng.standard_normal(s).astype(np.float16) for s in shapes]


def _close(got: np.ndarray, want: np.ndarray) -> bool:
    return bool(abs(got.astype(float) - want).max() <= 1e-3 * abs(want).max())


@program(source="pipelined_sum")
def pipelined_sum(rng: np.random.Generator) -> Judge:
    """Rows added through a ring of buffers that cp.async fills"""
    a, b = rng.standard_normal((2, 3, 500)).astype(np.float32)
    out = np.zeros_like(a)
    yield launch("pipelined_sum", a, b, out, 500, grid=3)
    assert np.array_equal(out, a + b)


@program(source="product_of_warps")
def product_of_warps(rng: np.random.Generator) -> Judge:
    """A product by mma.sync of tiles that cp.async brings"""
    a, b = _halves(rng, (112, 144), (144, 80))
    c = np.zeros((112, 80), np.float16)
    yield launch("product_of_warps", a, b, c, 112, 80, 144, grid=(2, 2))
    assert _close(c, a.astype(float) @ b.astype(float))


@program(source="product_of_warpgroups", archs=HOPPER)
def product_of_warpgroups(rng: np.random.Generator) -> Judge:
    """A product by wgmma, operands by tensor copies, one product in flight"""
    a, b = _halves(rng, (100, 328), (328, 72))
    c = np.zeros((100, 72), np.float16)
    yield launch("product_of_warpgroups", *_tiles(a, b, c), grid=(2, 2))
    assert _close(c, a.astype(float) @ b.astype(float))


@program(source="specialised_product", archs=HOPPER)
def specialised_product(rng: np.random.Generator) -> Judge:
    """A persistent product: one warp loads, a warpgroup multiplies, one warp stores"""
    a, b = _halves(rng, (150, 200), (200, 136))
    c = np.zeros((150, 136), np.float16)
    yield launch("specialised_product", *_tiles(a, b, c), 3, 3, grid=2, warps=8)
    assert _close(c, a.astype(float) @ b.astype(float))


@program(source="specialised_attention", archs=HOPPER)
def specialised_attention(rng: np.random.Generator) -> Judge:
    """Attention: one warp loads keys and values, a warpgroup attends, probabilities in registers"""
    q, k, v = _halves(rng, *[(2 * 192, 64)] * 3)
    out = np.zeros((2 * 192, 64), np.float16)
    yield launch("specialised_attention", *_tiles(q, k, v, out), 192, np.float32(log2(np.e) / 8), grid=(3, 2), warps=8)
    q, k, v = (x.astype(float).reshape(2, 192, 64) for x in (q, k, v))
    e = np.exp(q @ k.swapaxes(1, 2) / 8)
    assert _close(out.reshape(2, 192, 64), e / e.sum(2, keepdims=True) @ v)


@program(source="shuffled")
def shuffled(rng: np.random.Generator) -> Judge:
    """Shared memory by index: gather, scatter, atomic sums; a change of layout with a scan; a histogram"""
    x, to = rng.integers(-99, 99, 256).astype(np.int32), rng.permutation(256).astype(np.int32)
    out, counts = np.zeros((4, 256), np.int32), np.zeros(32, np.int32)
    yield launch("shuffled", x, to, out, counts)
    scattered = np.zeros(256, np.int32)
    scattered[to] = 3 * np.arange(256)
    assert np.array_equal(out, [x[to], scattered, np.bincount(to % 7, minlength=256), x[to].cumsum()])
    assert np.array_equal(counts, np.bincount(to % 32, minlength=32))


@program(source="tensor_sums", archs=TMA)
def tensor_sums(rng: np.random.Generator) -> Judge:
    """Reductions by tensor copies into what several blocks share"""
    x, out = rng.integers(-99, 99, (64, 32)).astype(np.float32), np.zeros((16, 32), np.float32)
    yield launch("tensor_sums", *_described(x, 16, 32), *_described(out, 16, 32), grid=4)
    assert np.array_equal(out, x.reshape(4, 16, 32).sum(0))


@program(source="tensor_sum", archs=TMA)
def tensor_sum(rng: np.random.Generator) -> Judge:
    """Tiles added: tensor copies in and out, three buffers of operands, two of results"""
    a, b = rng.standard_normal((2, 100, 60)).astype(np.float32)
    c = np.zeros_like(a)
    yield launch("tensor_sum", *(x for t in (a, b, c) for x in _described(t, 16, 32)), 100, grid=2)
    assert np.array_equal(c, a + b)


@program(source="cluster_transpose", archs=HOPPER)
def cluster_transpose(rng: np.random.Generator) -> Judge:
    """A tile that two CTAs share, by columns and then by rows: it goes through the other's shared memory"""
    x, out = rng.integers(-99, 99, (64, 64)).astype(np.float32), np.zeros(64 * 65, np.float32)
    yield _clustered(launch("cluster_transpose", x, out))
    assert np.array_equal(out, np.concatenate([x.T.reshape(-1), x.sum(1)]))


@program(source="shared_tile", archs=HOPPER)
def shared_tile(rng: np.random.Generator) -> Judge:
    """A tile that one tensor copy brings to both CTAs of a cluster"""
    x, out = rng.standard_normal((64, 32)).astype(np.float32), np.zeros((64, 32), np.float32)
    yield _clustered(launch("shared_tile", *_described(x, 32, 32), out, grid=2))
    assert np.array_equal(out, x * np.float32(2))


@program(source="tensor_memory_product", archs=("sm_100",), remarks=("missing-tcgen05-fence",))
def tensor_memory_product(rng: np.random.Generator) -> Judge:
    """A persistent product by tcgen05: two accumulators in tensor memory, one warp loads, one multiplies, four take out"""
    a, b = _halves(rng, (300, 136), (136, 136))
    c = np.zeros((300, 136), np.float16)
    maps = [*_described(a, 128, 64), *_described(b, 64, 64), *_described(c, 128, 64)]
    yield launch("tensor_memory_product", *maps, 3, 3, grid=2, warps=8)
    assert _close(c, a.astype(float) @ b.astype(float))
