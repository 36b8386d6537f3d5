"""What nvcc makes of its libraries (tests/data/cuda/libraries.cu: cub, cooperative groups, libcu++, libdevice), against numpy.

These programs read values that nobody wrote where it does no harm: the other side of `a && b`, padding, words of bit fields.
"""

import lzma
import math
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.simulator import simulate

DATA = Path(__file__).parents[2] / "data" / "ptx" / "nvcc"
OPTIMISED = ["libraries.sm_80", "libraries.sm_90a.lines"]
EVERY = [*OPTIMISED, "libraries.sm_90.debug"]


@cache
def module(name: str):
    return parse(lzma.decompress((DATA / f"{name}.ptx.xz").read_bytes()).decode(), name)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def run(name, kernel, *args, grid=1, block=128, cluster=1, schedules=1):
    """Simulate with fresh copies under the fair and a random schedule; leave the results of the last in `args`."""
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    for order in [{}, *({"schedule": "random", "seed": s} for s in range(schedules))]:
        for a, fresh in zip(args, given, strict=True):
            if isinstance(a, np.ndarray):
                a[...] = fresh
        result = simulate(module(name), kernel=kernel, grid=grid, block=block, cluster=cluster, args=list(args), **order)
        assert not result.findings, str(result)
        assert result.completed


@pytest.mark.parametrize("name", OPTIMISED)
def test_radix_sort(name, rng):
    keys, values = rng.integers(0, 2**32, 512).astype(np.uint32), np.arange(512, dtype=np.int32)
    before = keys.copy()
    run(name, "radix_sort", keys, values)
    assert np.array_equal(keys, np.sort(before))
    assert np.array_equal(before[values], keys)


@pytest.mark.parametrize("name", OPTIMISED)
def test_scan_reduce_and_merge_sort(name, rng):
    x, out, total = rng.integers(-1000, 1000, 128).astype(np.int32), np.zeros(384, np.int32), np.zeros(1)
    run(name, "scans", out, x, total)
    assert np.array_equal(out[:128], np.cumsum(x) - x)
    assert np.array_equal(out[128:].reshape(4, 64), np.sort(np.stack([x, -x], 1).reshape(4, 64)))
    assert total[0] == pytest.approx(np.sqrt(x.astype(float) ** 2 + 1).max() + x.sum())


@pytest.mark.parametrize("name", EVERY)
def test_groups_of_threads(name, rng):
    x, out = rng.integers(0, 100, 128).astype(np.int32), np.zeros(512, np.int32)
    run(name, "group_work", out, x)
    assert np.array_equal(out[:128], np.repeat(x.reshape(8, 16).sum(1), 16))
    assert np.array_equal(out[128:256], x.reshape(8, 16).cumsum(1).ravel())
    for warp in range(4):
        y = x[32 * warp : 32 * warp + 32]
        for lane, v in enumerate(y):
            same = y & 1 == 1 if v & 1 else (y & 1 == 0) & (y & 6 == v & 6)
            rank = same[:lane].sum() * 100 + same.sum()
            assert out[256 + 32 * warp + lane] == (rank if v & 1 else -rank)
            assert out[384 + 32 * warp + lane] == y[y % 3 == v % 3].max()


@pytest.mark.parametrize("name", EVERY)
def test_a_pipeline_of_two_stages(name, rng):
    x, out = rng.standard_normal((7, 64)).astype(np.float32), np.zeros(64, np.float32)
    run(name, "pipelined", out, x, 7, block=64)
    assert np.allclose(out, x[:, ::-1].sum(0), atol=1e-6)


@pytest.mark.parametrize("name", OPTIMISED)
def test_barrier_objects(name, rng):
    x, out = rng.integers(-1000, 1000, 64).astype(np.int32), np.zeros(64, np.int32)
    run(name, "barriers", out, x, block=64)
    assert np.array_equal(out, (x[np.arange(64) ^ 33] * 2)[::-1])


@pytest.mark.parametrize("name", OPTIMISED)
def test_memory_orders(name):
    out, ticket, box = np.zeros(6, np.int32), np.zeros(1, np.uint32), np.zeros(1, np.int32)
    run(name, "orders", out, ticket, box, grid=4, block=32)
    assert out[:5].tolist() == [0, 1, 5, 18, 34]
    assert box[0] == 18


@pytest.mark.parametrize("name", OPTIMISED)
def test_functions_of_double_precision(name, rng):
    x, out = rng.standard_normal(32), np.zeros(768)
    run(name, "special", out, x, block=32, schedules=0)
    size = np.abs(x)
    want = [
        np.sin(x * 100), np.cos(x * 1e6), np.exp(x), np.log1p(size), np.vectorize(math.erf)(x),
        np.vectorize(math.gamma)(size + 0.5),
        size**x, np.cbrt(x), np.arctan2(x, 2), np.hypot(x, 3), np.fmod(x * 10, 0.7), None,
        np.vectorize(math.erfc)(-x / 2**0.5) / 2, 1 / np.sqrt(size), np.vectorize(math.remainder)(x * 9, 0.9), np.rint(x * 5),
    ]  # fmt: skip
    for i, w in enumerate(want):
        if w is not None:
            assert np.allclose(out[32 * i : 32 * i + 32], w, rtol=2e-15, atol=1e-15), i
    f = x.astype(np.float32).astype(float)
    for i, w in {17: np.tanh(f), 18: np.expm1(f), 21: np.arcsinh(f), 23: f * f + 1}.items():
        assert np.allclose(out[32 * i : 32 * i + 32], w, rtol=3e-7), i


