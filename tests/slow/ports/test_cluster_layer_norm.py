"""Port: layer norm of rows that a cluster of CTAs shares; partial sums go through distributed shared memory (sm_90).

`fault` breaks one thing.
"""

from typing import Any

import numpy as np
import pytest

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.types import f32, u32, u64

EACH = 4
THREADS = 128
WIDTH = EACH * THREADS
"""Columns of one CTA."""


def build(rows: int, ctas: int, fault: str = "") -> Any:
    """Return the kernel (x) → y, `[rows, ctas * WIDTH]`."""
    columns = ctas * WIDTH

    @kernel(
        arch="sm_90",
        in_specs=(Tile(rows, columns, f32),),
        out_specs=(Tile(rows, columns, f32),),
        grid=(ctas, rows, 1),
        block=(THREADS, 1, 1),
        cluster=(ctas, 1, 1),
    )
    def layer_norm(x, y):
        warps = smem.alloc(f32, (2, 4), name="warps")
        sums = smem.alloc(f32, (2,), name="sums")
        source, target = ptx.global_ptrs(x, y)
        thread = reg.from_(ptx.special.tid.x(), u32)
        lane, warp = thread & 31, thread >> 5
        column = reg.from_(ptx.special.ctaid.x(), u32) * WIDTH + thread * EACH
        index = reg.from_(ptx.special.ctaid.y(), u32) * columns + column
        where, to = reg.scalar(u64), reg.scalar(u64)
        ptx.inst.mad.wide.u32(where, index, 4, source)
        ptx.inst.mad.wide.u32(to, index, 4, target)
        values = reg.array(f32, EACH)
        ptx.inst.ld.global_.v4.f32(values, ptx.addr(where))
        total, squares = reg.scalar(f32, init=0.0), reg.scalar(f32, init=0.0)
        for v in values:
            ptx.inst.add.rn.f32(total, total, v)
            ptx.inst.fma.rn.f32(squares, v, v, squares)
        at = reg.from_(ptx.addr(warps), u32)
        for i, value in enumerate((total, squares)):
            ptx.warp.reduce_sum(value)
            ptx.inst.st.shared.f32(ptx.addr(at + warp * 4 + 16 * i), value, pred=lane == 0)
        ptx.bar.sync()
        own = reg.from_(ptx.addr(sums), u32)
        with ptx.if_(thread < (1 if fault == "half" else 2)):
            s, part = reg.scalar(f32, init=0.0), reg.scalar(f32)
            for w in range(4):
                ptx.inst.ld.shared.f32(part, ptx.addr(at + thread * 16, 4 * w))
                ptx.inst.add.rn.f32(s, s, part)
            ptx.inst.st.shared.f32(ptx.addr(own + thread * 4), s)
        if fault == "no start":
            ptx.bar.sync()
        elif fault == "arrive only":
            ptx.cluster.arrive()
        elif fault == "one warp":
            ptx.cluster.sync(pred=warp == 0)
        else:
            ptx.cluster.sync()
        all_, both = reg.array(f32, 2), reg.array(f32, 2)
        for r in both:
            ptx.inst.mov.f32(r, 0.0)
        for rank in range(ctas + (fault == "rank")):
            remote = ptx.cluster.map_shared_u32(own, rank)
            for i in range(2):
                ptx.inst.ld.shared__cluster.f32(all_[i], ptx.addr(remote, 4 * i))
                ptx.inst.add.rn.f32(both[i], both[i], all_[i])
        if fault == "arrive only":
            ptx.cluster.wait()
        elif fault != "no end":
            ptx.cluster.sync()
        mean, scale = reg.scalar(f32), reg.scalar(f32)
        ptx.inst.mul.rn.f32(mean, both[0], 1.0 / columns)
        ptx.inst.mul.rn.f32(scale, both[1], 1.0 / columns)
        negative = reg.scalar(f32)
        ptx.inst.neg.f32(negative, mean)
        ptx.inst.fma.rn.f32(scale, negative, mean, scale)
        ptx.inst.add.rn.f32(scale, scale, 1e-5)
        ptx.inst.rsqrt.approx.f32(scale, scale)
        for v in values:
            ptx.inst.add.rn.f32(v, v, negative)
            ptx.inst.mul.rn.f32(v, v, scale)
        ptx.inst.st.global_.v4.f32(ptx.addr(to), values)

    return layer_norm


def inputs(rows, ctas):
    return (np.random.default_rng(0).standard_normal((rows, ctas * WIDTH)).astype(np.float32),)


@pytest.mark.parametrize(("rows", "ctas"), [(3, 2), (2, 8)])
def test_normalises(judge, rows, ctas):
    (x,) = inputs(rows, ctas)
    w = x.astype(np.float64)
    judge(build(rows, ctas), (x,), (w - w.mean(1, keepdims=True)) / np.sqrt(w.var(1, keepdims=True) + 1e-5), 1e-5)


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("no start", "peer-lifetime", "ld.shared__cluster"),
        ("arrive only", "peer-lifetime", "ld.shared__cluster"),
        ("no end", "cluster-exit", "ld.shared__cluster"),
        ("one warp", "peer-lifetime", "ld.shared__cluster"),
        ("rank", "out-of-bounds", "map_shared_u32"),
        ("half", "uninitialised-read", "st.global_"),
    ],
)
def test_faults_are_found(blame, fault, kind, words):
    blame(build(2, 2, fault), inputs(2, 2), kind, words)
