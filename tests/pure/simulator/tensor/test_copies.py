"""cp.async, bulk copies, multicasts, st.async: results, lateness, groups, and the faults of using bytes too early."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

IN = ".param .u64 out, .param .u64 in"
HEAD = """ .shared .align 128 .b8 buf[2048]; .shared .align 8 .b64 bar;
 mov.u32 %r1, buf; mov.u32 %r2, bar; ld.param.u64 %rd1, [in]; setp.ne.u32 %p1, %t, 0;
 shl.b32 %r3, %t, 4; add.u32 %r4, %r1, %r3; cvt.u64.u32 %rd2, %r3; add.u64 %rd3, %rd1, %rd2;
"""
OUT = """ ld.shared.v4.b32 {%r10,%r11,%r12,%r13}, [%r4];
 add.u64 %rd4, %out, %rd2; st.global.v4.b32 [%rd4], {%r10,%r11,%r12,%r13};
"""
BARRIER = """ @!%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
 fence.mbarrier_init.release.cluster; bar.sync 0;
"""
WAIT = """W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
 @!%p2 bra W;
"""


def clean(r: Any) -> None:
    assert r.completed
    assert [str(f) for f in r.findings] == []


def test_cp_async_with_source_sizes(run: Any) -> None:
    """Lane i copies i bytes of 16 (0 of lane 0 from no address at all); the rest is zero."""
    data = np.arange(1, 513, dtype=np.uint32).view(np.uint8)[:512].copy()
    out = np.full(512, 255, np.uint8)
    body = (
        HEAD
        + """ min.u32 %r5, %t, 16; @!%p1 mov.u64 %rd3, 0;
 cp.async.cg.shared.global [%r4], [%rd3], 16, %r5;
 cp.async.commit_group; cp.async.wait_group 0;
"""
        + OUT
    )
    clean(run(body, out, data, parameters=IN))
    want = data.reshape(32, 16).copy()
    for lane in range(32):
        want[lane, lane:] = 0
    assert (out.reshape(32, 16) == want).all()


@pytest.mark.parametrize("size", [4, 8, 16])
def test_cp_async_ca_sizes_and_ignored_sources(run: Any, size: int) -> None:
    data, out = np.arange(512, dtype=np.uint8), np.zeros(512, np.uint8)
    body = (
        HEAD
        + f""" mov.b32 %r6, 0; st.shared.v4.b32 [%r4], {{%r6,%r6,%r6,%r6}};
 and.b32 %r5, %t, 1; setp.eq.u32 %p3, %r5, 1;
 cp.async.ca.shared.global.L2::128B [%r4], [%rd3], {size}, %p3;
 cp.async.wait_all;
"""
        + OUT
    )
    clean(run(body, out, data, parameters=IN))
    want = np.zeros((32, 16), np.uint8)
    want[::2, :size] = data.reshape(32, 16)[::2, :size]
    assert (out.reshape(32, 16) == want).all()


def test_groups_leave_the_latest_in_flight(run: Any) -> None:
    """Two groups; waiting for all but one lets the first be read and not the second."""
    data, out = np.arange(512, dtype=np.uint8), np.zeros(512, np.uint8)
    copies = (
        HEAD
        + """ cp.async.cg.shared.global [%r4], [%rd3], 16; cp.async.commit_group;
 cp.async.cg.shared.global [%r4+512], [%rd3], 16; cp.async.commit_group;
 cp.async.wait_group 1;
"""
    )
    clean(run(copies + OUT + " cp.async.wait_group 0;", out, data, parameters=IN))
    assert (out == data).all()
    r = run(copies + OUT.replace("[%r4]", "[%r4+512]") + " cp.async.wait_group 0;", out, data, parameters=IN)
    finding = r.findings[0]
    assert finding.kind == "async-read-before-complete"
    assert "`cp.async`" in finding.related[0].message


def test_cp_async_arrives_on_a_barrier(run: Any) -> None:
    data, out = np.arange(512, dtype=np.uint8), np.zeros(512, np.uint8)
    body = (
        HEAD
        + BARRIER.replace("], 1;", "], 32;")
        + """ cp.async.ca.shared.global [%r4], [%rd3], 16;
 cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r2];