@pytest.mark.parametrize("name", OPTIMISED)
def test_wmma_of_bf16(name, rng):
    a, b = (rng.standard_normal((16, 32)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.zeros((16, 16), np.float32)
    run(name, "wmma_bf16", c, a, b, block=32)
    assert np.allclose(c.T, 2 * (1 + a.astype(float) @ b.astype(float).T), atol=1e-5)


@pytest.mark.parametrize("name", EVERY)
def test_recursion_over_structures_with_padding(name, rng):
    n = 20
    parents = np.array([0, *((i - 1) // 2 for i in range(1, n))], np.int32)
    out, nodes, f = np.zeros(64, np.int32), np.zeros(24 * n, np.uint8), rng.standard_normal(32).astype(np.float32)
    before = f.copy()
    run(name, "trees", out, parents, nodes, n, f, block=32)
    depth = [0] * n
    for i in reversed(range(n)):
        depth[i] = 1 + max([depth[j] for j in (2 * i + 1, 2 * i + 2) if j < n], default=0)
    assert out[:32].tolist() == depth + [-1] * 12
    assert np.array_equal(f, np.where(np.arange(32) % 3 > 0, 2 * before, before * before))


@pytest.mark.parametrize("name", OPTIMISED)
def test_small_types(name, rng):
    x = rng.standard_normal(32).astype(np.float32)
    a, b = (rng.integers(-(2**31), 2**31, 32).astype(np.int32) for _ in range(2))
    e4, h, dot, wide = np.zeros(32, np.uint8), np.zeros(64, np.float16), np.zeros(192, np.int32), np.zeros(32, np.int64)
    run(name, "small_types", e4, h, dot, x, a, b, wide, block=32)
    q = x.astype(ml_dtypes.float8_e4m3fn)
    assert np.array_equal(e4, q.view(np.uint8))
    assert np.array_equal(h[::2], (x.astype(np.float16).astype(float) * 2 + q.astype(float)).astype(np.float16))
    bytes_of = [v.view(np.int8).reshape(32, 4).astype(np.int64) for v in (a, b)]
    assert np.array_equal(dot[:32], ((bytes_of[0] * bytes_of[1]).sum(1) + 5).astype(np.int32))
    apart = np.abs(a.view(np.uint8).astype(int) - b.view(np.uint8).astype(int)).astype(np.uint8)
    assert np.array_equal(dot[64:96].view(np.uint8), apart)
    for i, (p, r) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        sign = 1 if p * r >= 0 else -1
        high = (p << 20) * ((((r << 30) + 2**63) % 2**64) - 2**63) >> 64
        assert wide[i] == abs(p * r) // (i + 1) * sign + high + abs(p) % abs(r | 1) * (1 if p >= 0 else -1)


def test_a_histogram_over_a_cluster(rng):
    x, bins = rng.integers(0, 256, 1000).astype(np.uint8), np.zeros(32, np.int32)
    run("libraries.sm_90a.lines", "cluster_histogram", bins, x, 1000, grid=4, block=64, cluster=2)
    assert np.array_equal(bins, 2 * np.bincount(x % 32, minlength=32))


def test_a_peer_that_may_have_ended():
    text = module("libraries.sm_90a.lines")
    result = simulate(text, kernel="cluster_no_end", grid=2, block=32, cluster=2, args=[np.zeros(64, np.int32)])
    assert [f.kind for f in result.findings] == ["cluster-exit"]
    assert result.findings[0].where.file.endswith("libraries.cu")


def test_a_real_use_of_what_nobody_wrote_is_still_found():
    text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .pred %p<5>;
.shared .align 4 .b32 box[32];
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, box;
ld.shared.u32 %r3, [%r2];
setp.lt.s32 %p1, %r3, 5; setp.ge.u32 %p2, %r1, 0; setp.lt.u32 %p3, %r1, 0;
LOGIC
selp.b32 %r5, 1, 2, %p4; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r5; ret; }"""
    for logic, clean in {
        "or.pred %p4, %p1, %p2;": True, "or.pred %p4, %p1, %p3;": False, "and.pred %p4, %p3, %p1;": True,
        "and.pred %p4, %p2, %p1;": False, "setp.eq.and.s32 %p4, %r3, 1, %p3;": True, "setp.eq.or.s32 %p4, %r3, 1, %p2;": True,
        "setp.eq.or.s32 %p4, %r3, 1, %p3;": False, "selp.b32 %r4, %r3, 7, %p3; setp.eq.s32 %p4, %r4, 7;": True,
        "selp.b32 %r4, %r3, 7, %p2; setp.eq.s32 %p4, %r4, 7;": False, "and.b32 %r4, %r3, 0; setp.eq.s32 %p4, %r4, 7;": True,
        "and.b32 %r4, %r3, -8; or.b32 %r4, %r4, %r1; setp.eq.s32 %p4, %r4, 7;": True,
        "and.b32 %r4, %r3, -8; setp.eq.s32 %p4, %r4, 7;": False, "or.b32 %r4, %r3, 1; setp.eq.s32 %p4, %r4, 7;": False,
        "or.b32 %r4, %r3, -1; setp.eq.s32 %p4, %r4, 7;": True,
    }.items():  # fmt: skip
        result = simulate(text.replace("LOGIC", logic), grid=1, block=32, args=[np.zeros(32, np.uint32)])
        assert [f.kind for f in result.findings] == ([] if clean else ["uninitialised-read"]), logic
