"""ptxas accepts every form of `ptx.tcgen05`, for each architecture that has it."""

from __future__ import annotations

from typing import Any

import pytest

from warpsmith import Layout, Tile, kernel, ptx, reg, smem
from warpsmith.types import b32, b64, bf16, f32, pred, u16, u32, u64

T = ptx.tcgen05
EVERY = ("sm_100a", "sm_103a", "sm_110a")
"""Architectures of tcgen05; sm_120a has none of it."""
MAKE = T.make_instr_desc


class Registers:
    def __init__(self) -> None:
        self.d, self.a, self.m, self.sa, self.sb = (reg.scalar(u32, 0) for _ in range(5))
        self.da, self.db, self.z = (reg.scalar(u64, 0) for _ in range(3))
        self.p = reg.scalar(u32, 0) == 0
        self.i = reg.scalar(u32, 0)


def traced(body: Any, arch: str, cta_group: int = 1) -> Any:
    pair = {"cluster": (2, 1, 1)} if cta_group == 2 else {}

    @kernel(arch=arch, block=(128, 1, 1), **pair)
    def tcgen05_forms():
        body(Registers())

    return tcgen05_forms


@pytest.mark.parametrize("arch", EVERY)
@pytest.mark.parametrize("group", [1, 2])
def test_allocation_order_and_commit(assemble, arch, group):
    def body(r):
        slot, bar = smem.alloc(u32, (1,)), smem.mbarrier(1)[0]
        n = reg.scalar(u32, 64)
        T.alloc(slot, 512, cta_group=group)
        T.alloc(slot, n, cta_group=group)
        taddr = smem.load(u32, slot)
        T.relinquish_alloc_permit(cta_group=group)
        T.fence_before_thread_sync()
        T.fence_after_thread_sync()
        T.commit(bar, cta_group=group)
        T.commit(bar, cta_group=group, pred=r.p)
        T.commit(ptx.addr(reg.scalar(b64, 0)), cta_group=group, space="generic")
        for mask in (3, reg.scalar(u16, 3), reg.scalar(u32, 3)):
            T.commit(bar, cta_group=group, multicast=True, multicast_mask=mask)
        T.dealloc(taddr, 512, cta_group=group)
        T.dealloc(taddr, n, cta_group=group)

    assemble([traced(body, arch, group)])


SHAPES = [("32x32b", 1, 128), ("16x64b", 1, 128), ("16x128b", 2, 64), ("16x256b", 4, 32), ("16x32bx2", 1, 128)]


@pytest.mark.parametrize("arch", EVERY)
@pytest.mark.parametrize(("shape", "each", "most"), SHAPES)
def test_loads_and_stores(assemble, arch, shape, each, most):
    def forms(count):
        def body(r):
            v = reg.array(b32, each * count)
            split = {"split": 8} if shape == "16x32bx2" else {}
            for bits in (False, True):
                T.ld(v, r.d, shape=shape, count=count, pack=bits, **split)
                T.wait_ld()
                T.st(ptx.addr(r.d, 4), v, shape=shape, unpack=bits, **split)
                T.wait_st()

        return body

    counts = [1 << k for k in range(8) if 1 << k <= most]
    assemble([traced(forms(c), arch) for c in counts])


@pytest.mark.parametrize("arch", ["sm_103a", "sm_110a"])
def test_loads_with_a_reduction(assemble, arch):
    def body(r):
        for count in (2, 4, 8, 16, 32, 64):
            v, least = reg.array(f32, count), reg.scalar(f32)
            for op in ("min", "max"):
                for how in ({"dtype": "f32"}, {"dtype": f32, "abs": True, "nan": True}, {"dtype": "u32"}, {"dtype": "s32"}):
                    T.ld(v, r.d, reduce=op, reduced=least, **how)
                    T.ld(v, r.d, shape="16x32bx2", split=16, reduce=op, reduced=least, **how)

    assemble([traced(body, arch)])


