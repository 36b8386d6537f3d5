"""Values that nobody wrote are followed exactly: through the elements of vectors, and from lane to lane of a warp."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.simulator import simulate

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .b32 %r<60>; .reg .b64 %rd<5>; .reg .pred %p<9>; .reg .b16 %h<9>; .reg .f32 %f<9>;
.shared .align 16 .b8 nothing[128]; .shared .align 32 .b8 box[1024], zeros[1024], d[1024];
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, nothing; mov.u32 %r3, box;
setp.lt.u32 %p1, %r1, 16;        // lanes 16 and up have nothing in %r4
mad.lo.u32 %r11, %r1, 16, %r3;
mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
ld.shared.u32 %r4, [%r2];
@%p1 mov.u32 %r4, %r1;
mov.u32 %r5, 7;
setp.ge.u32 %p2, %r4, 8;
"""
TAIL = "st.global.u32 [%rd1], %r9; ret; }"


MMA = """mov.u32 %r5, 0;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {D}, {A, A, A, A}, {B, B}, {C, C, C, C};
"""


def _product(d: str, a: str = "%r5", b: str = "%r5", c: str = "%r5") -> str:
    return MMA.replace("A", a).replace("B", b).replace("{D}", d).replace("C", c)


PAIR = "mov.b64 %rd3, {{{0}, {1}}}; "
LOW, HIGH = "mov.b64 {%r9, %r8}, %rd3;", "mov.b64 {%r8, %r9}, %rd3;"
HALVES = "mov.b32 {%h1, %h2}, %r5; mov.b32 {%h3, %h4}, %r4; mov.b32 %r6, {%h1, %h3}; "
"""The upper half of %r6 is undefined, the lower one is not."""
LOWER, UPPER = "mov.b32 {%h5, %h6}, %r7; mov.b32 %r9, {%h5, %h5};", "mov.b32 {%h5, %h6}, %r7; mov.b32 %r9, {%h6, %h6};"
VOLTA = """mov.u32 %r5, 0;
mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {D}, {A, A}, {B, B}, {%r5, %r5, %r5, %r5, %r5, %r5, %r5, %r5};
"""
VOLTA_D = ("{%r9, %r20, %r21, %r22, %r23, %r24, %r25, %r26}", "{%r20, %r21, %r22, %r23, %r9, %r24, %r25, %r26}")
SCALED = """mov.u32 %r5, 0; mov.u16 %h1, 0;
mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0
 {%r9, %r20, %r21, %r22}, {A, %r5, %r5, %r5}, {B, %r5}, {%r5, %r5, %r5, %r5}, SA, {%h1, %h1}, SB, {%h1, %h1};
"""


def _volta(d: str, a: str = "%r5", b: str = "%r5") -> str:
    return VOLTA.replace("{D}", d).replace("A", a).replace("B", b)


def _scaled(a: str = "%r5", b: str = "%r5", sa: str = "%r5", sb: str = "%r5") -> str:
    return SCALED.replace("SA", sa).replace("SB", sb).replace("A,", a + ",").replace("{B", "{" + b)


def _wmma(hole: str, read: str) -> str:
    """D of a product of zeros, but that `hole` (a, b or c) has what lanes below 16 have written alone; `read`: where of D."""
    at = {name: "%r3" if name == hole else "%r31" for name in "abc"}
    regs = ", ".join(f"%r{i}" for i in range(32, 40))
    sums = ", ".join(f"%r{i}" for i in range(50, 58))
    kind = "f16" if hole != "c" else "f32"
    clear = f"""mov.u32 %r5, 0; mov.u32 %r31, zeros; mov.u32 %r30, d;
mad.lo.u32 %r12, %r1, 32, %r31; mad.lo.u32 %r13, %r1, 32, %r3;
st.shared.v4.b32 [%r12], {{%r5, %r5, %r5, %r5}}; st.shared.v4.b32 [%r12+16], {{%r5, %r5, %r5, %r5}};
{
        "@%p1 st.shared.v4.b32 [%r11], {%r5, %r5, %r5, %r5};"
        if kind == "f16"
        else "@%p1 st.shared.v4.b32 [%r13], {%r5, %r5, %r5, %r5}; @%p1 st.shared.v4.b32 [%r13+16], {%r5, %r5, %r5, %r5};"
    }
bar.sync 0;
"""
    return (
        clear
        + f"""wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {{{regs}}}, [{at["a"]}];
wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {{{regs.replace("%r3", "%r4")}}}, [{at["b"]}];
wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {{{sums}}}, [{at["c"]}];
wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {{{sums}}}, {{{regs}}}, {{{regs.replace("%r3", "%r4")}}}, {{{sums}}};
wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r30], {{{sums}}};
bar.sync 0;
shr.u32 %r12, %r1, 1; mad.lo.u32 %r12, %r12, {read}, %r30; ld.shared.u32 %r9, [%r12];
"""
    )