"""
        + WAIT
        + " xor.b32 %r3, %r3, 16; add.u32 %r4, %r1, %r3; cvt.u64.u32 %rd2, %r3;\n"
        + OUT
    )
    for seed in range(3):
        clean(run(body, out, data, parameters=IN, schedule="random", seed=seed))
        assert (out == data).all()
    body = body.replace(".noinc", "").replace(WAIT, " mbarrier.arrive.shared::cta.b64 _, [%r2];\n" + WAIT)
    clean(run(body, out, data, parameters=IN))


def test_bulk_copy_through_both_memories(run: Any) -> None:
    data, out = np.arange(512, dtype=np.uint8), np.zeros(512, np.uint8)
    body = (
        HEAD
        + BARRIER
        + """ @%p1 bra W;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 512, [%r2];
"""
        + WAIT
        + """ fence.proxy.async.shared::cta; bar.sync 0; @%p1 bra D;
 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 512;
 cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
D:
"""
    )
    clean(run(body, out, data, parameters=IN))
    assert (out == data).all()


@pytest.mark.parametrize(("op", "dtype"), [
    ("add.u32", np.uint32), ("min.s64", np.int64), ("max.noftz.bf16", ml_dtypes.bfloat16), ("add.f64", np.float64),
    ("inc.u32", np.uint32),
])  # fmt: skip
def test_bulk_reductions(run: Any, op: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(0, 100, 512 // np.dtype(dtype).itemsize).astype(dtype),
        rng.integers(0, 100, 512 // np.dtype(dtype).itemsize),
    )
    b = b.astype(dtype)
    out = b.copy()
    op = op.replace("max.noftz.bf16", "max.bf16")
    body = (
        HEAD
        + f""" ld.global.v4.b32 {{%r10,%r11,%r12,%r13}}, [%rd3]; st.shared.v4.b32 [%r4], {{%r10,%r11,%r12,%r13}};
 fence.proxy.async.shared::cta; bar.sync 0; @%p1 bra D;
 cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%out], [%r1], 512;
 cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
D:
"""
    )
    clean(run(body, out, a, parameters=IN))
    want = {"add": lambda: b + a, "min": lambda: np.minimum(a, b), "max": lambda: np.maximum(a, b),
            "inc": lambda: np.where(b >= a, 0, b + 1)}[op[:3]]()  # fmt: skip
    assert (out == want.astype(dtype)).all()


def test_a_store_is_visible_only_after_its_wait(run: Any) -> None:
    """wait_group.read lets the buffer be reused; the result in global memory is a later matter."""
    data, out = np.arange(512, dtype=np.uint8), np.zeros(512, np.uint8)
    body = (
        HEAD
        + """ ld.global.v4.b32 {%r10,%r11,%r12,%r13}, [%rd3]; st.shared.v4.b32 [%r4], {%r10,%r11,%r12,%r13};
 fence.proxy.async.shared::cta; bar.sync 0; @%p1 bra D;
 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 512;
 cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
 st.shared.v4.b32 [%r4], {%r10,%r10,%r10,%r10};
 cp.async.bulk.wait_group 0;
D:
"""
    )
    clean(run(body, out, data, parameters=IN))
    assert (out == data).all()
    r = run(body.replace(" cp.async.bulk.wait_group.read 0;\n", "\n"), out, data, parameters=IN)
    assert [f.kind for f in r.findings] == ["async-overwrite"]
    assert "`cp.async.bulk (reading)`" in r.findings[0].related[0].message


def test_multicast_writes_and_signals_every_cta(run: Any) -> None:
    """CTA 0 of a cluster of 4 multicasts to CTAs 1 and 3; each expects the bytes on its own barrier."""
    data, out = np.arange(512, dtype=np.uint8), np.zeros((4, 512), np.uint8)
    body = (
        HEAD
        + BARRIER
        + """ mov.u32 %r20, %cluster_ctarank; and.b32 %r21, %r20, 1; setp.ne.u32 %p4, %r21, 0;
 mov.b32 %r6, 0; st.shared.v4.b32 [%r4], {%r6,%r6,%r6,%r6}; fence.proxy.async.shared::cta;
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
 @%p1 bra J; @!%p4 bra I;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