@pytest.mark.parametrize("arch", EVERY)
@pytest.mark.parametrize("group", [1, 2])
def test_copies_and_shifts(assemble, arch, group):
    def body(r):
        for size, ways in (("128x256b", (None,)), ("4x256b", (None,)), ("128x128b", (None,)), ("64x128b", ("02_13", "01_23")),
                           ("32x128b", (None,))):  # fmt: skip
            for multicast in ways:
                for decompress in (None, "b6x16_p32", "b4x16_p64"):
                    T.cp(r.d, r.da, cta_group=group, size=size, multicast=multicast, decompress=decompress)
        T.shift(r.d, cta_group=group)

    assemble([traced(body, arch, group)])


def dense(kind: str, group: int, sparse: bool = False) -> int:
    types = {
        "f16": "bf16",
        "tf32": "tf32",
        "f8f6f4": "e4m3",
        "i8": "s8",
        "mxf8f6f4": "e5m2",
        "mxf4": "e2m1",
        "mxf4nvf4": "e2m1",
    }
    return MAKE(kind, m=128 * group, n=128, a_dtype=types[kind], sparse=sparse)


KINDS_BY_ARCH = [(k, a) for k in ("f16", "tf32", "f8f6f4", "i8") for a in EVERY if (k, a) != ("i8", "sm_103a")]


@pytest.mark.parametrize(("kind", "arch"), KINDS_BY_ARCH)
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("sparse", [False, True])
def test_products(assemble, arch, group, sparse, kind):
    def body(r):
        more: dict[str, Any] = {"cta_group": group, "kind": kind, "sparse": sparse}
        more |= {"sparse_metadata": r.m} if sparse else {}
        idesc = dense(kind, group, sparse)
        for where in ({"a_is_tmem": False}, {"a_is_tmem": True}):
            a = r.a if where["a_is_tmem"] else r.da
            for use in (None, "fill", "use", "lastuse", "discard"):
                T.mma(r.d, a, r.db, idesc, collector_a=use, **where, **more)
            T.mma(ptx.addr(r.d, 128), a, r.db, r.i, enable_input_d=False, **where, **more)
            T.mma(r.d, a, r.db, idesc, pred_operand=r.p, pred=r.p, **where, **more)
            T.mma(r.d, a, r.db, idesc, enable_input_d=~r.p, **where, **more)
            T.mma(r.d, a, r.db, idesc, disable_output_lane=[r.i, 3, 0, 0] * group, **where, **more)
            if kind in ("f16", "tf32") and arch == "sm_100a":
                T.mma(r.d, a, r.db, idesc, scale_d=3, disable_output_lane=[0] * 4 * group, **where, **more)
                T.mma(r.d, a, r.db, idesc, scale_c=15, **where, **more)
        for use in (None, "lastuse", "discard"):
            T.mma(r.d, r.a, r.db, idesc, a_is_tmem=True, ashift=True, collector_a=use, **more)

    assemble([traced(body, arch, group)])


@pytest.mark.parametrize("arch", EVERY)
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("sparse", [False, True])
def test_block_scaled_products(assemble, arch, group, sparse):
    def body(r):
        more: dict[str, Any] = {"cta_group": group, "sparse": sparse, "scale_a": r.sa, "scale_b": r.sb}
        more |= {"sparse_metadata": r.m} if sparse else {}
        for kind, ways in (("mxf8f6f4", (None, "1X", "block32")), ("mxf4", (None, "2X", "block32")),
                           ("mxf4nvf4", ("2X", "4X", "block16", "block32"))):  # fmt: skip
            idesc = dense(kind, group, sparse)
            for vec in ways:
                T.mma(r.d, r.da, r.db, idesc, kind=kind, scale_vec=vec, **more)
                T.mma(r.d, r.a, r.db, idesc, kind=kind, scale_vec=vec, a_is_tmem=True, collector_a="fill", **more)

    assemble([traced(body, arch, group)])


