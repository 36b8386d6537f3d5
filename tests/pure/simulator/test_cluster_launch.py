"""Work stealing between clusters: each CTA goes on with clusters that have not started (PTX ISA 9.7.15.18)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsmith.base.device import DeviceModel
from warpsmith.simulator import simulate

TWO = DeviceModel("Two", "sm_100", 2, 228 << 10, 227 << 10, threads_per_multiprocessor=32)
HEAD = ".version 8.7\n.target sm_100a\n.address_size 64\n"
KERNEL = (
    HEAD
    + """
.visible .entry k(.param .u64 out) .reqntid 32
{
 .reg .b32 %r<20>; .reg .b64 %rd<8>; .reg .pred %p<8>; .reg .b128 %q<2>;
 .shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar;
 mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r10, %ctaid.x;
 mov.u32 %r8, 0; ld.param.u64 %rd1, [out];
 @%p1 bra READY;
 mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster;
READY:
 MEET
WORK:
 @%p1 bra ASKED;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
 ASK
ASKED:
 mov.u32 %r4, %nctaid.x; mad.lo.u32 %r5, %r3, %r4, %r2; mul.wide.u32 %rd2, %r5, 4; add.u64 %rd3, %rd1, %rd2;
 @%p1 bra WAIT;
 add.u32 %r6, %r10, 1; st.global.b32 [%rd3], %r6;
WAIT:
 mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], %r8;
 @!%p2 bra WAIT;
 xor.b32 %r8, %r8, 1;
 ld.shared.b128 %q1, [answer];
 clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1;
 @!%p3 bra DONE;
 clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r2, %r3, _, _}, %q1;
 RANK
 fence.proxy.async.shared::cta;
 MEET
 bra WORK;
DONE:
 ret;
}
"""
)
ONE = " clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [answer], [bar];"
PAIR = (
    " mov.u32 %r9, %cluster_ctarank; setp.eq.u32 %p4, %r9, 0;\n"
    " @%p4 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 "
    "[answer], [bar];"
)
CLUSTER = "barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;"
RANK = "mov.u32 %r9, %cluster_ctarank; add.u32 %r2, %r2, %r9;"


def text(ask: str, meet: str, rank: str) -> str:
    return KERNEL.replace("ASK\n", ask + "\n").replace("MEET", meet).replace(" RANK\n", f" {rank}\n")


@pytest.mark.parametrize("options", [{}, {"schedule": "random", "seed": 5}, {"schedule": "adversarial"}])
def test_every_cluster_is_worked_on_once(options: dict[str, Any]) -> None:
    out = np.zeros(12, np.uint32)
    r = simulate(text(ONE, "bar.sync 0;", ""), grid=(4, 3, 1), block=32, args=[out], device=TWO, **options)
    assert r.completed
    assert not r.findings, str(r)
    assert (out > 0).all()
    assert set(out.tolist()) == {1, 2}  # the two CTAs that started have done it all


def test_clusters_of_two_are_answered_together() -> None:
    out = np.zeros(8, np.uint32)
    r = simulate(
        text(PAIR, CLUSTER, RANK), grid=(8, 1, 1), cluster=(2, 1, 1), block=32, args=[out], device=TWO
    )  # fmt: skip
    assert r.completed
    assert not r.findings, str(r)
    assert out.tolist() == [1, 2] * 4


def test_nothing_is_cancelled_where_all_have_started() -> None:
    out = np.zeros(12, np.uint32)
    r = simulate(text(ONE, "bar.sync 0;", ""), grid=(4, 3, 1), block=32, args=[out])
    assert r.completed
    assert out.tolist() == [1, 2, 3, 4] * 3
