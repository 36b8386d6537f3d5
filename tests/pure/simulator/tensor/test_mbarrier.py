"""mbarrier: counting, phases, states, transactions, remote arrivals, and what goes wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsmith.simulator.mbarrier import MBarrier, MBarriers
from warpsmith.simulator.memory import RowMemory

BAR = " .shared .align 8 .b64 bar[4]; mov.u32 %r1, bar;\n"
INIT = (
    BAR
    + """ setp.ne.u32 %p1, %t, 0;
 @!%p1 mbarrier.init.shared::cta.b64 [%r1], {count};
 bar.sync 0;
"""
)
CLUSTER_INIT = (
    INIT.format(count=1)
    + " fence.mbarrier_init.release.cluster;\n barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
)
STORE = " mul.wide.u32 %rd1, %t, 4; add.u64 %out, %out, %rd1; st.global.b32 [%out], %r9;\n"


@given(st.integers(1, 5), st.lists(st.integers(1, 3), max_size=12))
def test_a_phase_completes_with_its_last_arrival(count: int, arrivals: list[int]) -> None:
    """Against a model that only adds up: phase = total arrivals / count while no arrival overshoots."""
    b = MBarrier(0, 0, 0, 0, count, count, None)
    total = 0
    for n in arrivals:
        n = min(n, b.pending)
        b.pending -= n
        b.settle()
        total += n
        assert (b.phase, b.pending) == (total // count, count - total % count)


def test_bytes_hold_a_phase_open() -> None:
    b = MBarrier(0, 0, 0, 0, 1, 1, None)
    b.tx, b.pending = 64, 0
    assert not b.settle()
    b.tx = 0
    assert b.settle()
    assert b.passed(0)
    assert not b.passed(1)


def test_a_fresh_barrier_counts_phase_minus_one_as_complete() -> None:
    b = MBarrier(0, 0, 0, 0, 1, 1, None)
    assert b.passed(1)
    assert not b.passed(0)
    assert (b.meant((0, 0), 1), b.meant((0, 0), 0)) == (-1, 0)
    b.observed[0, 0] = 0
    assert (b.meant((0, 0), 1), b.meant((0, 0), 0)) == (1, 2)


def test_overwritten_bytes_are_noticed() -> None:
    shared = RowMemory("shared", 1, 1024, 64)
    barriers = MBarriers(shared)
    b = barriers.init(1024, 0, 3, None)
    assert barriers.intact(b)
    shared.data[1027] ^= 1
    assert not barriers.intact(b)
    assert barriers.get(1024, 1) is None


def test_arrivals_of_a_block_and_the_state(run: Any) -> None:
    """32 threads arrive; each gets a state, whose pending counts run from 32 down to 1; all pass with their state."""
    body = (
        INIT.format(count=32)
        + """ mbarrier.arrive.shared::cta.b64 %rd5, [%r1];
 mbarrier.pending_count.b64 %r9, %rd5;
W: mbarrier.try_wait.shared::cta.b64 %p2, [%r1], %rd5;
 @!%p2 bra W;
"""
        + STORE
    )
    out = np.zeros(32, np.uint32)
    r = run(body, out)
    assert r.completed
    assert list(r.findings) == []
    assert sorted(out.tolist()) == list(range(1, 33))


def test_test_wait_does_not_wait(run: Any) -> None:
    body = (
        INIT.format(count=1)
        + """ mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 0; selp.b32 %r2, 1, 0, %p2;
 mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r1], 1; selp.b32 %r3, 2, 0, %p3;
 bar.sync 0;
 @!%p1 mbarrier.arrive.shared::cta.b64 _, [%r1];
 bar.sync 0;
 mbarrier.test_wait.parity.shared::cta.b64 %p4, [%r1], 0; selp.b32 %r4, 4, 0, %p4;
 add.u32 %r9, %r2, %r3; add.u32 %r9, %r9, %r4;
"""
        + STORE
    )
    out = np.zeros(32, np.uint32)
    r = run(body, out)
    assert r.completed
    assert set(out.tolist()) == {6}


def test_counts_drops_and_expectations(run: Any) -> None:
    """Count 3: arrive with 2, drop 1 (later phases expect 2), then a phase of 16 announced and completed bytes."""
    body = (
        INIT.format(count=3)
        + """ @%p1 bra W;
 mbarrier.arrive.shared::cta.b64 _, [%r1], 2;
 mbarrier.arrive_drop.shared::cta.b64 _, [%r1];
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
 @!%p2 bra W;
 bar.sync 0;
 @%p1 bra V;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;
 mbarrier.arrive.shared::cta.b64 _, [%r1];
 mbarrier.complete_tx.shared::cta.relaxed.cluster.b64 [%r1], 16;
