"""Races in global memory between CTAs that execute one instruction together."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith.simulator import simulate

LAST_ONE_WRITES = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .b64 %rd<3>; .reg .b32 %r<6>; .reg .pred %p<3>;
ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2;
ld.global.u32 %r2, [%rd1+64]; st.global.u32 [%rd2+128], %r2;
fence.acq_rel.gpu;
atom.relaxed.gpu.global.add.u32 %r3, [%rd1], 1;
mov.u32 %r4, %nctaid.x; sub.u32 %r4, %r4, 1; setp.ne.u32 %p1, %r3, %r4; @%p1 ret;
ACQUIRE
st.global.u32 [%rd1+64], 7;
ret; }"""
"""All CTAs read a word and count themselves; the last one to come writes it, as FlashInfer's radix top-k clears its state."""


def kinds(acquire: str, ctas: int, seed: int | None) -> list[str]:
    order = {} if seed is None else {"schedule": "random", "seed": seed}
    words = np.zeros(64, np.uint32)
    result = simulate(LAST_ONE_WRITES.replace("ACQUIRE", acquire), grid=ctas, block=1, args=[words], **order)
    assert words[16] == 7
    return [f.kind for f in result.findings]


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("ctas", [2, 3, 5])
def test_the_last_cta_writes_what_all_have_read(ctas: int, seed: int | None) -> None:
    assert kinds("", ctas, seed) == ["global-race"]
    assert kinds("fence.acq_rel.gpu;", ctas, seed) == []