I: setp.ne.u32 %p5, %r20, 0; @%p5 bra J;
 mov.b16 %h1, 10;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], 512, [%r2], %h1;
J: @!%p4 bra E;
"""
        + WAIT
        + """E: bar.sync 0; mul.wide.u32 %rd9, %r20, 512; add.u64 %out, %out, %rd9;
"""
        + OUT
        + " barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    )
    for seed in range(3):
        out[:] = 255
        clean(run(body, out, data, parameters=IN, grid=4, cluster=(4, 1, 1), schedule="random", seed=seed))
        assert (out == np.outer([0, 1, 0, 1], data)).all()


def test_st_async_and_red_async_signal_the_remote_barrier(run: Any) -> None:
    data, out = np.arange(512, dtype=np.uint8), np.zeros((2, 512), np.uint8)
    body = (
        HEAD
        + BARRIER
        + """ mov.b32 %r6, 1; st.shared.v4.b32 [%r4], {%r6,%r6,%r6,%r6};
 @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 640;
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
 mov.u32 %r20, %cluster_ctarank; xor.b32 %r21, %r20, 1;
 mapa.shared::cluster.u32 %r22, %r4, %r21; mapa.shared::cluster.u32 %r23, %r2, %r21;
 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r22], {%t,%t,%t,%t}, [%r23];
 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r22+512], %t, [%r23];
""".replace("st.async.weak.", "st.async.")
        + WAIT
        + """ mul.wide.u32 %rd9, %r20, 512; add.u64 %out, %out, %rd9;
"""
        + OUT
        + " barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    )
    body = body.replace(
        "st.shared.v4.b32 [%r4], {%r6", "st.shared.v4.b32 [%r4+512], {%r6,%r6,%r6,%r6}; st.shared.v4.b32 [%r4], {%r6"
    )
    r = run(body, out, data, parameters=IN, grid=2, cluster=(2, 1, 1))
    clean(r)
    assert (out.view(np.uint32).reshape(2, 32, 4) == np.arange(32)[:, None]).all()


def test_st_async_of_128_bits(run: Any) -> None:
    data, out = np.arange(512, dtype=np.uint8), np.zeros((2, 512), np.uint8)
    body = (
        HEAD
        + BARRIER
        + """ .reg .b128 %q1; cvt.u64.u32 %rd5, %t; mov.b64 %rd6, 7; mov.b128 %q1, {%rd5, %rd6};
 @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
 mov.u32 %r20, %cluster_ctarank; xor.b32 %r21, %r20, 1;
 mapa.shared::cluster.u32 %r22, %r4, %r21; mapa.shared::cluster.u32 %r23, %r2, %r21;
 st.async.shared::cluster.mbarrier::complete_tx::bytes.b128 [%r22], %q1, [%r23];
"""
        + WAIT
        + " mul.wide.u32 %rd9, %r20, 512; add.u64 %out, %out, %rd9;\n"
        + OUT
        + " barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    )
    clean(run(body, out, data, parameters=IN, grid=2, cluster=(2, 1, 1), version="9.2"))
    words = out.view(np.uint64).reshape(2, 32, 2)
    assert (words == np.stack([np.arange(32), np.full(32, 7)], -1)).all()


def test_a_read_before_the_barrier_is_named_with_both_places(run: Any) -> None:
    data, out = np.arange(512, dtype=np.uint8), np.zeros(512, np.uint8)
    body = (
        HEAD
        + BARRIER
        + """ @%p1 bra L;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 512, [%r2];