@pytest.mark.parametrize("arch", EVERY)
@pytest.mark.parametrize("sparse", [False, True])
def test_weight_stationary_products(assemble, arch, sparse):
    def body(r):
        more: dict[str, Any] = {"ws": True, "sparse": sparse}
        more |= {"sparse_metadata": r.m} if sparse else {}
        for kind in ("f16", "tf32", "f8f6f4", *(["i8"] if arch != "sm_103a" else [])):
            idesc = dense(kind, 1, sparse)
            T.mma(r.d, r.da, r.db, idesc, kind=kind, **more)
            T.mma(r.d, r.a, r.db, idesc, kind=kind, a_is_tmem=True, zero_columns=r.z, **more)
            for buffer in range(4):
                for use in ("fill", "use", "lastuse", "discard"):
                    T.mma(r.d, r.da, r.db, idesc, kind=kind, collector_b=f"b{buffer}::{use}", **more)

    assemble([traced(body, arch)])


def test_descriptors(assemble):
    def body(r):
        base = smem.base()
        T.descriptor(base, stride_bytes=1024)
        T.descriptor(base, byte_offset=4096, stride_bytes=1024, leading_bytes=16384, swizzle=None, base_offset=3)
        T.descriptor(base, stride_bytes=512, swizzle="128B_atom_32B", leading_bytes=256, lbo_mode=1)
        T.masked_descriptor(base, byte_offset=32)

    @kernel(arch="sm_103a", block=(128, 1, 1), smem=1024, extern_smem=True)
    def descriptors():
        body(None)

    assemble([descriptors])


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a", "sm_110a", "sm_120a"])
def test_cluster_launch_control(assemble, arch):
    C = ptx.clusterlaunchcontrol

    def body(r):
        slot, bar = smem.alloc(u32, (4,), align=16), smem.mbarrier(1)[0]
        C.try_cancel(slot, bar)
        C.try_cancel(slot, bar, multicast=True)
        ptx.mbarrier.wait(bar, 0)
        answer = C.answer(slot)
        with ptx.if_(C.is_canceled(answer)):
            x, y, z = C.first_ctaid(answer)
            ptx.inst.add.u32(x, y, z)
            ptx.inst.add.u32(x, C.first_ctaid(answer, dim="y"), z)

    assemble([traced(body, arch)])


@pytest.mark.parametrize("arch", ["sm_100a", "sm_120a"])
def test_packed_pairs_of_f32(assemble, arch):
    def body(r):
        v = reg.scalar(b64, 0)
        for rnd in ("rn", "rz", "rm", "rp"):
            for ftz in ("", ".ftz"):
                for op, n in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3)):
                    chain = ptx.inst
                    for word in f"{op}.{rnd}{ftz}.f32x2".split("."):
                        chain = getattr(chain, word)
                    chain(v, *[v] * n)

    assemble([traced(body, arch)])


def test_directives_and_the_load_of_a_pair(assemble):
    @kernel(
        arch="sm_100a",
        in_specs=(Tile(128, 128, bf16, Layout.TMA_128B, tma_box=(64, 64)),),
        block=(384, 1, 1),
        smem=16384,
        extern_smem=True,
        cluster=(2, 1, 1),
        raw_directives=[
            ("reqntid", (384, 1, 1)),
            ("explicitcluster", ()),
            ("reqnctapercluster", (2, 1, 1)),
            ("maxnreg", (80,)),
        ],
    )
    def pair(A):
        base = smem.base()
        lead = ptx.cluster.map_shared_u32(base + 8192, 0)
        p = reg.scalar(pred)
        ptx.inst.setp.eq.u32(p, ptx.special.tid.x(), 0)
        with ptx.if_(p):
            tile = ptx.cp.async_.bulk.tensor_2d.shared_cta_global_tile
            tile(dst=base, src=A.tma_desc(), coord=(0, 0), mbar=lead, cta_group=2)
        ptx.cluster.sync()

    text = pair.ptx()
    for words in (".reqntid 384, 1, 1", ".explicitcluster", ".reqnctapercluster 2, 1, 1", ".maxnreg 80", ".cta_group::2"):
        assert words in text
    assemble([pair])
