"""Straight-line code of any length is prepared in pieces, and does what it does in one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsmith.simulator import engine, lower_function, simulate

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .b32 %r<12>; .reg .b64 %d<4>; .reg .pred %p<2>; .shared .align 4 .b8 s[128];
ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
mov.u32 %r2, s; mul.lo.u32 %r3, %r1, 4; add.u32 %r2, %r2, %r3; mov.u32 %r4, 1; setp.lt.u32 %p1, %r1, 7;
"""
STEPS = (
    "mad.lo.u32 %r4, %r4, 5, %r1;",
    "st.shared.u32 [%r2], %r4;",
    "xor.b32 %r5, %r4, 77;",
    "@%p1 add.u32 %r5, %r5, 3;",
    "ld.shared.u32 %r6, [%r2];",
    "shfl.sync.bfly.b32 %r7, %r6, 1, 31, -1;",
    "add.u32 %r4, %r7, %r5;",
)
TAIL = "st.global.u32 [%d1], %r4; ret; }\n"


def straight(count: int) -> str:
    return HEAD + "\n".join(STEPS[i % len(STEPS)] for i in range(count)) + "\n" + TAIL


def reference(count: int) -> np.ndarray[Any, Any]:
    lane = np.arange(32, dtype=np.uint32)
    r4 = np.ones(32, np.uint32)
    r5 = r6 = r7 = word = np.zeros(32, np.uint32)
    for i in range(count):
        match i % len(STEPS):
            case 0:
                r4 = r4 * np.uint32(5) + lane
            case 1:
                word = r4
            case 2:
                r5 = r4 ^ np.uint32(77)
            case 3:
                r5 = np.where(lane < 7, r5 + np.uint32(3), r5)
            case 4:
                r6 = word
            case 5:
                r7 = r6[lane ^ 1]
            case _:
                r4 = r7 + r5
    return r4


@pytest.mark.parametrize("longest", [1, 3, 2048])
def test_pieces_do_what_the_whole_does(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lower_function, "LONGEST", longest)
    out = np.zeros(32, np.uint32)
    result = simulate(straight(350), grid=1, block=32, args=[out])
    assert [str(f) for f in result.findings] == []
    assert (out == reference(350)).all()


def test_no_block_is_much_longer_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    prepare = engine.Engine.__init__

    def watched(self: engine.Engine, *args: Any, **options: Any) -> None:
        prepare(self, *args, **options)
        lengths.extend(len(b.operations) for b in self.blocks)

    monkeypatch.setattr(engine.Engine, "__init__", watched)
    out = np.zeros(32, np.uint32)
    assert simulate(straight(5000), grid=1, block=32, args=[out], check=False).completed
    assert (out == reference(5000)).all()
    assert len(lengths) > 2
    assert max(lengths) <= lower_function.LONGEST + 2
