"""Shared memory: offsets, swizzles, the switch to dynamic memory, wgmma tiles."""

from __future__ import annotations

from warpsmith import kernel, ptx, reg, smem
from warpsmith.types import b32, bf16, f32, u32, u64


def test_a_stage_adds_its_offset_in_static_memory(emitted):
    def body():
        a = smem.alloc(bf16, (4, 64, 64))
        d = reg.scalar(u32)
        smem.load(f32, a[2])
        ptx.inst.mov.u32(d, a[1])
        ptx.inst.mov.u32(d, a)
        smem.load(f32, ptx.addr(a[3], 16))

    assert emitted(body) == [
        "ld.shared.f32 %f0, [smem+16384];", "mov.u32 %ru0, smem+8192;", "mov.u32 %ru0, smem;",
        "ld.shared.f32 %f1, [smem+24592];",
    ]  # fmt: skip


def test_a_stage_may_be_a_register(emitted):
    def body():
        a = smem.alloc(bf16, (4, 64, 64))
        stage = reg.scalar(u32)
        smem.load(f32, a[stage])

    assert emitted(body) == [
        "mov.u32 %ru1, smem;", "shl.b32 %ru2, %ru0, 13;", "add.u32 %ru3, %ru1, %ru2;", "ld.shared.f32 %f0, [%ru3];",
    ]  # fmt: skip


def test_over_48_kb_moves_everything_to_dynamic_memory():
    @kernel(block=(128, 1, 1))
    def body():
        a = smem.alloc(bf16, (4, 64, 64), swizzle="128B")
        bars = smem.mbarrier(3)
        b = smem.alloc(f32, (64, 65))
        ptx.mbarrier.init(bars[2], 1)
        smem.load(f32, a[2])
        b[1, 2] = 1.0

    text = body.ptx(loc=False)
    assert ".extern .shared .align 1024 .b8 dynamic_smem[];" in text
    assert "mbarrier.init.shared::cta.b64 \t[dynamic_smem+32784], 1;" in text
    assert "ld.shared.f32 \t%f0, [dynamic_smem+16384];" in text
    assert "st.shared.f32 \t[dynamic_smem+33164], %f1;" in text  # 32896 + (1*65 + 2)*4
    assert body.build().dynamic_shared == 32896 + 64 * 65 * 4


def test_raw_layout_and_allocations_share_dynamic_memory():
    @kernel(block=(128, 1, 1), smem=1000)
    def body():
        a = smem.alloc(f32, (16384,))
        base = smem.base()
        smem.load(f32, base)
        smem.load(f32, ptx.addr(a, 0))

    assert "[dynamic_smem+1024]" in body.ptx()
    assert body.build().dynamic_shared == 1024 + 65536


def test_named_dynamic_memory(emitted):
    def body():
        d = reg.scalar(u32)
        ptx.inst.mov.u32(d, "smem")
        smem.base()

    assert emitted(body, extern_smem="smem", smem=4096) == ["mov.u32 %ru0, smem;", "mov.u32 %ru1, smem;"]


def test_element_access_keeps_the_offset(emitted):
    def body():
        smem.alloc(f32, (8,))
        a = smem.alloc(f32, (2, 4, 8))
        i = reg.scalar(u32)
        a[1][2, 3] = a[1, 0, 1]
        a[1, i, 2] = 1.0

    assert emitted(body) == [
        "ld.shared.f32 %f0, [smem_1+132];", "st.shared.f32 [smem_1+204], %f0;",
        "mul.lo.u32 %ru1, %ru0, 32;", "mov.u32 %ru2, smem_1;",
        "add.u32 %ru3, %ru2, %ru1;", "mov.f32 %f1, 0f3F800000;", "st.shared.f32 [%ru3+136], %f1;",
    ]  # fmt: skip


