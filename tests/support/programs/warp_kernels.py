"""tests/data/warp/kernels.py: Warp passes the bounds of the launch and its arrays as structures by value."""

from __future__ import annotations

import numpy as np

from programs.program import Collection, Judge, Launch

program = Collection("warp", "kernels", ("sm_80", "sm_90", "sm_120"))
PROGRAMS = program.programs


def bounds(*shape: int, each: int = 1) -> tuple[object, ...]:
    """The structure `launch_bounds_t`: extents, threads in all, threads that share coordinates."""
    return (tuple(np.uint32(s) for s in shape), np.uint64(int(np.prod(shape)) * each), np.uint64(each))


def array(a: np.ndarray | None, grad: np.ndarray | None = None, dims: int = 0) -> tuple[object, ...]:
    """The structure `array_t`: data, gradient, four extents, four strides, dimensions."""
    shape = [] if a is None else list(a.shape[: dims or a.ndim])
    strides = [] if a is None else list(a.strides[: dims or a.ndim])
    four = [[np.int32(v) for v in [*values, 0, 0, 0, 0][:4]] for values in (shape, strides)]
    pointers = [np.uint64(0) if p is None else p for p in (a, grad)]
    return (*pointers, *four[0], *four[1], np.int32(len(shape)))


@program("saxpy", machine=True)
def saxpy(rng: np.random.Generator) -> Judge:
    """A kernel over structures of arrays, and its adjoint, which Warp derives"""
    n, a = 70, np.float32(2.5)
    x, y = rng.standard_normal((2, n)).astype(np.float32)
    want, gx, gy = a * np.sin(x) + y, np.zeros(n, np.float32), rng.standard_normal(n).astype(np.float32)
    incoming = gy.copy()
    yield Launch([bounds(n), a, array(x), array(y)], "saxpy_cuda_kernel_forward", grid=2, block=64)
    assert np.allclose(y, want, atol=1e-6)
    args = [bounds(n), a, array(x, gx), array(y, gy), np.float32(0), array(None), array(None)]
    yield Launch(args, "saxpy_cuda_kernel_backward", grid=2, block=64)
    assert np.allclose(gx, a * np.cos(x) * incoming, atol=1e-5)


@program("turn", machine=True, ordered=False)
def turn(rng: np.random.Generator) -> Judge:
    """Quaternions, vectors, matrices; an atomic sum"""
    n = 40
    q = rng.standard_normal(4)
    q = (q / np.linalg.norm(q)).astype(np.float32)
    p, out, energy = rng.standard_normal((n, 3)).astype(np.float32), np.zeros((n, 3), np.float32), np.zeros(1, np.float32)
    quat = tuple(q[i] for i in range(4))
    args = [bounds(n), quat, array(p, dims=1), array(out, dims=1), array(energy)]
    yield Launch(args, "turn_cuda_kernel_forward", grid=1, block=64)
    u, w = q[:3].astype(float), float(q[3])
    v = p.astype(float)
    turned = v * (2 * w * w - 1) + 2 * w * np.cross(u, v) + 2 * u * (v @ u)[:, None]
    m = turned[:, :, None] * turned[:, None, :] + np.eye(3)
    unit = turned / np.linalg.norm(turned, axis=1, keepdims=True)
    assert np.allclose(out, np.einsum("nij,nj->ni", m, unit), atol=1e-5)
    assert np.allclose(energy, (v * v).sum(), rtol=1e-5)


@program("stencil", machine=True)
def stencil(rng: np.random.Generator) -> Judge:
    """A stencil over two dimensions with wrapped edges"""
    x, out = rng.standard_normal((9, 13)).astype(np.float32), np.zeros((9, 13), np.float32)
    yield Launch([bounds(9, 13), array(x), array(out)], "stencil_cuda_kernel_forward", grid=2, block=64)
    want = sum(np.roll(x.astype(float), s, k) for s in (1, -1) for k in (0, 1)) - 4 * x.astype(float)
    assert np.allclose(out, want, atol=1e-5)


@program("tile_sum", machine=True)
def tile_sum(rng: np.random.Generator) -> Judge:
    """Tiles: a row loaded by a block, summed"""
    x, out = rng.standard_normal((5, 64)).astype(np.float32), np.zeros(5, np.float32)
    args = [bounds(5, each=64), array(x), array(out)]
    yield Launch(args, "tile_sum_cuda_kernel_forward", grid=5, block=64, shared=4096)
    assert np.allclose(out, 2 * x.astype(float).sum(1), atol=1e-4)


@program("talk", machine=True, ordered=False)
def talk(rng: np.random.Generator) -> Judge:
    """printf of Warp"""
    result = yield Launch([bounds(32), array(np.arange(5, 37, dtype=np.int32))], "talk_cuda_kernel_forward", block=64)
    if result:
        assert result.printed == "element 0 is 5\nelement 1 is 6\n"
