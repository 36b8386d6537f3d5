"""Port: C = A Bᵀ in int8 for sm_80: cp.async into three stages, ldmatrix, mma; split along k, the last CTA of a tile adds up.

Tiles are 64 × 64 bytes, their 16-byte chunks twisted by the row so that ldmatrix meets no bank twice. `fault` breaks one thing.
"""

from typing import Any

import numpy as np
import pytest

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.types import b32, pred, s8, s32, u32, u64

STAGES = 3
BYTES = 64 * 64


def _chunk(base: Any, row: Any, chunk: Any) -> Any:
    """Address of a 16-byte chunk of a row of a tile."""
    return base + row * 64 + ((chunk ^ ((row >> 1) & 3)) << 4)


def _copy(base: Any, source: Any, first: Any, k: int, at: Any, thread: Any, more: Any, size: int) -> None:
    for half in range(2):
        row, chunk = (thread >> 2) + 32 * half, thread & 3
        where = reg.scalar(u64)
        ptx.inst.mad.wide.u32(where, first + row, k, source)
        wide = reg.scalar(u64)
        ptx.inst.cvt.u64.u32(wide, at + (chunk << 4))
        ptx.cp.async_.cg(_chunk(base, row, chunk), where + wide, size, pred=more)


def _multiply(a_tile: Any, b_tile: Any, warp: Any, lane: Any, total: Any) -> None:
    for step in range(2):
        a, b = [reg.array(b32, 4) for _ in range(2)], [reg.array(b32, 4) for _ in range(2)]
        for i in range(2):
            row = ((warp >> 1) << 5) + (lane & 15) + 16 * i
            ptx.ldmatrix(dst=a[i], src=_chunk(a_tile, row, (lane >> 4) + 2 * step), layout="x4")
            row = ((warp & 1) << 5) + (lane & 7) + ((lane >> 4) << 3) + 16 * i
            ptx.ldmatrix(dst=b[i], src=_chunk(b_tile, row, ((lane >> 3) & 1) + 2 * step), layout="x4")
        for i in range(2):
            for j in range(4):
                d = total[i][j]
                pair = [b[j // 2][2 * (j % 2)], b[j // 2][2 * (j % 2) + 1]]
                ptx.mma.sync(shape=(16, 8, 32), dtype_d=s32, dtype_a=s8, dtype_b=s8, dtype_c=s32, d=d, a=a[i], b=pair, c=d)


def build(m: int, n: int, k: int, splits: int, fault: str = "") -> Any:
    """Return the kernel (a, b, work [splits, m, n], done [tiles]) → c; `done` must hold zeros."""
    depth = k // splits
    steps = depth // 64

    @kernel(
        arch="sm_80",
        in_specs=(Tile(m, k, s8), Tile(n, k, s8), Tile(splits, m, n, s32), Tile(m * n // 4096, u32)),
        out_specs=(Tile(m, n, s32),),
        grid=(n // 64, m // 64, splits),
        block=(128, 1, 1),
    )
    def gemm(a, b, work, done, out):
        a_tiles, b_tiles = (smem.alloc(s8, (STAGES, 64, 64), name=f"{x}_tiles") for x in "ab")
        last = smem.alloc(u32, (1,), name="last")
        a_base, b_base = reg.from_(ptx.addr(a_tiles), u32), reg.from_(ptx.addr(b_tiles), u32)
        a_from, b_from, work_at, done_at, out_at = ptx.global_ptrs(a, b, work, done, out)
        thread, split = reg.from_(ptx.special.tid.x(), u32), reg.from_(ptx.special.ctaid.z(), u32)
        x, y = reg.from_(ptx.special.ctaid.x(), u32), reg.from_(ptx.special.ctaid.y(), u32)
        warp, lane = thread >> 5, thread & 31
        start = split * depth

        def issue(step: Any, stage: Any) -> None:
            more = step < steps
            for base, source, first in ((a_base, a_from, y), (b_base, b_from, x)):
                to = base + stage * BYTES
                if fault == "overrun" and source is b_from:
                    to += BYTES
                _copy(to, source, first << 6, k, start + (step << 6), thread, more, 16)
            ptx.cp.async_.commit_group()

        total = [[reg.array(s32, 4) for _ in range(4)] for _ in range(2)]
        for d in (r for row in total for four in row for r in four):
            ptx.inst.mov.s32(d, 0)
        for i in range(STAGES - 1):
            issue(reg.from_(i, u32), reg.from_(i, u32))
        step, stage, ahead = reg.scalar(u32, init=0), reg.scalar(u32, init=0), reg.scalar(u32, init=STAGES - 1)
        more, wrap = reg.scalar(pred), reg.scalar(pred)
        with ptx.loop("steps", pred=more):
            ptx.cp.async_.wait_group(STAGES - 1 if fault == "wait too few" else STAGES - 2)
            ptx.bar.sync()
            issue(step + (STAGES - 1), stage if fault == "wrong stage" else ahead)
            _multiply(a_base + stage * BYTES, b_base + stage * BYTES, warp, lane, total)
            for s in (stage, ahead):
                s += 1
                ptx.inst.setp.eq.u32(wrap, s, STAGES)
                ptx.inst.mov.u32(s, 0, pred=wrap)
            step += 1
            ptx.inst.setp.lt.u32(more, step, steps)
        row, column = (y << 6) + ((warp >> 1) << 5) + (lane >> 2), (x << 6) + ((warp & 1) << 5) + ((lane & 3) << 1)
        here, mine = reg.scalar(u64), reg.scalar(u64)
        index = row * n + column
        ptx.inst.mad.wide.u32(here, index, 4, work_at)
        ptx.inst.mad.wide.u32(mine, split, 4 * m * n, here)
        places = [(i, j, h, 4 * ((16 * i + 8 * h) * n + 8 * j)) for i in range(2) for j in range(4) for h in range(2)]
        for i, j, h, offset in places:
            ptx.inst.st.global_.v2.s32(ptx.addr(mine, offset), [total[i][j][2 * h], total[i][j][2 * h + 1]])
        ptx.inst.membar.gl()
        ptx.bar.sync()
        with ptx.if_(thread == 0):
            before, counter = reg.scalar(u32), reg.scalar(u64)
            ptx.inst.mad.wide.u32(counter, y * (n // 64) + x, 4, done_at)
            ptx.inst.atom.global_.add.u32(before, ptx.addr(counter), 1)
            if fault != "never told":
                ptx.inst.st.shared.u32(ptx.addr(last), before)
        ptx.bar.sync(0, 96) if fault == "count" else ptx.bar.sync()
        number = reg.scalar(u32)
        ptx.inst.ld.shared.u32(number, ptx.addr(last))
        with ptx.if_(number == splits - 1):
            ptx.inst.membar.gl()
            to = reg.scalar(u64)
            ptx.inst.mad.wide.u32(to, index, 4, out_at)
            for _i, _j, _h, offset in places:
                p, q, v, w = reg.scalar(s32, init=0), reg.scalar(s32, init=0), reg.scalar(s32), reg.scalar(s32)
                for s in range(splits):
                    ptx.inst.ld.global_.v2.s32([v, w], ptx.addr(here, 4 * m * n * s + offset))
                    p += v
                    q += w
                ptx.inst.st.global_.v2.s32(ptx.addr(to, offset), [p, q])

    return gemm


def inputs(m, n, k, splits):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, (s, k)).astype(np.int8) for s in (m, n))
    return a, b, np.zeros((splits, m, n), np.int32), np.zeros(m * n // 4096, np.uint32)


@pytest.mark.parametrize(("m", "n", "k", "splits"), [(128, 64, 768, 3), (64, 64, 256, 1)])
def test_multiplies(judge, m, n, k, splits):
    arrays = inputs(m, n, k, splits)
    judge(build(m, n, k, splits), arrays, arrays[0].astype(np.float64) @ arrays[1].astype(np.float64).T, 0)


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("wait too few", "async-read-before-complete", "ldmatrix"),
        ("wrong stage", "async-read-before-complete", "ldmatrix"),
        ("overrun", "out-of-bounds", "cp.async_.cg"),
        ("never told", "uninitialised-read", "if_(number"),
        ("count", "named-barrier", "bar.sync(0, 96)"),
    ],
)
def test_faults_are_found(blame, fault, kind, words):
    blame(build(64, 64, 512, 2, fault), inputs(64, 64, 512, 2), kind, words)
