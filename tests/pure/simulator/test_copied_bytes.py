"""Copies of memory whose bytes nobody has written in part: padding goes with them, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.simulator import simulate


def found(body: str, block: int = 4) -> tuple[list[str], np.ndarray]:
    text = f""".version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {{
.reg .u64 %r<9>; .reg .u32 %x<9>; .reg .u16 %h<5>; .reg .pred %p; .local .align 16 .b8 a[32]; .local .align 16 .b8 b[32];
ld.param.u64 %r0, [p]; mov.u32 %x0, %tid.x; mul.wide.u32 %r1, %x0, 8; add.u64 %r0, %r0, %r1; mov.u16 %h0, 7;
setp.ne.u32 %p, %x0, 0;
{body}
ret;
}}
"""
    out = np.zeros((block, 2), np.uint32)
    result = simulate(parse(text, "k.ptx"), args=[out], grid=1, block=block)
    return [f"{f.kind} {f.message}" for f in result.findings], out


STORED = (
    "uninitialised-read `st.global.{}`: a value that comes from memory or registers nobody wrote is stored to global memory"
)
FIRST = "st.local.u32 [a], %x0; st.local.u16 [a+4], %h0;"  # the last two of eight bytes are padding

DEFINED = {
    "words": f"{FIRST} ld.local.u64 %r2, [a]; st.local.u64 [b], %r2; ld.local.u16 %h1, [b+4]; st.global.u16 [%r0], %h1;",
    "a vector": f"{FIRST} st.local.u64 [a+8], %r1; ld.local.v2.u64 {{%r2, %r3}}, [a]; st.local.v2.u64 [b], {{%r3, %r2}};"
    "ld.local.u64 %r4, [b]; ld.local.u16 %h1, [b+12]; st.global.u16 [%r0], %h1;",
    "a guarded store": f"{FIRST} st.local.u64 [b], %r1; ld.local.u64 %r2, [a]; @%p st.local.u64 [b], %r2;"
    "ld.local.u16 %h1, [b+4]; st.global.u16 [%r0], %h1;",
    "moved": f"{FIRST} ld.local.u64 %r2, [a]; shl.b64 %r2, %r2, 16; st.local.u64 [b], %r2; ld.local.u16 %h1, [b+6];"
    "st.global.u16 [%r0], %h1;",
    "twice": f"{FIRST} ld.local.u64 %r2, [a]; st.local.u64 [b], %r2; ld.local.u64 %r2, [b]; st.local.u64 [b+8], %r2;"
    "ld.local.u16 %h1, [b+12]; st.global.u16 [%r0], %h1;",
}


@pytest.mark.parametrize("body", DEFINED.values(), ids=DEFINED)
def test_what_was_written_is_defined(body: str) -> None:
    findings, out = found(body)
    assert findings == []
    assert out.any()


UNDEFINED = {
    "the padding": (
        f"{FIRST} ld.local.u64 %r2, [a]; st.local.u64 [b], %r2; ld.local.u16 %h1, [b+6]; st.global.u16 [%r0], %h1;",
        STORED.format("u16"),
    ),
    "to global memory": (f"{FIRST} ld.local.u64 %r2, [a]; st.global.u64 [%r0], %r2;", STORED.format("u64")),
    "changed in between": (
        f"{FIRST} ld.local.u64 %r2, [a]; shr.u64 %r2, %r2, 16; st.local.u64 [b], %r2; ld.local.u16 %h1, [b+4];"
        "st.global.u16 [%r0], %h1;",
        STORED.format("u16"),
    ),
    "loaded under a guard": (
        f"{FIRST} ld.local.u64 %r2, [a]; @%p ld.local.u64 %r2, [a+16]; st.local.u64 [b], %r2; ld.local.u16 %h1, [b+4];"
        "st.global.u16 [%r0], %h1;",
        STORED.format("u16"),
    ),
    "older flags": (
        f"{FIRST} ld.local.u64 %r2, [a]; ld.local.u64 %r2, [a+16]; st.local.u64 [b], %r2; ld.local.u16 %h1, [b+4];"
        "st.global.u16 [%r0], %h1;",
        STORED.format("u16"),
    ),
    "narrower": (
        f"{FIRST} ld.local.u64 %r2, [a]; cvt.u32.u64 %x1, %r2; st.local.u32 [b], %x1; ld.local.u16 %h1, [b+4];"
        "st.global.u16 [%r0], %h1;",
        STORED.format("u16"),
    ),
}


@pytest.mark.parametrize(("body", "finding"), UNDEFINED.values(), ids=UNDEFINED)
def test_what_was_not_written_is_undefined(body: str, finding: str) -> None:
    assert found(body)[0][:1] == [finding]
