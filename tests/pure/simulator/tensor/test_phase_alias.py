"""Why `phase-alias` is reported at a hang only: two programs that no rule about one wait tells apart (docs/design/checker.md).

Barrier FULL of one stage, which warp 2 fills eight times, phases 0 … 7. In `TURNS` warps 0 and 1 take two fills each in turn:
warp 0 waits for phases 0, 1, 4, 5, and when it waits for 4, phase 2 has the same parity, has completed, and it has never seen
it. In `LATE` warp 0 means every phase and nothing keeps warp 2 from filling twice before it looks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

HEAD = """ .shared .align 8 .b64 full; .shared .align 8 .b64 free; .shared .align 8 .b64 turn[2]; .shared .align 4 .b32 word;
 mov.u32 %r1, full; mov.u32 %r2, free; mov.u32 %r3, turn; shr.u32 %r4, %t, 5; and.b32 %r5, %t, 31; setp.ne.u32 %p1, %t, 0;
 @!%p1 mbarrier.init.shared::cta.b64 [%r1], 1;
 @!%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
 @!%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
 @!%p1 mbarrier.init.shared::cta.b64 [%r3+8], 1;
 bar.sync 0;
 setp.ne.u32 %p2, %r5, 0; @%p2 ret;
 mov.u32 %r10, 0; setp.eq.u32 %p3, %r4, 2; @%p3 bra FILL;
"""
TURNS = (
    HEAD
    + """ mul.lo.u32 %r10, %r4, 2; mov.u32 %r20, 0; shl.b32 %r6, %r4, 3; add.u32 %r6, %r3, %r6;
 xor.b32 %r7, %r4, 1; shl.b32 %r7, %r7, 3; add.u32 %r7, %r3, %r7;
ROUND: setp.eq.u32 %p4, %r10, 0; @%p4 bra MINE;
 add.u32 %r22, %r20, 1; sub.u32 %r22, %r22, %r4; and.b32 %r22, %r22, 1;
T: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r6], %r22; @!%p5 bra T;
MINE: mov.u32 %r11, 0;
TAKE: and.b32 %r12, %r10, 1;
W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r1], %r12; @!%p5 bra W;
 ld.shared.u32 %r13, [word]; mul.wide.u32 %rd1, %r10, 4; add.u64 %rd2, %out, %rd1; st.global.u32 [%rd2], %r13;
 mbarrier.arrive.shared::cta.b64 _, [%r2];
 add.u32 %r10, %r10, 1; add.u32 %r11, %r11, 1; setp.lt.u32 %p6, %r11, 2; @%p6 bra TAKE;
 mbarrier.arrive.shared::cta.b64 _, [%r7];
 add.u32 %r10, %r10, 2; add.u32 %r20, %r20, 1; setp.lt.u32 %p6, %r10, 8; @%p6 bra ROUND; ret;
"""
)
LATE = (
    HEAD
    + """ setp.ne.u32 %p4, %r4, 0; @%p4 ret;
TAKE: and.b32 %r12, %r10, 1;
W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r1], %r12; @!%p5 bra W;
 add.u32 %r10, %r10, 1; setp.lt.u32 %p6, %r10, 8; @%p6 bra TAKE; ret;
"""
)
FREE = """FREE: and.b32 %r12, %r10, 1; xor.b32 %r12, %r12, 1;
V: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r2], %r12; @!%p5 bra V;
"""
FILL = """ add.u32 %r14, %r10, 100; st.shared.u32 [word], %r14; mbarrier.arrive.shared::cta.b64 _, [%r1];
 add.u32 %r10, %r10, 1; setp.lt.u32 %p6, %r10, 8; @%p6 bra {again};
"""
SCHEDULES = [("fair", 0), ("adversarial", 0), ("adversarial", 1), ("adversarial", 2), *[("random", seed) for seed in range(12)]]


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
def test_consumers_that_take_turns_skip_phases_of_their_parity(run: Any, schedule: str, seed: int) -> None:
    out = np.zeros(32, np.uint32)
    result = run(TURNS + "FILL:\n" + FREE + FILL.format(again="FREE"), out, block=96, schedule=schedule, seed=seed)
    assert [str(f) for f in result.findings] == []
    assert out[:8].tolist() == list(range(100, 108))


def test_a_waiter_that_comes_too_late_hangs_under_some_schedule_and_is_named(run: Any) -> None:
    found: set[str] = set()
    for schedule, seed in SCHEDULES:
        result = run(
            LATE + "FILL:\n" + FILL.format(again="FILL"), np.zeros(32, np.uint32), block=96, schedule=schedule, seed=seed
        )
        found |= {f.kind for f in result.findings}
    assert "phase-alias" in found
    assert found <= {"phase-alias", "deadlock"}  # after the last fill there is no phase to take for another
