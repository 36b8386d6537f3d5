"""tests/data/cuda/hopper.cu: bulk copies, tensor maps, warpgroups through libcu++ and inline assembly."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from programs.program import Collection, Judge, Launch
from warpsmith.simulator.tensormap import TensorMap

program = Collection("nvcc", "hopper", ("sm_90a.lines", "sm_120a"))
PROGRAMS = program.programs


@program()
def bulk_copies(rng: np.random.Generator) -> Judge:
    """Rows that come and go in bulk through two buffers, awaited by cuda::barrier and bulk groups"""
    x, out = rng.standard_normal((5, 256)).astype(np.float32), np.zeros((5, 256), np.float32)
    yield Launch([out, x, 5], block=64)
    assert np.array_equal(out, x * 2 + np.arange(5, dtype=np.float32)[:, None])


@program()
def tensor_tiles(rng: np.random.Generator) -> Judge:
    """Tensor maps as __grid_constant__: tiles loaded, transposed, stored, clipped at the edges"""
    x, out = rng.integers(-99, 99, (50, 68)).astype(np.int32), np.zeros((68, 52), np.int32)
    yield Launch([TensorMap(x, box=(32, 32)), TensorMap(out, box=(32, 32))], grid=(3, 2), block=64)
    assert np.array_equal(out[:, :50], x.T)
    assert not out[:, 50:].any()


@program()
def bulk_sums(rng: np.random.Generator) -> Judge:
    """Reductions in bulk: blocks add their rows to one"""
    x, out = rng.integers(-99, 99, (6, 64)).astype(np.int32), np.zeros(64, np.int32)
    yield Launch([out, x], grid=6)
    assert np.array_equal(out, x.sum(0))


@program()
def stores_to_peers(rng: np.random.Generator) -> Judge:
    """st.async to the neighbour in the cluster, counted by its mbarrier"""
    out = np.zeros(64, np.int32)
    yield Launch([out], grid=2, cluster=2)
    t = np.arange(32)
    assert np.array_equal(out, np.concatenate([100 + 31 - t, 31 - t]))


@program(archs=("sm_90a.lines",))
def warpgroup_product(rng: np.random.Generator) -> Judge:
    """wgmma with a producer warp, tensor maps with 128-byte swizzle and a ring of three stages"""
    m, n, k = 128, 128, 320
    a, b = (rng.standard_normal((rows, k)).astype(ml_dtypes.bfloat16) for rows in (m, n))
    c = np.zeros((m, n), np.float32)
    maps = [TensorMap(t, box=(64, 64), swizzle="128B") for t in (a, b)]
    yield Launch([c, *maps, n, k], grid=(2, 2), block=160, shared=3 * 2 * 8192 + 1024)
    assert np.allclose(c, a.astype(float) @ b.astype(float).T, atol=1e-3)
