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
.reg .b32 %r<20>; .reg .b64 %rd<5>; .reg .pred %p<9>;
.shared .align 16 .b8 nothing[128]; .shared .align 16 .b8 box[1024];
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


def _lanes(body: str) -> list[str]:
    """The lanes in which what `body` leaves in %r9 is undefined, as findings name them."""
    result = simulate(parse(HEAD + body + TAIL, "x.ptx"), grid=1, block=32, args=[np.zeros(32, np.uint32)])
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
