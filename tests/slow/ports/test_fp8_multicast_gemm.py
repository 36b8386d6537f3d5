"""Port: C = A Bᵀ in fp8 on clusters of two CTAs that share A by TMA multicast (sm_90a).

Each CTA loads half of A's rows and multicasts them to both, and all of its own B. A stage may be filled again when the
consumers of both CTAs have given it back: their arrivals are remote. `fault` breaks one thing.
"""

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.specs import Layout
from warpsmith.types import e4m3, f32, pred, u32, u64

BM, BN, BK = 64, 64, 128
STAGES = 2
CLUSTER = 2
HALF = BM // CLUSTER


def _advance(stage: Any, phase: Any) -> None:
    wrap = reg.scalar(pred)
    stage += 1
    ptx.inst.setp.eq.u32(wrap, stage, STAGES)
    ptx.inst.xor.b32(phase, phase, 1, pred=wrap)
    ptx.inst.mov.u32(stage, 0, pred=wrap)


def build(m: int, n: int, k: int, fault: str = "") -> Any:
    """Return the kernel (a [m, k], b [n, k]) → c [m, n] in f32; a cluster computes 64 rows and 128 columns."""
    steps = k // BK
    tx = BM * BK + BN * BK

    @kernel(
        arch="sm_90a",
        in_specs=(
            Tile(m, k, e4m3, Layout.TMA_128B, tma_box=(HALF, BK)),
            Tile(n, k, e4m3, Layout.TMA_128B, tma_box=(BN, BK)),
        ),
        out_specs=(Tile(m, n, f32),),
        grid=(n // BN, m // BM, 1),
        block=(160, 1, 1),
        cluster=(CLUSTER, 1, 1),
    )
    def gemm(a, b, out):
        a_tiles = smem.alloc(e4m3, (STAGES, BM, BK), align=1024, name="a_tiles")
        b_tiles = smem.alloc(e4m3, (STAGES, BN, BK), align=1024, name="b_tiles")
        full, empty = smem.mbarrier(STAGES, name="full"), smem.mbarrier(STAGES, name="empty")
        a_base, b_base = reg.from_(ptx.addr(a_tiles), u32), reg.from_(ptx.addr(b_tiles), u32)
        full_base, empty_base = reg.from_(ptx.addr(full), u32), reg.from_(ptx.addr(empty), u32)
        thread = reg.from_(ptx.special.tid.x(), u32)
        rank = reg.from_(ptx.sreg("%cluster_ctarank"), u32)
        column = reg.from_(ptx.special.ctaid.x(), u32) * BN
        row = reg.from_(ptx.special.ctaid.y(), u32) * BM
        with ptx.if_(thread == 0):
            for i in range(STAGES):
                ptx.mbarrier.init(full[i], 1)
                ptx.mbarrier.init(empty[i], 4 if fault == "count" else 4 * CLUSTER)
            if fault != "no init fence":
                ptx.fence.mbarrier_init()
        if fault == "no cluster start":
            ptx.bar.sync()
        else:
            ptx.cluster.sync()
        stage, phase = reg.scalar(u32, init=0), reg.scalar(u32, init=0)
        step, more = reg.scalar(u32, init=0), reg.scalar(pred)
        with ptx.if_(thread == 128), ptx.loop("produce", pred=more):
            if fault != "no empty wait":
                ptx.mbarrier.wait(empty_base + stage * 8, phase if fault == "parity" else phase ^ 1, scope="cluster")
            here = full_base + stage * 8
            if fault != "no expect":
                ptx.mbarrier.arrive_expect_tx(here, {"few bytes": tx - BK, "many bytes": tx + BK}.get(fault, tx))
            ptx.cp.async_.bulk.tensor_2d(
                dst=a_base + stage * (BM * BK) + rank * (HALF * BK),
                src=a.tma_desc(),
                coord=(step * BK, row + rank * HALF),
                mbar=here,
                multicast_mask=1 if fault == "mask" else 3,
            )
            to = b_base + stage * (BN * BK)
            if fault == "overrun":
                to += BK * 8
            ptx.cp.async_.bulk.tensor_2d(dst=to, src=b.tma_desc(), coord=(step * BK, column), mbar=here)
            _advance(stage, phase)
            step += 1
            ptx.inst.setp.lt.u32(more, step, steps)
        with ptx.if_(thread < 128):
            total = reg.wgmma_frag(n=BN, dtype=f32)
            lane = thread & 31
            with ptx.loop("consume", pred=more):
                if fault != "no full wait":
                    ptx.mbarrier.wait(full_base + stage * 8, phase)
                kept = {"leading_byte_offset": 16, "stride_byte_offset": 1024, "swizzle": ptx.wgmma.SWIZZLE_128B}
                da = ptx.wgmma.make_descriptor(a_base + stage * (BM * BK), **kept)
                db = ptx.wgmma.make_descriptor(b_base + stage * (BN * BK), **kept)
                adds = step != 0
                if fault != "no wgmma fence":
                    ptx.wgmma.fence()
                for i in range(BK // 32):
                    ptx.wgmma.mma_async(
                        shape=(BM, BN, 32), dtype_d=f32, dtype_a=e4m3, dtype_b=e4m3, d=total,
                        a=da, b=db, a_k_offset=32 * i, b_k_offset=32 * i, scale_d=True if i else adds,
                    )  # fmt: skip
                ptx.wgmma.commit_group()
                if fault != "no wgmma wait":
                    ptx.wgmma.wait_group(0)
                for peer in range(1 if fault == "no remote arrive" else CLUSTER):
                    ptx.cluster.arrive_remote(empty_base + stage * 8, peer, pred=lane == 0)
                _advance(stage, phase)
                step += 1
                ptx.inst.setp.lt.u32(more, step, steps)
            (to,) = ptx.global_ptrs(out)
            at = row + ((thread >> 5) << 4) + (lane >> 2)
            index = at * n + column + (lane & 3) * 2
            wide = reg.scalar(u64)
            ptx.inst.mad.wide.u32(wide, index, 4, to)
            for half in range(2):
                for j in range(BN // 8):
                    pair = [total[4 * j + 2 * half], total[4 * j + 2 * half + 1]]
                    ptx.inst.st.global_.v2.f32(ptx.addr(wide, (8 * half * n + 8 * j) * 4), pair)
        if fault != "no cluster end":
            ptx.cluster.sync()

    return gemm


@cache
def inputs(m, n, k):
    rng = np.random.default_rng(k)
    return tuple(rng.standard_normal(shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((m, k), (n, k)))


@pytest.mark.parametrize(("m", "n", "k"), [(64, 128, 640), (128, 256, 128)])
def test_multiplies(judge, m, n, k):
    a, b = inputs(m, n, k)
    want = a.astype(np.float64) @ b.astype(np.float64).T
    judge(build(m, n, k), (a, b), want, 4e-3 * k**0.5)  # the tensor core keeps about 13 bits of a sum of fp8 products


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("no full wait", "async-read-before-complete", "mma_async"),
        ("no empty wait", "over-arrival", "arrive_expect_tx"),
        ("parity", "deadlock", "ptx.mbarrier.wait(empty_base"),
        ("count", "over-arrival", "arrive_remote"),
        ("no expect", "deadlock", "ptx.mbarrier.wait(full_base"),
        ("few bytes", "tx-mismatch", "arrive_expect_tx"),
        ("many bytes", "tx-mismatch", "arrive_expect_tx"),
        ("mask", "tx-mismatch", "arrive_expect_tx"),
        ("overrun", "out-of-bounds", "tensor_2d(dst=to"),
        ("no remote arrive", "deadlock", "ptx.mbarrier.wait(empty_base"),
        ("no init fence", "uninitialised-barrier", "tensor_2d"),
        ("no cluster start", "peer-lifetime", "tensor_2d"),
        ("no cluster end", "cluster-exit", "arrive_remote"),
        ("no wgmma fence", "register-before-wait", "mma_async"),
        ("no wgmma wait", "async-overwrite", "tensor_2d"),
    ],
)
def test_faults_are_found(blame, fault, kind, words):
    blame(build(64, 128, 640, fault), inputs(64, 128, 640), kind, words)
