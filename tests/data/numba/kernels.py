"""Numba kernels whose PTX is test data; `tests/data/ptx/numba/regenerate.py` compiles them without a GPU."""

import math

from numba import cuda, float32, int32


def block_sum(x, out):
    """Sums of blocks through shared memory, added atomically."""
    part = cuda.shared.array(128, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    part[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 64
    while step:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, part[0])


def product(a, b, c):
    """A tiled product of two-dimensional arrays."""
    left, right = cuda.shared.array((8, 8), float32), cuda.shared.array((8, 8), float32)
    row, column = cuda.grid(2)
    y, x = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k in range(0, a.shape[1], 8):
        left[y, x], right[y, x] = a[row, k + x], b[k + y, column]
        cuda.syncthreads()
        for j in range(8):
            total += left[y, j] * right[j, x]
        cuda.syncthreads()
    c[row, column] = total


def functions(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        out[0, i] = math.sin(v) * math.exp(-v) + math.log1p(abs(v))
        out[1, i] = math.gamma(abs(v) + 1) + math.erf(v) + math.atan2(v, 2.0)
        out[2, i] = math.fmod(v * 100, 0.7) + math.sqrt(abs(v)) + abs(v) ** 1.5 + math.floor(v * 3)


def warps(x, out):
    """Shuffles, votes and matches."""
    t = cuda.threadIdx.x
    v = x[t]
    for d in (16, 8, 4, 2, 1):
        v += cuda.shfl_xor_sync(0xFFFFFFFF, v, d)
    out[t] = v
    out[32 + t] = cuda.ballot_sync(0xFFFFFFFF, x[t] > 3)
    out[64 + t] = cuda.match_any_sync(0xFFFFFFFF, x[t] % 4)
    out[96 + t] = cuda.popc(x[t]) + cuda.clz(x[t]) + cuda.ffs(x[t])


def scratch(x, out):
    """An array of each thread's own, sorted by insertion."""
    own = cuda.local.array(16, int32)
    t = cuda.grid(1)
    for k in range(16):
        own[k] = x[t, k]
    for k in range(1, 16):
        v, j = own[k], k
        while j > 0 and own[j - 1] > v:
            own[j] = own[j - 1]
            j -= 1
        own[j] = v
    for k in range(16):
        out[t, k] = own[k]


def atomics(x, count, extremes):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(count, x[i] % 8, 1)
        cuda.atomic.max(extremes, 0, x[i])
        cuda.atomic.min(extremes, 1, x[i])
        cuda.atomic.cas(extremes, 2, 0, x[i])


def complex_map(z, out):
    """Complex numbers and a tuple of results: the escape time of Mandelbrot's set."""
    i = cuda.grid(1)
    if i < z.size:
        c, v, n = z[i], 0j, 0
        while n < 50 and v.real * v.real + v.imag * v.imag < 4.0:
            v = v * v + c
            n += 1
        out[i] = n


def talk(x):
    i = cuda.grid(1)
    if i < 3:
        print("thread", i, "has", x[i])
