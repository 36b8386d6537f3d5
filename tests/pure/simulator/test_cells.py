"""The smallest write to shared memory that a program may make, read off its instructions."""

from __future__ import annotations

from typing import Any

import pytest

from warpsmith.simulator import simulate
from warpsmith.simulator.check import cells, races

WRITES = {
    "st.shared.b8 [%r2], %h1;": 1,
    "st.shared.v2.b16 [%r2], {%h1, %h2};": 4,
    "st.shared.v4.b32 [%r2], {%r3, %r4, %r5, %r6};": 16,
    "st.volatile.shared.u16 [%r2], %h1;": 2,
    "st.b16 [%rd1], %h1;": 2,
    "st.global.b8 [%rd1], %h1;": 16,
    "st.local.b8 [%rd1], %h1;": 16,
    "ld.shared.b8 %h1, [%r2];": 16,
    "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r3}, [%r2];": 16,
    "atom.shared.add.u32 %r3, [%r2], 1;": 4,
    "atom.shared.cas.b64 %rd2, [%r2], %rd3, %rd4;": 8,
    "red.shared.add.noftz.f16x2 [%r2], %r3;": 4,
    "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r3};": 4,
    "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r2], {%r3};": 2,
    "wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%r2], {%r3, %r4, %r5, %r6};": 2,
    "wmma.load.c.sync.aligned.row.m16n16k16.shared.f16 {%r3, %r4, %r5, %r6}, [%r2];": 16,
    "cp.async.ca.shared.global [%r2], [%rd1], 4;": 4,
    "cp.async.ca.shared.global [%r2], [%rd1], 8, 4;": 8,
    "cp.async.cg.shared.global [%r2], [%rd1], 16;": 16,
    "cp.async.wait_all;": 16,
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 16, [%r3];": 16,
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r2], %rd1, [%r3];": 8,
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r2], {%r3, %r4, %r5, %r6}, [%r7];": 16,
}


@pytest.mark.parametrize("instruction", WRITES)
def test_smallest_write(instruction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []

    def watched(program: Any) -> int:
        found.append(cells.smallest_write(program))
        return found[-1]

    monkeypatch.setattr(races, "smallest_write", watched)
    text = (
        ".version 8.6 .target sm_90a .address_size 64 .visible .entry k() { .reg .b32 %r<9>; .reg .b64 %rd<9>; "
        f".reg .b16 %h<3>; .shared .align 16 .b8 s[64]; bra DONE; {instruction} DONE: ret; }}"
    )
    simulate(text, grid=1, block=32, args=[])
    assert found == [WRITES[instruction]]
