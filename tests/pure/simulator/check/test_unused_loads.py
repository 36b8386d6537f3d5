"""A load from global memory whose value its thread does not use is no party of a race; any other is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsmith.simulator import SimulationResult, simulate

KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 other) {{
.reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<9>; .reg .f32 %f<9>;
.shared .b32 scratch[128];
ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [other];
mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd4, %rd1, %rd3; mul.wide.u32 %rd5, %r1, 4;
add.u64 %rd6, %rd2, %rd5; setp.lt.u32 %p1, %r1, 32; mov.u32 %r9, scratch; mad.lo.u32 %r9, %r1, 4, %r9;
{}
ret; }}"""
LOAD = "ld.global.f32 %f1, [%rd4]; add.rn.f32 %f2, %f1, 0f3F800000;"
MINE = "@%p1 st.global.f32 [%rd4], %f2;"


USES = {
    "stored": "st.global.f32 [%rd6], %f2;",
    "stored by others": "@!%p1 st.global.f32 [%rd6], %f2;",
    "shared": "st.shared.f32 [%r9], %f1;",
    "branch": "setp.gt.f32 %p2, %f1, 0f00000000; @%p2 bra NEXT; nanosleep.u32 1; NEXT:",
    "guard": "setp.gt.f32 %p2, %f1, 0f00000000; @%p2 st.global.u32 [%rd6], %r1;",
    "vote": "setp.gt.f32 %p2, %f1, 0f00000000; vote.sync.ballot.b32 %r4, %p2, -1;",
    "shuffle": "shfl.sync.idx.b32 %r4, %f1, 0, 31, -1;",
    "reduced": "red.global.add.f32 [%rd6], %f1;",
    "strong": "ld.volatile.global.f32 %f3, [%rd4];",
    "for nothing": "ld.global.f32 %f3, [%rd4];",
    "address": "cvt.rzi.u32.f32 %r4, %f1; and.b32 %r4, %r4, 3; mul.wide.u32 %rd7, %r4, 4; add.u64 %rd8, %rd2, %rd7;"
    " ld.global.u32 %r5, [%rd8];",
}


def run(body: str, order: dict[str, Any]) -> tuple[SimulationResult, np.ndarray]:
    """Four warps of which the first stores what all have loaded: 32 floats."""
    out, other = np.arange(32, dtype=np.float32), np.zeros(128, np.float32)
    return simulate(KERNEL.format(body), grid=1, block=128, args=[out, other], **order), out


ORDERS: list[dict[str, Any]] = [{}, {"schedule": "random", "seed": 1}, {"schedule": "adversarial"}]


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize(
    "body",
    [
        LOAD + MINE,
        LOAD + "@!%p1 bra END;" + MINE.replace("@%p1 ", "") + "END:",
        "ld.global.f32 %f1, [%rd4]; @!%p1 bra END; add.rn.f32 %f2, %f1, 0f3F800000; st.global.f32 [%rd4], %f2; END:",
        "mov.u32 %r3, 0; MORE:" + LOAD + MINE + "add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 3; @%p2 bra MORE;",
    ],
    ids=["guard", "branch", "hoisted", "loop"],
)
def test_what_a_thread_does_not_use_races_with_nothing(body: str, order: dict[str, Any]):
    result, out = run(body, order)
    assert not result.findings, str(result)
    assert np.array_equal(out, np.arange(32) + (3 if "MORE" in body else 1))


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("first", [True, False], ids=["use-first", "store-first"])
def test_what_a_thread_uses_races(use: str, first: bool, order: dict[str, Any]):
    result, _ = run(LOAD + (use + MINE if first else MINE + use), order)
    assert "global-race" in [f.kind for f in result.findings], str(result)
    assert all(f.severity == "error" for f in result.findings)


def test_the_finding_names_both_parties():
    result, _ = run(LOAD + MINE + "@!%p1 st.global.f32 [%rd6], %f2;", {})
    (found,) = result.findings
    assert found.message == (
        "`st.global.f32` writes global address 0x700000000100, which cta (0,0,0) warp 3 lane 0 has read; nothing orders the two"
    )
    assert [r.message for r in found.related] == ["`ld.global.f32` by cta (0,0,0) warp 3 lane 0"]
