"""Bytes nobody wrote: through ldmatrix and wgmma into results, row by row and column by column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsmith.simulator.matrix_descriptor import MatrixDescriptor, encode


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_ldmatrix_carries_undefined_bytes(run: Any, trans: str) -> None:
    """Rows 0-6 are written; the result of lanes that see row 7 is undefined, and only storing those is a fault."""
    body = f""" .shared .align 16 .b8 buf[128]; mov.u32 %r1, buf; shl.b32 %r2, %t, 4;
 and.b32 %r3, %r2, 127; add.u32 %r4, %r1, %r3;
 setp.lt.u32 %p1, %t, 7; mov.b32 %r5, 0; @%p1 st.shared.v4.b32 [%r4], {{%r5,%r5,%r5,%r5}}; bar.warp.sync 0xffffffff;
 ldmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 {{%r9}}, [%r4];
 shr.u32 %r6, %t, 2; and.b32 %r7, %t, 3; setp.CONDITION; mul.wide.u32 %rd1, %t, 4; add.u64 %rd2, %out, %rd1;
 @%p2 st.global.b32 [%rd2], %r9;"""
    seen = "lt.u32 %p2, %r7, 3" if trans else "lt.u32 %p2, %r6, 7"
    r = run(body.replace("CONDITION", seen), np.zeros(32, np.uint32))
    assert [str(f) for f in r.findings] == []
    r = run(body.replace("CONDITION", "lt.u32 %p2, %t, 32"), np.zeros(32, np.uint32))
    assert [f.kind for f in r.findings] == ["uninitialised-read"]


@pytest.mark.parametrize(("written", "row_limit"), [(1792, 56), (2048, 64), (0, 0)])
def test_wgmma_carries_undefined_rows(run: Any, written: int, row_limit: int) -> None:
    """A is written up to `written` bytes (32 a row, 256 a group of eight rows); results of later rows are undefined."""
    d = encode(MatrixDescriptor(0, 128, 256))
    body = f""" .shared .align 1024 .b8 a[2048]; .shared .align 1024 .b8 b[256];
 mov.u32 %r1, a; mov.u32 %r2, b; shl.b32 %r3, %t, 4; add.u32 %r4, %r1, %r3; add.u32 %r5, %r2, %r3; mov.b32 %r6, 0;
 setp.lt.u32 %p1, %r3, {written}; @%p1 st.shared.v4.b32 [%r4], {{%r6,%r6,%r6,%r6}};
 setp.lt.u32 %p2, %t, 16; @%p2 st.shared.v4.b32 [%r5], {{%r6,%r6,%r6,%r6}};
 fence.proxy.async.shared::cta; bar.sync 0;
 shr.u32 %r1, %r1, 4; shr.u32 %r2, %r2, 4; cvt.u64.u32 %rd1, %r1; cvt.u64.u32 %rd2, %r2;
 or.b64 %rd1, %rd1, {d}; or.b64 %rd2, %rd2, {d}; setp.ne.u32 %p3, 0, 0;
 wgmma.fence.sync.aligned;
 wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0,%f1,%f2,%f3}}, %rd1, %rd2, %p3, 1, 1, 0, 0;
 wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
 shr.u32 %r10, %t, 5; shl.b32 %r10, %r10, 4; and.b32 %r11, %t, 31; shr.u32 %r11, %r11, 2; add.u32 %r10, %r10, %r11;
 mul.wide.u32 %rd5, %t, 16; add.u64 %rd6, %out, %rd5;
 setp.lt.u32 %p4, %r10, LIMIT; @%p4 st.global.v2.f32 [%rd6], {{%f0,%f1}};
 add.u32 %r10, %r10, 8; setp.lt.u32 %p5, %r10, LIMIT; @%p5 st.global.v2.f32 [%rd6+8], {{%f2,%f3}};"""
    r = run(body.replace("LIMIT", str(row_limit)), np.zeros((128, 4), np.float32), block=128)
    assert [str(f) for f in r.findings] == []
    r = run(body.replace("LIMIT", str(row_limit + 8)), np.zeros((128, 4), np.float32), block=128)
    assert {f.kind for f in r.findings} == (set() if row_limit == 64 else {"uninitialised-read"})
