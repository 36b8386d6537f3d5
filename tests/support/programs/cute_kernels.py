"""tests/data/cute/kernels.py: kernels of the CuTe DSL, whose pointers are structures of 8 bytes."""

from __future__ import annotations

import numpy as np

from programs.program import Collection, Judge, Launch
from ptx_corpus import sample
from warpsmith.simulator.tensormap import TensorMap

ARCHS = ("sm_80", "sm_90a", "sm_120a")
program = Collection("cute", "", ARCHS)
PROGRAMS = program.programs


def _kernel(source: str) -> str:
    """The only entry of a file; its name tells the layouts and no architecture."""
    return next(f.name for f in sample(f"cute/{source}.sm_80").functions() if f.kind == "entry")


@program("add", source="add")
def add(rng: np.random.Generator) -> Judge:
    """Elementwise sum"""
    a, b = rng.standard_normal((2, 512)).astype(np.float32)
    c = np.zeros(512, np.float32)
    yield Launch([a, b, c], _kernel("add"), grid=4, block=128)
    assert np.array_equal(c, a + b)


@program("vectors", source="vectors")
def vectors(rng: np.random.Generator) -> Judge:
    """Elementwise arithmetic of vectors of four"""
    a, b = rng.standard_normal((2, 1024)).astype(np.float32)
    c = np.zeros(1024, np.float32)
    yield Launch([a, b, c], _kernel("vectors"), grid=2, block=128)
    assert np.allclose(c, a * b + a, atol=1e-6)


@program("block_sum", source="block_sum")
def block_sum(rng: np.random.Generator) -> Judge:
    """Sums of blocks through warp reductions and shared memory"""
    x, out = rng.standard_normal(1024).astype(np.float32), np.zeros(4, np.float32)
    yield Launch([x, out], _kernel("block_sum"), grid=4, block=256, shared=256)
    assert np.allclose(out, x.reshape(4, 256).sum(1), atol=1e-4)


@program("transpose", source="transpose")
def transpose(rng: np.random.Generator) -> Judge:
    """Transposition through a padded tile"""
    x, out = rng.standard_normal((64, 64)).astype(np.float32), np.zeros((64, 64), np.float32)
    yield Launch([x, out], _kernel("transpose"), grid=(2, 2), block=(32, 8), shared=32 * 33 * 4 + 64)
    assert np.array_equal(out, x.T)


@program("softmax", source="softmax")
def softmax(rng: np.random.Generator) -> Judge:
    """Softmax of a row by a warp"""
    x, out = rng.standard_normal((8, 32)).astype(np.float32), np.zeros((8, 32), np.float32)
    yield Launch([x, out], _kernel("softmax"), grid=8, block=32)
    e = np.exp(x.astype(float))
    assert np.allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)


@program("mma", source="mma")
def mma(rng: np.random.Generator) -> Judge:
    """A tiled product of halves on four warps"""
    a, b = rng.standard_normal((32, 32)).astype(np.float16), rng.standard_normal((16, 32)).astype(np.float16)
    c = np.zeros((32, 16), np.float32)
    yield Launch([a, b, c], _kernel("mma"), grid=1, block=128)
    assert np.allclose(c, a.astype(float) @ b.astype(float).T, atol=1e-4)


@program("hopper", source="hopper", archs=("sm_90a",))
def hopper(rng: np.random.Generator) -> Judge:
    """A product through tensor maps, an mbarrier and products of a warpgroup"""
    a, b = rng.standard_normal((2, 128, 192)).astype(np.float16)
    c = np.zeros((128, 128), np.float32)
    maps = [TensorMap(t, box=(64, 64), swizzle="128B") for t in (a, b)]
    kernel = next(f.name for f in sample("cute/hopper.sm_90a").functions() if f.kind == "entry")
    yield Launch([*maps, c, b"\0"], kernel, grid=(2, 2), block=128, shared=32768)
    assert np.allclose(c, a.astype(float) @ b.astype(float).T, atol=1e-3)