V: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 1;
 @!%p2 bra V;
 mov.u32 %r9, 7;
"""
        + STORE
    )
    out = np.zeros(32, np.uint32)
    r = run(body, out)
    assert r.completed
    assert list(r.findings) == []
    assert set(out.tolist()) == {7}


def test_remote_arrivals_in_a_cluster(run: Any) -> None:
    """Every CTA of a cluster of 2 arrives at the barrier of both."""
    body = (
        INIT.format(count=64)
        + """ fence.mbarrier_init.release.cluster;
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
 mapa.shared::cluster.u32 %r5, %r1, 0; mapa.shared::cluster.u32 %r6, %r1, 1;
 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];
 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];
W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r1], 0;
 @!%p2 bra W;
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
 mov.u32 %r9, %ctaid.x; add.u32 %r9, %r9, 3; mul.wide.u32 %rd9, %r9, 128; add.u64 %out, %out, %rd9; sub.u64 %out, %out, 384;
"""
        + STORE
    )
    for seed in range(4):
        out = np.zeros((2, 32), np.uint32)
        r = run(body, out, grid=2, cluster=(2, 1, 1), schedule="random", seed=seed)
        assert r.completed, r.findings
        assert list(r.findings) == []
        assert (out == [[3] * 32, [4] * 32]).all()


WAIT = """W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
 @!%p2 bra W;
"""
ARRIVE = " @!%p1 mbarrier.arrive.shared::cta.b64 _, [%r1];"


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (
            BAR + " mbarrier.arrive.shared::cta.b64 _, [%r1];",
            "uninitialised-barrier",
            "arrives at mbarrier [0x400], on which no mbarrier.init has run",
        ),
        (BAR + WAIT, "uninitialised-barrier", "waits at mbarrier [0x400], on which no mbarrier.init has run"),
        (
            INIT.format(count=1) + " mov.b64 %rd5, 1; st.shared.b64 [%r1], %rd5; bar.sync 0;" + ARRIVE,
            "uninitialised-barrier",
            "arrives at mbarrier [0x400], whose 8 bytes were overwritten since mbarrier.init",
        ),
        (
            INIT.format(count=2) + ARRIVE + " @!%p1 mbarrier.init.shared::cta.b64 [%r1], 2;",
            "uninitialised-barrier",
            "mbarrier [0x400] is initialised again while in use: mbarrier [0x400] phase 0 lacks 1 of 2",
        ),
        (
            " mov.u32 %r9, 0;" + INIT.format(count="%r9"),
            "uninitialised-barrier",
            "mbarrier.init with a count of 0; 1 to 1048575 are possible",
        ),
        (
            INIT.format(count=1) + " mbarrier.arrive.shared::cta.b64 _, [%r1];",
            "over-arrival",
            "32 arrivals at mbarrier [0x400] in phase 0, which can take 1 of its 1 now",
        ),
        (
            INIT.format(count=4) + " @!%p1 mbarrier.arrive.shared::cta.b64 _, [%r1], 5;",
            "over-arrival",
            "5 arrivals at mbarrier [0x400] in phase 0, which can take 4 of its 4 now",
        ),
        (
            INIT.format(count=4) + " @!%p1 mbarrier.arrive.noComplete.shared::cta.b64 %rd5, [%r1], 4;",
            "over-arrival",
            "4 arrivals at mbarrier [0x400] in phase 0, which can take 3 of its 4 now",
        ),
        (
            INIT.format(count=1) + " @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64;\n" + WAIT,
            "tx-mismatch",
            "phase 0 of mbarrier [0x400] cannot complete: 64 bytes it expects never arrive",
        ),
        (
            INIT.format(count=1) + " @!%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 64;",
            "leftover",
            "cta (0,0,0) ended while mbarrier [0x400] in phase 0 still expects 64 bytes",
        ),
        (
            INIT.format(count=2) + " @!%p1 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 64;",
            "tx-mismatch",
            "cta (0,0,0) ended while mbarrier [0x400] in phase 0 got 64 bytes too many",
        ),
        (
            INIT.format(count=1) + ARRIVE + " bar.sync 0;" + ARRIVE + " bar.sync 0;\n" + WAIT,
            "phase-alias",
            "waits for parity 0 of mbarrier [0x400]: phase 0, which it means, has completed, "
            "and the barrier is in phase 2 of the same parity",
        ),
    ],
)
def test_faults_are_named(run: Any, body: str, kind: str, message: str) -> None:
    r = run(body, np.zeros(32, np.uint32))
    found = [f for f in r.findings if f.kind == kind]
    assert found, r.findings
    assert found[0].message.startswith(message)
    assert found[0].severity == "error"
    assert found[0].repair
    assert found[0].threads.startswith("cta (0,0,0)")
    assert found[0].where is not None


@pytest.mark.parametrize(("mask", "ranks"), [(0x1, {0}), (0xA, {1, 3}), (0xF, {0, 1, 2, 3})])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", ["arrive", "arrive, 1", "arrive.expect_tx", "arrive_drop", "arrive.relaxed.cluster"])
def test_an_arrival_reaches_the_same_offset_of_every_cta_of_its_mask(
    run: Any, mask: int, ranks: set[int], seed: int, form: str
) -> None:
    """9.7.15.16.16: bit r of the mask stands for the CTA of rank r; CTA 2 arrives, every CTA looks at its own barrier."""
    tx = "expect_tx" in form
    op, count = form.split(",", maxsplit=1)[0], ", 1" if "," in form else ""
    body = (
        CLUSTER_INIT
        + f""" mov.u32 %r3, %cluster_ctarank; setp.eq.u32 %p2, %r3, 2; setp.eq.u32 %p3, %t, 0; and.pred %p2, %p2, %p3;
 @!%p2 bra SENT;
 mbarrier.{op}.shared::cluster.multicast::cluster::32b.b64 _, [%r1]{", 16" if tx else count}, {mask};
 {f"mbarrier.complete_tx.shared::cluster.multicast::cluster::32b.b64 [%r1], 16, {mask};" if tx else ""}
