"""One lane of a warp waits for another CTA while the others wait for it at a barrier: that is no divergence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsmith.simulator import simulate

ORDER = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 lock, .param .u64 out)
{
 .reg .b32 %r<9>; .reg .b64 %l, %o; .reg .pred %p, %q;
 ld.param.u64 %l, [lock]; ld.param.u64 %o, [out];
 mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; setp.ne.u32 %p, %r1, 0;
 @%p bra MEET;
TURN: ld.acquire.gpu.global.u32 %r3, [%l]; setp.ne.u32 %q, %r3, %r2; @%q bra TURN;
MEET: COLLECTIVE;
 @%p bra OUT;
 ld.global.u32 %r4, [%o]; mad.lo.u32 %r4, %r4, 10, %r2; st.global.u32 [%o], %r4;
 red.release.gpu.global.add.u32 [%l], 1;
OUT: ret;
}"""


@pytest.mark.parametrize("meet", ["bar.sync 0", "bar.warp.sync -1", "shfl.sync.idx.b32 %r5, %r1, 0, 31, -1"])
@pytest.mark.parametrize("threads", [32, 96])
@pytest.mark.parametrize("schedule", [{}, *({"schedule": "random", "seed": s} for s in range(3)), {"schedule": "adversarial"}])
def test_ctas_that_take_turns_behind_a_lock(meet: str, threads: int, schedule: dict[str, Any]) -> None:
    lock, out = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    result = simulate(ORDER.replace("COLLECTIVE", meet), grid=5, block=threads, args=[lock, out], **schedule)
    assert (result.completed, result.findings) == (True, [])
    assert out[0] == 1234


def test_a_lane_that_never_comes_is_named() -> None:
    """It has branched away, in one CTA of two that are held together."""
    text = ORDER.replace("TURN:", "setp.eq.u32 %q, %r2, 1; @%q bra OUT;\nTURN:").replace("COLLECTIVE", "bar.warp.sync -1")
    text = text.replace("OUT: ret;", "OUT: bar.sync 1; ret;").replace("%r3, %r2;", "%r3, 0;")
    result = simulate(text, grid=2, block=32, args=[np.zeros(1, np.uint32), np.zeros(1, np.uint32)])
    assert [(f.kind, f.threads) for f in result.findings][:1] == [("divergent-collective", "cta (1,0,0) warp 0 lanes 1-31")]
