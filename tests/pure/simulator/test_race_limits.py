"""What bounds the checker of races: the clocks' range, exactness to the byte, memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpsmith.simulator import engine, simulate
from warpsmith.simulator.check import races

KERNELS = Path(__file__).parent / "mutants" / "kernels"
HALVES = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .b16 %h<3>; .reg .pred %p<3>;
.shared .align 4 .b8 tile[256];
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile; STEP
cvt.u16.u32 %h1, %r1; st.shared.b16 [%r4], %h1;
bar.sync 0;
shl.b32 %r5, %r1, 2; add.u32 %r6, %r2, %r5; setp.gt.u32 %p1, %r1, 31; @%p1 ret;
ld.shared.b32 %r7, [%r6]; cvt.u64.u32 %rd2, %r5; add.s64 %rd1, %rd1, %rd2; st.global.b32 [%rd1], %r7;
ret; }"""


def run_pipeline(**options: Any) -> Any:
    words = np.arange(512, dtype=np.uint32)
    text = (KERNELS / "pipeline.ptx").read_text()
    return simulate(text, grid=1, block=160, args=[words, np.zeros(128, np.uint32)], **options)


def test_a_launch_that_synchronises_too_often_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "LATEST", 8)
    result = run_pipeline()
    assert (result.completed, result.findings) == (True, [])
    assert result.fidelity.notes["races"] == ("not modelled", "from some point on: the launch synchronises too often")


def test_global_memory_too_large_to_be_followed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(races, "fits", lambda size: size < 1 << 10)
    assert run_pipeline().fidelity.notes["races on global memory"][0] == "not modelled"


def test_neighbouring_halves_are_no_race() -> None:
    text = HALVES.replace("STEP", "shl.b32 %r3, %r1, 1; add.u32 %r4, %r2, %r3;")
    out = np.zeros(32, np.uint32)
    result = simulate(text, grid=1, block=64, args=[out])
    assert [str(f) for f in result.findings] == []
    assert (out.view(np.uint16) == np.arange(64)).all()


def test_one_half_of_two_threads_is_a_race() -> None:
    text = HALVES.replace("STEP", "shr.u32 %r3, %r1, 1; shl.b32 %r3, %r3, 2; add.u32 %r4, %r2, %r3;")
    result = simulate(text, grid=1, block=64, args=[np.zeros(32, np.uint32)])
    assert result.findings[0].kind == "shared-race"


def test_one_value_of_many_threads_is_no_race() -> None:
    text = HALVES.replace("STEP", "and.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;")
    text = text.replace("cvt.u16.u32 %h1, %r1", "mov.u16 %h1, 7").replace("%r1, 31; @%p1 ret", "%r1, 0; @%p1 ret")
    result = simulate(text, grid=1, block=64, args=[np.zeros(32, np.uint32)])
    assert [f.kind for f in result.findings] == []