def _lanes(body: str, head: str = HEAD) -> list[str]:
    """The lanes in which what `body` leaves in %r9 is undefined, as findings name them."""
    result = simulate(parse(head + body + TAIL, "x.ptx"), grid=1, block=32, args=[np.zeros(32, np.uint32)])
    assert {f.kind for f in result.findings} <= {"uninitialised-read"}, str(result)
    return [f.threads for f in result.findings]


@pytest.mark.parametrize(
    ("body", "lanes"),
    [
        ("shfl.sync.up.b32 %r9, %r4, 1, 0, -1;", "17-31"),
        ("shfl.sync.down.b32 %r9, %r4, 1, 31, -1;", "15-31"),
        ("shfl.sync.bfly.b32 %r9, %r4, 16, 31, -1;", "0-15"),
        ("shfl.sync.idx.b32 %r9, %r4, 3, 31, -1;", ""),
        ("shfl.sync.idx.b32 %r9, %r4, 30, 31, -1;", "0-31"),
        ("shfl.sync.up.b32 %r4, %r4, 1, 0, -1; mov.u32 %r9, %r4;", "17-31"),
        ("shfl.sync.idx.b32 %r9, %r5, %r4, 31, -1;", "16-31"),
        ("redux.sync.add.u32 %r9, %r4, -1;", "0-31"),
        ("redux.sync.add.u32 %r4, %r4, -1; mov.u32 %r9, %r4;", "0-31"),
        ("redux.sync.add.u32 %r9, %r5, -1;", ""),
        ("mov.u32 %r9, 0; @%p1 redux.sync.add.u32 %r9, %r4, 0xffff;", ""),
        ("vote.sync.ballot.b32 %r9, %p2, -1;", "0-31"),
        ("vote.sync.any.pred %p3, %p2, -1; selp.b32 %r9, 1, 0, %p3;", ""),
        ("vote.sync.all.pred %p3, %p2, -1; selp.b32 %r9, 1, 0, %p3;", ""),
        ("setp.ge.u32 %p2, %r4, 32; vote.sync.any.pred %p3, %p2, -1; selp.b32 %r9, 1, 0, %p3;", "0-31"),
        ("setp.lt.u32 %p2, %r4, 32; vote.sync.all.pred %p3, %p2, -1; selp.b32 %r9, 1, 0, %p3;", "0-31"),
        ("vote.sync.uni.pred %p3, %p2, -1; selp.b32 %r9, 1, 0, %p3;", "0-31"),
        ("match.any.sync.b32 %r9, %r4, -1;", "0-31"),
        ("match.all.sync.b32 %r9|%p3, %r5, -1;", ""),
        ("st.shared.v2.b32 [%r11], {%r4, %r5}; ld.shared.b32 %r9, [%r11+4];", ""),
        ("st.shared.v2.b32 [%r11], {%r4, %r5}; ld.shared.b32 %r9, [%r11];", "16-31"),
        ("st.shared.v4.b32 [%r11], {%r5, %r4, %r5, %r5}; ld.shared.v2.b32 {%r8, %r9}, [%r11];", "16-31"),
        ("st.shared.v4.b32 [%r11], {%r5, %r4, %r5, %r5}; ld.shared.v2.b32 {%r8, %r9}, [%r11+8];", ""),
        ("st.shared.v4.b32 [%r11], {%r5, %r4, %r5, %r5}; ld.shared.v4.b32 {%r6, %r7, %r8, %r9}, [%r11];", ""),
        # rows of A: lane / 4; columns of B: lane / 4; columns of D: 2 * (lane % 4)
        (_product("{%r9, %r6, %r7, %r8}", a="%r4"), "16-31"),
        (_product("{%r9, %r6, %r7, %r8}", b="%r4"), "2-3,6-7,10-11,14-15,18-19,22-23,26-27,30-31"),
        (_product("{%r9, %r6, %r7, %r8}", c="%r4"), "16-31"),
        (_product("{%r9, %r6, %r7, %r4}", c="%r4"), "16-31"),
        (_product("{%r6, %r9, %r7, %r8}"), ""),
    ],
)  # fmt: skip
def test_what_is_undefined(body: str, lanes: str) -> None:
    assert _lanes(body) == ([f"cta (0,0,0) warp 0 lanes {lanes}"] if lanes else [])


