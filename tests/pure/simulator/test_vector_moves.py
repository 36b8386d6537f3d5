"""`mov` of whole vectors (`.v2`, `.v4`), of vector registers to and from scalars, and of what is no register to elements."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.base.errors import PtxError
from warpsmith.simulator import simulate

REGISTERS = """.reg .v2 .u32 %c; .reg .v4 .b16 %s; .reg .v2 .u64 %w; .reg .b128 %q; .reg .pred %p;
.reg .u32 %x<5>; .reg .u64 %r<4>; .reg .f32 %f<5>;"""


def module(body: str) -> str:
    return f""".version 8.3
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {{
{REGISTERS}
ld.param.u64 %r0, [p];
mov.u32 %x1, 1; mov.u32 %x2, 2; mov.u32 %x3, 3; mov.u32 %x4, 4;
{body}
ret;
}}
"""


M = 2**32 - 1
CASES = {
    "mov.v4.b32 {%x1, %x2, %x3, %x4}, {%x2, %x3, %x1, %x4}; st.v4.u32 [%r0], {%x1, %x2, %x3, %x4};": [2, 3, 1, 4],
    "mov.v4.b32 {%x1, %x2, %x3, %x4}, {%x2, %x1, %x4, %x3}; st.v4.u32 [%r0], {%x1, %x2, %x3, %x4};": [2, 1, 4, 3],
    "mov.v4.b32 {%x1, %x2, %x3, %x4}, {%x1, %x1, %x2, 9}; st.v4.u32 [%r0], {%x1, %x2, %x3, %x4};": [1, 1, 2, 9],
    "mov.v4.b32 {%x1, _, %x3, _}, {%x4, %x1, %x1, %x2}; st.v4.u32 [%r0], {%x1, %x2, %x3, %x4};": [4, 2, 1, 4],
    "mov.v2.s32 {%x1, %x1}, {-8, 9}; st.u32 [%r0], %x1;": [9],
    "mov.v2.u32 %c, {%x3, %x4}; mov.v2.u32 %c, {%c.y, %c.x}; st.v2.u32 [%r0], %c;": [4, 3],
    "mov.v2.u32 %c, {%x3, %x4}; mov.b64 %r1, %c; st.u64 [%r0], %r1;": [3, 4],
    "mov.b64 %c, 0x500000006; st.v2.u32 [%r0], %c;": [6, 5],
    "mov.b64 {%x1, %x2}, 0d3ff0000000000001; st.v2.u32 [%r0], {%x1, %x2};": [1, 0x3FF00000],
    "mov.b64 {%x1, %x2}, %r0; mov.b64 %r1, {%x1, %x2}; sub.u64 %r1, %r1, %r0; st.u64 [%r0], %r1;": [0, 0],
    "mov.u64 %r1, 0x0004000300020001; mov.b64 %s, %r1; mov.v4.b16 %s, {%s.w, %s.z, %s.y, %s.x}; st.v4.b16 [%r0], %s;": [
        0x30004,
        0x10002,
    ],
    "mov.v2.u64 %w, {7, -1}; mov.b128 %q, %w; mov.b128 {%r1, %r2}, %q; st.v2.u64 [%r0], {%r2, %r1};": [M, M, 7, 0],
    "mov.b32 {%s.x, %s.y}, %ntid.x; mov.v2.b16 {%s.z, %s.w}, {%s.y, %s.x}; st.v4.b16 [%r0], %s;": [1, 0x10000],
    "mov.v2.f32 {%f1, %f2}, {0f3F800000, 0f40000000}; st.v2.f32 [%r0], {%f2, %f1};": [0x40000000, 0x3F800000],
    "mov.v2.u32 %c, {8, 9}; setp.eq.u32 %p, %x1, 0; @%p mov.v2.u32 %c, {0, 0}; st.v2.u32 [%r0], %c;": [8, 9],
}


@pytest.mark.parametrize("body", CASES)
def test_what_the_elements_hold(body: str) -> None:
    out = np.zeros(len(CASES[body]), np.uint32)
    result = simulate(parse(module(body)), args=[out], grid=1, block=1)
    assert not result.findings
    assert out.tolist() == CASES[body]


REFUSED = {
    "mov.v2.u32 %c, 5;": "`5` should be a vector of 2 elements in braces",
    "mov.v2.u64 %w, %r1;": "`%r1` should be a vector of 2 elements in braces",
    "mov.v2.u32 %c, {%x1};": "`{%x1}` has 1 element, 2 are wanted",
    "mov.v4.u64 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, %r3};": "the modifiers of `mov.v4.u64` do not go together",
    "mov.v2.u32 {%x1, %x2}, {%x1, _};": "`{%x1, _}`: `_` takes a result, it cannot be read",
    "mov.v4.u32 {%x1, %x2, %x3, %x4}, %tid;": "`%tid` is a special register, name its elements in braces: `%tid.x`",
    "mov.u32 %x1, %c.z;": "`%c.z`: a vector register with 2 elements has no element `z`",
    "mov.b32 %x1, %c;": "`%c` is a vector register, a scalar is wanted",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_refused(body: str) -> None:
    with pytest.raises(PtxError) as caught:
        simulate(parse(module(body), "k.ptx"), args=[np.zeros(4, np.uint32)], grid=1, block=1)
    assert str(caught.value).splitlines()[0].partition(": error: ")[2] == REFUSED[body]