def test_element_access_goes_through_the_swizzle(emitted):
    def body():
        a = smem.alloc(bf16, (16, 64), swizzle="128B")
        r = reg.scalar(u32)
        a[3, 8]
        a[r, 8]

    assert emitted(body) == [
        "ld.shared.b16 %rs0, [smem+416];",  # 3*128 + 16 → chunk 1 of row 3 lies at chunk 1 ^ 3
        "mul.lo.u32 %ru1, %ru0, 128;", "add.u32 %ru2, %ru1, 16;", "and.b32 %ru3, %ru2, 896;", "shr.u32 %ru4, %ru3, 3;",
        "xor.b32 %ru5, %ru2, %ru4;", "mov.u32 %ru6, smem;", "add.u32 %ru7, %ru6, %ru5;", "ld.shared.b16 %rs1, [%ru7];",
    ]  # fmt: skip


def test_barriers_by_register(emitted):
    def body():
        bars = smem.mbarrier(4)
        array = ptx.mbarrier.array(smem.base(), 64, 4)
        stage = reg.scalar(u32)
        ptx.mbarrier.init(bars[stage], 1)
        array.at(stage).init(2)
        array[3].init(2)

    assert emitted(body) == [
        "mov.u32 %ru0, dynamic_smem;", "mov.u32 %ru2, mbar;", "shl.b32 %ru3, %ru1, 3;", "add.u32 %ru4, %ru2, %ru3;",
        "mbarrier.init.shared::cta.b64 [%ru4], 1;", "shl.b32 %ru5, %ru1, 3;", "add.u32 %ru6, %ru0, %ru5;",
        "mbarrier.init.shared::cta.b64 [%ru6+64], 2;", "mbarrier.init.shared::cta.b64 [%ru0+88], 2;",
    ]  # fmt: skip


def test_address_forms(emitted):
    def body():
        p, n, r = reg.scalar(u64), reg.scalar(u32), reg.scalar(b32)
        ptx.inst.ld.global_.b32(r, ptx.addr(p))
        ptx.inst.ld.global_.b32(r, ptx.addr(p, 4))
        ptx.inst.ld.global_.b32(r, ptx.addr(p, -4))
        ptx.inst.ld.global_.b32(r, p)
        ptx.inst.ld.global_.b32(r, ptx.addr(ptx.addr(p, 4), 4))
        ptx.inst.ld.global_.b32(r, ptx.addr(p, n))

    assert [line for line in emitted(body) if line.startswith("ld")] == [
        "ld.global.b32 %r0, [%rdu0];", "ld.global.b32 %r0, [%rdu0+4];", "ld.global.b32 %r0, [%rdu0+-4];",
        "ld.global.b32 %r0, [%rdu0];",
        "ld.global.b32 %r0, [%rdu0+8];", "ld.global.b32 %r0, [%rdu2];",
    ]  # fmt: skip


def test_descriptor_bits_of_a_wgmma_tile(emitted):
    def body():
        ptx.wgmma.auto_descriptor(smem.base(), dtype=bf16, shape=(64, 64), major="K")
        ptx.wgmma.auto_descriptor(smem.base(), dtype=bf16, shape=(32, 128), major="MN")

    constants = [int(line.split(", ")[-1][:-1]) for line in emitted(body) if line.startswith("or.b64")]
    assert constants == [
        1 << 62 | (1024 >> 4) << 32 | (16 >> 4) << 16,
        1 << 62 | (1024 >> 4) << 32 | (32 * 128 >> 4) << 16,
    ]


def test_barriers_are_counted_and_gone_through():
    @kernel(block=(32, 1, 1))
    def body():
        bars = smem.mbarrier(3)
        for bar in bars:
            ptx.mbarrier.init(bar, len(bars))

    assert [line.split("[")[1] for line in body.ptx().splitlines() if "mbarrier.init" in line] == [
        "mbar], 3;", "mbar+8], 3;", "mbar+16], 3;",
    ]  # fmt: skip