@pytest.mark.parametrize(
    ("body", "lanes"),
    [
        # pairs
        (PAIR.format("%r5", "%r4") + LOW, ""),
        (PAIR.format("%r5", "%r4") + HIGH, "16-31"),
        (PAIR.format("%r4", "%r5") + LOW, "16-31"),
        (PAIR.format("%r4", "%r5") + HIGH, ""),
        (PAIR.format("%r4", "%r5") + "shr.u64 %rd3, %rd3, 32; cvt.u32.u64 %r9, %rd3;", ""),
        (PAIR.format("%r4", "%r5") + "shr.u64 %rd3, %rd3, 31; cvt.u32.u64 %r9, %rd3;", "16-31"),
        (PAIR.format("%r5", "%r4") + "shr.u64 %rd3, %rd3, 32; cvt.u32.u64 %r9, %rd3;", "16-31"),
        (PAIR.format("%r4", "%r5") + "shr.u64 %rd3, %rd3, %r14; cvt.u32.u64 %r9, %rd3;", ""),
        (PAIR.format("%r4", "%r5") + "shl.b64 %rd3, %rd3, 32; cvt.u32.u64 %r9, %rd3;", ""),
        (PAIR.format("%r4", "%r5") + "shl.b64 %rd3, %rd3, 32; " + HIGH, "16-31"),
        (PAIR.format("%r4", "%r5") + "cvt.u32.u64 %r9, %rd3;", "16-31"),
        (PAIR.format("%r5", "%r4") + "cvt.u32.u64 %r9, %rd3;", ""),
        (PAIR.format("%r5", "%r4") + "shr.s64 %rd3, %rd3, 63; cvt.u32.u64 %r9, %rd3;", "16-31"),
        ("cvt.u64.u32 %rd3, %r4; " + HIGH, ""),
        ("cvt.s64.s32 %rd3, %r4; " + HIGH, "16-31"),
        (PAIR.format("%r5", "%r4") + "and.b64 %rd3, %rd3, 0xffffffff; " + HIGH, ""),
        (PAIR.format("%r5", "%r4") + "or.b64 %rd3, %rd3, -4294967296; " + HIGH, ""),
        (PAIR.format("%r5", "%r4") + "xor.b64 %rd3, %rd3, %rd1; " + LOW, ""),
        (PAIR.format("%r5", "%r4") + "xor.b64 %rd3, %rd3, %rd1; " + HIGH, "16-31"),
        (PAIR.format("%r5", "%r4") + "add.s64 %rd3, %rd3, 0; " + LOW, "16-31"),  # by carries, if from below alone
        (PAIR.format("%r5", "%r4") + "@%p1 mov.b64 {%r8, %r4}, %rd3; mov.u32 %r9, %r4;", "16-31"),
        (PAIR.format("%r5", "%r4") + "@!%p1 mov.b64 %rd3, {%r5, %r5}; " + HIGH, ""),
        (PAIR.format("%r5", "%r4") + "st.shared.b64 [%r11], %rd3; ld.shared.b32 %r9, [%r11];", ""),
        (PAIR.format("%r5", "%r4") + "st.shared.b64 [%r11], %rd3; ld.shared.b32 %r9, [%r11+4];", "16-31"),
        (PAIR.format("%r5", "%r4") + "st.shared.b64 [%r11], %rd3; ld.shared.b64 %rd3, [%r11]; " + LOW, ""),
        (PAIR.format("%r5", "%r4") + "st.shared.b64 [%r11], %rd3; ld.shared.b64 %rd3, [%r11]; " + HIGH, "16-31"),
        (PAIR.format("%r5", "%r4") + "selp.b64 %rd3, %rd3, %rd1, %p1; " + HIGH, ""),
        # halves
        (HALVES + "mov.u32 %r7, %r6; " + LOWER, ""),
        (HALVES + "mov.u32 %r7, %r6; " + UPPER, "16-31"),
        (HALVES + "and.b32 %r9, %r6, 0xffff;", ""),
        (HALVES + "and.b32 %r9, %r6, 0xffff0000;", "16-31"),
        (HALVES + "and.b32 %r9, %r6, 0xff00ff;", "16-31"),
        (HALVES + "shl.b32 %r9, %r6, 16;", ""),
        (HALVES + "shl.b32 %r9, %r6, 15;", "16-31"),
        (HALVES + "shr.u32 %r9, %r6, 16;", "16-31"),
        (HALVES + "prmt.b32 %r9, %r6, %r5, 0x5410;", ""),
        (HALVES + "prmt.b32 %r9, %r6, %r5, 0x5420;", "16-31"),
        (HALVES + "prmt.b32 %r9, %r5, %r6, 0x5410;", ""),
        (HALVES + "prmt.b32 %r9, %r5, %r6, 0x7610;", "16-31"),
        (HALVES + "prmt.b32 %r9, %r5, %r5, %r6;", "16-31"),
        (HALVES + "lop3.b32 %r7, %r6, %r5, %r5, 0x96; " + LOWER, ""),
        (HALVES + "lop3.b32 %r7, %r6, %r5, %r5, 0x96; " + UPPER, "16-31"),
        (HALVES + "add.rn.f16x2 %r7, %r6, %r5; " + LOWER, ""),
        (HALVES + "add.rn.f16x2 %r7, %r6, %r5; " + UPPER, "16-31"),
        (HALVES + "fma.rn.bf16x2 %r7, %r5, %r6, %r5; " + LOWER, ""),
        (HALVES + "add.u32 %r7, %r6, %r5; " + LOWER, "16-31"),
        (HALVES + "mov.b32 %f1, %r4; mov.b32 %f2, %r5; cvt.rn.f16x2.f32 %r7, %f1, %f2; " + LOWER, ""),
        (HALVES + "mov.b32 %f1, %r4; mov.b32 %f2, %r5; cvt.rn.f16x2.f32 %r7, %f1, %f2; " + UPPER, "16-31"),
        (HALVES + "bfi.b32 %r9, %r5, %r6, 16, 16;", ""),
        (HALVES + "bfi.b32 %r9, %r5, %r6, 16, 15;", "16-31"),
        (HALVES + "bfi.b32 %r9, %r6, %r5, 16, 16;", ""),
        (HALVES + "bfi.b32 %r9, %r6, %r5, 8, 24;", "16-31"),
        (HALVES + "shf.l.wrap.b32 %r9, %r6, %r5, 16;", "16-31"),
        (HALVES + "shf.r.wrap.b32 %r9, %r5, %r6, 16;", ""),
        (HALVES + "shf.r.wrap.b32 %r9, %r5, %r6, 24;", "16-31"),
        (HALVES + "shfl.sync.bfly.b32 %r7, %r6, 0, 31, -1; " + LOWER, ""),
        (HALVES + "shfl.sync.bfly.b32 %r7, %r6, 16, 31, -1; " + UPPER, "0-15"),
        (HALVES + "st.shared.b32 [%r11], %r6; ld.shared.u16 %h5, [%r11]; mov.b32 %r9, {%h5, %h5};", ""),
        (HALVES + "st.shared.b32 [%r11], %r6; ld.shared.u16 %h5, [%r11+2]; mov.b32 %r9, {%h5, %h5};", "16-31"),
        (HALVES + "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r7, %r8}, {%r5, %r5, %r5, %r5}, {%r5, %r5}, {%r6, %r5}; "
         + LOWER, ""),
        (HALVES + "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r7, %r8}, {%r5, %r5, %r5, %r5}, {%r5, %r5}, {%r6, %r5}; "
         + UPPER, "16-31"),
        # what is undefined as a whole
        ("add.u32 %r6, %r4, %r4; and.b32 %r9, %r6, 0;", ""),
        ("add.u32 %r6, %r4, %r4; or.b32 %r9, %r6, -1;", ""),
        ("add.u32 %r6, %r4, %r4; and.b32 %r9, %r6, 255;", "16-31"),
        ("add.u32 %r6, %r4, %r4; bfi.b32 %r9, %r5, %r6, 0, 32;", ""),
        ("add.u32 %r6, %r4, %r4; bfi.b32 %r9, %r5, %r6, 0, 24;", "16-31"),
        ("add.u32 %r6, %r4, %r4; shl.b32 %r9, %r6, 32;", ""),
        ("add.u32 %r6, %r4, %r4; mov.b32 {%h1, %h2}, %r5; mov.b32 %r6, {%h1, %h2}; mov.u32 %r9, %r6;", ""),
        ("add.u32 %r6, %r4, %r4; cvt.u64.u32 %rd3, %r6; and.b64 %rd3, %rd3, 0xffffffff00000000; " + LOW, ""),
        ("ld.shared.u8 %r6, [%r2]; and.b32 %r9, %r6, 0;", ""),
        ("ld.shared.u8 %r6, [%r2]; shr.u32 %r9, %r6, 8;", "0-31"),  # taken for extended by the sign
        # products
        (_volta(VOLTA_D[0], a="%r4"), "16-31"),
        (_volta(VOLTA_D[0], b="%r4"), ""),
        (_volta(VOLTA_D[1], b="%r4"), "0-31"),
        (_wmma("a", "64"), "16-31"),
        (_wmma("b", "4"), "16-31"),
        (_wmma("c", "64"), "16-31"),
        (_wmma("a", "0"), ""),
        (_wmma("b", "0"), ""),
    ],
)  # fmt: skip
def test_which_bytes_and_elements_are_undefined(body: str, lanes: str) -> None:
    assert _lanes("mov.u32 %r14, 32; " + body) == ([f"cta (0,0,0) warp 0 lanes {lanes}"] if lanes else [])


@pytest.mark.parametrize(
    ("body", "lanes"),
    [
        (_scaled(), ""),
        (_scaled(a="%r4"), "16-31"),
        (_scaled(b="%r4"), "2-3,6-7,10-11,14-15,18-19,22-23,26-27,30-31"),
        (_scaled(sa="%r4"), "16-31"),
        (_scaled(sb="%r4"), "2-3,6-7,10-11,14-15,18-19,22-23,26-27,30-31"),
        (HALVES + _scaled(sa="%r6"), ""),  # byte 0 is one of those that are defined
        (HALVES + "prmt.b32 %r6, %r6, %r6, 0x1032; " + _scaled(sa="%r6"), "16-31"),
    ],
)
def test_products_with_block_scaling(body: str, lanes: str) -> None:
    head = HEAD.replace(".version 8.6", ".version 8.7").replace("sm_90a", "sm_120a")
    assert _lanes(body, head) == ([f"cta (0,0,0) warp 0 lanes {lanes}"] if lanes else [])