SENT:
 mov.u32 %r4, {mask}; shr.u32 %r4, %r4, %r3; and.b32 %r4, %r4, 1; setp.eq.u32 %p4, %r4, 0; mov.u32 %r9, 0;
 @%p4 bra DONE;
W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r1], 0;
 @!%p5 bra W;
 mov.u32 %r9, 1;
DONE:
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
 mov.u32 %r5, %ctaid.x; shl.b32 %r5, %r5, 2; cvt.u64.u32 %rd2, %r5; add.u64 %rd3, %out, %rd2;
 @%p3 st.global.u32 [%rd3], %r9;
"""
    )
    out = np.full(4, 9, np.uint32)
    order = {"schedule": "random", "seed": seed} if seed else {}
    r = run(body, out, target="sm_107f", version="9.4", grid=4, cluster=(4, 1, 1), **order)
    assert [str(f) for f in r.findings] == []
    assert r.completed
    assert out.tolist() == [int(i in ranks) for i in range(4)]


def test_a_multicast_to_ctas_that_the_cluster_lacks_is_named(run: Any) -> None:
    body = INIT.format(count=1) + " mbarrier.expect_tx.shared::cluster.multicast::cluster::32b.b64 [%r1], 0, 3;"
    r = run(body, np.zeros(32, np.uint32), target="sm_107f", version="9.4")
    assert [(f.kind, f.message) for f in r.findings] == [
        ("out-of-bounds", "multicast mask 0x3 names CTAs that the cluster of 1 does not have")
    ]


@pytest.mark.parametrize("op", ["arrive", "expect_tx"])
@pytest.mark.parametrize("ordered", [False, True])
def test_a_multicast_needs_to_know_that_the_ctas_it_names_have_started(run: Any, op: str, ordered: bool) -> None:
    first, last = ("_, ", "") if op == "arrive" else ("", "0, ")
    body = CLUSTER_INIT if ordered else INIT.format(count=1)
    body += f""" mov.u32 %r3, %cluster_ctarank; setp.eq.u32 %p2, %r3, 0; setp.eq.u32 %p3, %t, 0; and.pred %p2, %p2, %p3;
 @%p2 mbarrier.{op}.shared::cluster.multicast::cluster::32b.b64 {first}[%r1], {last}2;
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
"""
    r = run(body, np.zeros(32, np.uint32), target="sm_107f", version="9.4", grid=2, cluster=(2, 1, 1))
    text = f"`mbarrier.{op}.shared::cluster.multicast::cluster::32b.b64` touches the shared memory of cta (1,0,0), and "
    text += "nothing says that this CTA has started"
    assert [f.kind for f in r.findings] == ([] if ordered else ["peer-lifetime", "uninitialised-barrier"])
    assert [f.message for f in r.findings][:1] == ([] if ordered else [text])


@pytest.mark.parametrize(("phase", "results", "want"), [
    ("parity.phase_type::conditional", "%p2", 1),
    ("parity.phase_type::conditional.acquire.cta", "%p2", 1),
    ("parity.phase_type::primary", "%p2|%p3", 1),
    ("parity.phase_type::primary", "%p2|%p3, %v", 1),
    ("phase_type::primary", "%p2|%p3, %v", 1),
])  # fmt: skip
@pytest.mark.parametrize("op", ["test_wait", "try_wait"])
def test_a_barrier_of_layout_v0_has_one_phase_and_reports_nothing(
    run: Any, op: str, phase: str, results: str, want: int
) -> None:
    """Its primary and conditional phases complete together; predicate and value of the report of a complete phase are zero."""
    which = "0" if "parity" in phase else "%rd5"
    body = (
        " .reg .b8 %v; mov.b16 %h2, 7; cvt.u8.u16 %v, %h2; setp.eq.u32 %p3, %t, %t;\n"
        + INIT.format(count=32)
        + f""" mbarrier.arrive.shared::cta.b64 %rd5, [%r1];
 bar.sync 0;