L: bar.sync 0;
"""
        + OUT
        + WAIT
    )
    r = run(body, out, data, parameters=IN)
    finding = next(f for f in r.findings if f.kind == "async-read-before-complete")
    assert finding.threads.startswith("cta (0,0,0) warp 0 lanes ")
    assert finding.where is not None
    assert finding.related[0].where is not None
    assert finding.related[0].where.line < finding.where.line
    assert (out != data).any()


COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1],"


@pytest.mark.parametrize(("change", "message"), [
    ((f"{COPY} 512", f"mov.u32 %r9, 500; {COPY} %r9"), "a bulk copy of 500 bytes: the size must be a multiple of 16"),
    (("[%r1], [%rd1], 512", "[%r1+8], [%rd1], 512"), "of 16 bytes at shared address 0x408, which is no multiple of 16"),
    (("[%r1], [%rd1], 512", "[%r1], [%rd1], 528"), "crosses the end"),
])  # fmt: skip
def test_bad_sizes_and_addresses_are_named(run: Any, change: tuple[str, str], message: str) -> None:
    body = (
        HEAD
        + BARRIER
        + """ @%p1 bra D;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 512, [%r2];
D:
"""
    )
    r = run(body.replace(*change), np.zeros(512, np.uint8), np.zeros(512, np.uint8), parameters=IN)
    assert r.findings[0].kind == "out-of-bounds"
    assert message in r.findings[0].message or "past the end of" in r.findings[0].message


def test_an_unpublished_barrier_is_a_matter_of_portability(run: Any) -> None:
    data, out = np.arange(512, dtype=np.uint8), np.zeros(512, np.uint8)
    body = (
        HEAD
        + BARRIER.replace("fence.mbarrier_init.release.cluster;", "")
        + """ @%p1 bra W;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 512, [%r2];
"""
        + WAIT
        + OUT
    )
    r = run(body, out, data, parameters=IN)
    assert (out == data).all()
    assert [(f.kind, f.severity) for f in r.findings] == [("uninitialised-barrier", "portability")]
    assert r.findings[0].message == "`cp.async.bulk` signals mbarrier [0xc00], whose initialisation no fence has published"


def test_a_store_outlives_its_cta_once_the_source_is_read(run: Any) -> None:
    """Each CTA leaves after wait_group.read, and its bytes still arrive."""
    data, out = np.arange(512, dtype=np.uint8), np.zeros((24, 512), np.uint8)
    body = (
        HEAD
        + """ ld.global.v4.b32 {%r10,%r11,%r12,%r13}, [%rd3]; st.shared.v4.b32 [%r4], {%r10,%r11,%r12,%r13};
 mov.u32 %r20, %ctaid.x; mul.wide.u32 %rd9, %r20, 512; add.u64 %out, %out, %rd9;
 fence.proxy.async.shared::cta; bar.sync 0; @%p1 bra D;
 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 512;
 cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
D:
"""
    )
    clean(run(body, out, data, parameters=IN, grid=24, schedule="random", seed=1))
    assert (out == data).all()
    out[:] = 0
    r = run(body.replace("wait_group.read 0", "wait_group.read 1"), out[:1], data, parameters=IN)
    assert [f.kind for f in r.findings] == ["leftover"]
    assert r.findings[0].message == "cta (0,0,0) ended while `cp.async.bulk (reading)` still accesses its shared memory"


MASKED = (
    HEAD
    + """ ld.global.v4.b32 {%r10,%r11,%r12,%r13}, [%rd3]; st.shared.v4.b32 [%r4], {%r10,%r11,%r12,%r13};
 fence.proxy.async.shared::cta; bar.sync 0; @%p1 bra D;
 cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%out], [%r1], 512, MASK;
 cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
