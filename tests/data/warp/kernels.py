"""Warp kernels whose PTX is test data; `tests/data/ptx/warp/regenerate.py` compiles them, and their adjoints, without a GPU."""

import warp as wp

TILE = wp.constant(64)


@wp.kernel
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a * wp.sin(x[i]) + y[i]


@wp.kernel
def turn(q: wp.quat, p: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.vec3), energy: wp.array(dtype=float)):
    i = wp.tid()
    v = wp.quat_rotate(q, p[i])
    m = wp.outer(v, v) + wp.identity(n=3, dtype=float)
    out[i] = m * wp.normalize(v)
    wp.atomic_add(energy, 0, wp.dot(v, v))


@wp.kernel
def stencil(x: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    rows, columns = x.shape[0], x.shape[1]
    up, down = x[(i + rows - 1) % rows, j], x[(i + 1) % rows, j]
    out[i, j] = up + down + x[i, (j + columns - 1) % columns] + x[i, (j + 1) % columns] - 4.0 * x[i, j]


@wp.kernel
def tile_sum(x: wp.array2d(dtype=float), out: wp.array(dtype=float)):
    row = wp.tid()
    t = wp.tile_load(x[row], shape=TILE)
    wp.tile_store(out, wp.tile_sum(t * 2.0), offset=row)


@wp.kernel
def talk(x: wp.array(dtype=int)):
    i = wp.tid()
    if i < 2:
        wp.printf("element %d is %d\n", i, x[i])