W: mbarrier.{op}.{phase}.shared::cta.b64 {results}, [%r1], {which};
 @!%p2 bra W;
 selp.b32 %r9, 1, 0, %p2; {"@%p3 add.u32 %r9, %r9, 16;" if "|" in results else ""}
 {"cvt.u32.u8 %r8, %v; shl.b32 %r8, %r8, 8; add.u32 %r9, %r9, %r8;" if "%v" in results else ""}
"""
        + STORE
    )
    out = np.zeros(32, np.uint32)
    r = run(body, out, target="sm_90", version="9.3")
    assert r.completed, [str(f) for f in r.findings]
    assert [str(f) for f in r.findings] == []
    assert out.tolist() == [want] * 32


def test_the_report_of_a_phase_in_progress_is_undefined(run: Any) -> None:
    body = (
        " .reg .b8 %v;\n"
        + INIT.format(count=1)
        + """ mbarrier.test_wait.parity.phase_type::primary.shared::cta.b64 %p2|%p3, %v, [%r1], 0;
 selp.b32 %r9, 1, 0, %p3;
"""
        + STORE
    )
    r = run(body, np.zeros(32, np.uint32), target="sm_90", version="9.3")
    assert [f.kind for f in r.findings] == ["uninitialised-read"]


V1 = INIT.replace("mbarrier.init.", "mbarrier.init.layout::v1.")


def test_a_barrier_of_layout_v1_completes_both_phases_while_nothing_reports(run: Any) -> None:
    """9.7.15.16.8: the conditional phase advances with the primary one if the report is zero, and it starts as zero."""
    body = (
        " .reg .b8 %v; mov.b16 %h2, 7; cvt.u8.u16 %v, %h2; setp.eq.u32 %p3, %t, %t;\n"
        + V1.format(count=32)
        + """ mbarrier.arrive.shared::cta.b64 %rd5, [%r1];
 bar.sync 0;
P: mbarrier.try_wait.parity.phase_type::primary.shared::cta.b64 %p2|%p3, %v, [%r1], 0;
 @!%p2 bra P;
C: mbarrier.try_wait.parity.phase_type::conditional.shared::cta.b64 %p4, [%r1], 0;
 @!%p4 bra C;
 mbarrier.check_layout.layout::v1.shared::cta.b64 %p5, [%r1];
 mbarrier.check_layout.layout::v0.shared::cta.b64 %p6, [%r1];
 selp.b32 %r9, 1, 0, %p2; @%p3 add.u32 %r9, %r9, 2; @%p4 add.u32 %r9, %r9, 4; @%p5 add.u32 %r9, %r9, 8;
 @%p6 add.u32 %r9, %r9, 16; cvt.u32.u8 %r8, %v; shl.b32 %r8, %r8, 8; add.u32 %r9, %r9, %r8;
"""
        + STORE
    )
    out = np.zeros(32, np.uint32)
    r = run(body, out, target="sm_90", version="9.3")
    assert r.completed, [str(f) for f in r.findings]
    assert [str(f) for f in r.findings] == []
    assert out.tolist() == [1 + 4 + 8] * 32


@pytest.mark.parametrize(("init", "count", "limit"), [(INIT, 1 << 20, (1 << 20) - 1), (V1, 512, 511)])
def test_the_count_of_a_barrier_is_limited_by_its_layout(run: Any, init: str, count: int, limit: int) -> None:
    body = init.format(count="%r3").replace(" mbarrier.init", f" mov.u32 %r3, {count}; mbarrier.init", 1)
    r = run(body, np.zeros(32, np.uint32), target="sm_90", version="9.3")
    assert [(f.kind, f.message) for f in r.findings] == [
        ("uninitialised-barrier", f"mbarrier.init with a count of {count}; 1 to {limit} are possible")
    ]


def test_asynchronous_arrivals_may_not_raise_the_count_over_the_limit(run: Any) -> None:
    body = V1.format(count=511) + " cp.async.mbarrier.arrive.shared::cta.b64 [%r1];"
    r = run(body, np.zeros(32, np.uint32), target="sm_90", version="9.3")
    assert (
        "over-arrival",
        "cp.async.mbarrier.arrive raises the pending count of mbarrier [0x400] to 543; it holds at most 511",
    ) in [(f.kind, f.message) for f in r.findings]