D:
"""
)


@pytest.mark.parametrize("mask", [0x0001, 0x8000, 0xA5F0, 0x7FFE, 0xFFFF, 0])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_byte_mask_chooses_bytes_of_each_sixteen(run: Any, mask: int, seed: int) -> None:
    data, out = np.random.default_rng(7).integers(0, 255, 512).astype(np.uint8), np.full(512, 255, np.uint8)
    body = MASKED.replace("MASK", "%h1").replace("@%p1 bra D;", f"mov.b16 %h1, {mask}; @%p1 bra D;")
    clean(run(body, out, data, parameters=IN, target="sm_100a", schedule="random", seed=seed))
    assert out.tolist() == [int(b) if mask >> i % 16 & 1 else 255 for i, b in enumerate(data.tolist())]


@pytest.mark.parametrize(("byte", "kinds"), [(3, ["async-read-before-complete"]), (4, [])])
def test_only_the_bytes_of_the_mask_are_in_flight(run: Any, byte: int, kinds: list[str]) -> None:
    """Before the wait, a byte that the mask leaves out can be read; one that it copies cannot."""
    data, out = np.arange(512, dtype=np.uint8), np.full(512, 255, np.uint8)
    body = MASKED.replace("MASK", "0x000f").replace(
        " cp.async.bulk.commit_group;", f" ld.global.u8 %h2, [%out+{16 + byte}]; cp.async.bulk.commit_group;"
    )
    r = run(body, out, data, parameters=IN, target="sm_100a")
    assert [f.kind for f in r.findings] == kinds


IGNORING = (
    HEAD
    + BARRIER
    + """ @%p1 bra W;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 64;
 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r1], [SOURCE], 64, LEFT, RIGHT, [%r2];
"""
    + WAIT
    + " add.u32 %r5, %r1, %t; add.u64 %rd9, %out, %rd8; ld.shared.u8 %h1, [%r5+AT]; st.global.u8 [%rd9], %h1;\n"
)


def ignoring(run: Any, source: str, left: str, right: str, at: int, data: np.ndarray) -> tuple[Any, np.ndarray]:
    """Copy 64 bytes and store the 32 from `at` on."""
    out = np.zeros(512, np.uint8)
    body = IGNORING.replace("SOURCE", source).replace("LEFT", left).replace("RIGHT", right).replace("AT", str(at))
    body = " mov.u32 %r9, 16;" + body.replace("add.u64 %rd9", "cvt.u64.u32 %rd8, %t; add.u64 %rd9")
    return run(body, out, data, parameters=IN, target="sm_90", version="9.2"), out


@pytest.mark.parametrize(("offset", "right", "seen"), [(0, 0, []), (48, 12, []), (48, 11, ["out-of-bounds"])])
def test_ignored_bytes_may_lie_outside(run: Any, offset: int, right: int, seen: list[str]) -> None:
    """9.7.10.28.4.1: up to 15 bytes at either end may lie outside of an allocation (100 bytes here); the rest is copied."""
    data = np.arange(1, 101, dtype=np.uint8)
    r, out = ignoring(run, f"%rd1+{offset}", "0", str(right), 0, data)
    assert [f.kind for f in r.findings] == seen
    if not seen:
        assert (out[:32] == data[offset : offset + 32]).all()


def test_a_source_before_its_array_is_named(run: Any) -> None:
    r, _ = ignoring(run, "%rd1+-16", "15", "0", 16, np.arange(100, dtype=np.uint8))
    assert [f.kind for f in r.findings] == ["out-of-bounds"]


@pytest.mark.parametrize(("left", "right", "at", "kinds"), [
    (5, 0, 0, ["uninitialised-read"]), (5, 0, 5, []), (0, 9, 32, ["uninitialised-read"]), (0, 9, 23, []),
])  # fmt: skip
def test_ignored_bytes_are_indeterminate(run: Any, left: int, right: int, at: int, kinds: list[str]) -> None:
    r, _ = ignoring(run, "%rd1", str(left), str(right), at, np.arange(128, dtype=np.uint8))
    assert [f.kind for f in r.findings] == kinds


def test_at_most_15_bytes_are_ignored(run: Any) -> None:
    r, _ = ignoring(run, "%rd1", "%r9", "0", 0, np.arange(128, dtype=np.uint8))
    assert (
        "out-of-bounds",
        "a bulk copy with .ignore_oob ignores 16 bytes at the beginning and 0 at the end; 0 to 15 are possible",
    ) in [(f.kind, f.message) for f in r.findings]
