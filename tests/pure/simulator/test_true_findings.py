"""Findings that look false and are not, each beside the program that has the missing edge (docs/design/checker.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsmith.simulator import simulate

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 out, .param .u32 rows)
{
 .reg .b32 %r<9>; .reg .b64 %a, %o, %d; .reg .pred %p, %q;
 .shared .align 16 .b8 tile[1024];
 ld.param.u64 %a, [a]; ld.param.u64 %o, [out]; ld.param.u32 %r3, [rows];
 mov.u32 %r1, %tid.x; mul.wide.u32 %d, %r1, 16; add.u64 %a, %a, %d; add.u64 %o, %o, %d;
 cvt.u32.u64 %r2, %d; mov.u32 %r4, tile; add.u32 %r2, %r2, %r4;
"""


def run(body: str) -> tuple[Any, list[str], np.ndarray]:
    text, out = HEAD + body + " ret;\n}", np.zeros(256, np.uint32)
    result = simulate(text, grid=1, block=64, args=[np.arange(256, dtype=np.uint32), out, np.uint32(48)])
    assert result.completed
    found = [(f.kind, text.splitlines()[f.where.line - 1].strip()) for f in result.findings if f.where is not None]
    return found, text.splitlines(), out


@pytest.mark.parametrize("ordered", [False, True])
def test_a_value_fetched_ahead_and_never_used_races_with_the_reduction(ordered: bool) -> None:
    """Marlin's last round fetches the next fragments; another warp's partial sums go to the same bytes."""
    found, _, out = run(f"""
 ld.global.v4.u32 {{%r5, %r6, %r7, %r8}}, [%a];
 st.shared.v4.u32 [%r2], {{%r5, %r6, %r7, %r8}};
 bar.sync 0;
 ld.shared.u32 %r8, [%r2];  // ahead, of a next stage that does not come
 {"bar.sync 0;" if ordered else ""}
 xor.b32 %r2, %r2, 512;
 st.shared.u32 [%r2], %r5;
 bar.sync 0;
 ld.shared.u32 %r5, [%r2];
 st.global.u32 [%o], %r5;
""")
    assert found == ([] if ordered else [("shared-race", "st.shared.u32 [%r2], %r5;")])
    assert out[::4].tolist() == list(range(0, 256, 4))  # right in both


@pytest.mark.parametrize("filled", [False, True])
def test_rows_that_were_never_copied_reach_a_scratch_array(filled: bool) -> None:
    """Marlin's A has rows that no `cp.async` fills; their sums go to global memory, where nobody reads them."""
    copy = "selp.u32 %r5, 16, 0, %p; cp.async.cg.shared.global [%r2], [%a], 16, %r5;"
    found, *_ = run(f"""
 setp.lt.u32 %p, %r1, %r3;
 {copy if filled else "@%p cp.async.cg.shared.global [%r2], [%a], 16;"}
 cp.async.commit_group; cp.async.wait_group 0;
 bar.sync 0;
 ld.shared.v4.u32 {{%r5, %r6, %r7, %r8}}, [%r2];
 add.u32 %r5, %r5, %r6;
 st.global.u32 [%o], %r5;
""")
    assert found == ([] if filled else [("uninitialised-read", "st.global.u32 [%o], %r5;")])
