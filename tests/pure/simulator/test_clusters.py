"""Clusters: ranks, distributed shared memory, the cluster barrier."""

import numpy as np
import pytest

from warpsmith.simulator import Watch, simulate

TEXT = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .pred %p<9>;
.shared .align 16 .b32 box[32];
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %cluster_nctarank;
mad.lo.u32 %r5, %r3, 100, %r1;
mov.u32 %r6, box; shl.b32 %r7, %r1, 2; add.u32 %r8, %r6, %r7;
st.shared.u32 [%r8], %r5;
barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
add.u32 %r9, %r2, 1; rem.u32 %r9, %r9, %r4;
mapa.shared::cluster.u32 %r10, %r8, %r9;
ld.shared::cluster.u32 %r11, [%r10];
getctarank.shared::cluster.u32 %r12, %r10;
cvt.u64.u32 %rd2, %r8; cvta.shared.u64 %rd3, %rd2; mapa.u64 %rd4, %rd3, %r9; ld.u32 %r13, [%rd4];
sub.u32 %r13, %r13, %r11; add.u32 %r11, %r11, %r13;
mad.lo.u32 %r11, %r12, 100000, %r11;
mad.lo.u32 %r14, %r3, 32, %r1; mul.wide.u32 %rd5, %r14, 4; add.s64 %rd5, %rd1, %rd5; st.global.u32 [%rd5], %r11;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ret;
}"""


@pytest.mark.parametrize("order", [{}, {"schedule": "random", "seed": 1}, {"schedule": "random", "seed": 2}])
@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_neighbours_read_each_others_shared_memory(cluster, order):
    out = np.zeros((8, 32), np.uint32)
    result = simulate(TEXT, grid=8, block=32, cluster=cluster, args=[out], **order)
    assert not result.findings, str(result)
    rank = np.arange(8) % cluster
    other = np.arange(8) - rank + (rank + 1) % cluster
    want = ((rank + 1) % cluster * 100000 + other * 100)[:, None] + np.arange(32)
    assert np.array_equal(out, want)


def test_a_rank_beyond_the_cluster():
    text = TEXT.replace("rem.u32 %r9, %r9, %r4;", "mov.u32 %r9, 5;")
    result = simulate(text, grid=4, block=32, cluster=2, args=[np.zeros((4, 32), np.uint32)])
    found = result.findings[0]
    assert (found.kind, found.message) == ("out-of-bounds", "`mapa.shared::cluster.u32` names CTA rank 5 of a cluster of 2")


def test_a_cluster_barrier_that_one_cta_skips():
    body = """setp.eq.u32 %p1, %r2, 1; @%p1 bra WAIT; barrier.cluster.arrive.aligned;
WAIT: barrier.cluster.wait.aligned; bar.sync 0;"""
    text = TEXT.replace("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;", body)
    result = simulate(text, grid=2, block=32, cluster=2, args=[np.zeros((2, 32), np.uint32)])
    found = result.findings[-1]
    assert found.kind == "deadlock"
    assert "cluster barrier: 32 of 64 threads arrived; missing threads of cta (1,0,0)" in str(found)


def test_arriving_twice_is_reported():
    text = TEXT.replace(
        "barrier.cluster.arrive.release.aligned;", "barrier.cluster.arrive.aligned; barrier.cluster.arrive.aligned;"
    )
    result = simulate(text, grid=2, block=32, cluster=2, args=[np.zeros((2, 32), np.uint32)])
    assert "over-arrival" in {f.kind for f in result.findings}


START = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
END = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nret"


@pytest.mark.parametrize("order", [{}, {"schedule": "random", "seed": 1}])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            TEXT.replace(START, "bar.sync 0;"),
            "`ld.shared::cluster.u32` touches the shared memory of cta ({},0,0), and nothing says that this CTA has started",
        ),
        (
            TEXT.replace(START, "barrier.cluster.arrive.aligned;").replace(END, "barrier.cluster.wait.aligned;\nret"),
            "`ld.shared::cluster.u32` touches the shared memory of cta ({},0,0), and nothing says that this CTA has started",
        ),
        (
            TEXT.replace(END, "ret"),
            "cta ({},0,0) may have ended when `ld.u32` touches its shared memory: nothing orders this before its end",
        ),
    ],
)
def test_a_peer_that_may_not_have_started_or_may_have_ended(text, message, order):
    result = simulate(text, grid=2, block=32, cluster=2, args=[np.zeros((2, 32), np.uint32)], **order)
    lifetime = [f.message for f in result.findings if f.kind in ("peer-lifetime", "cluster-exit")]
    assert lifetime
    assert lifetime[0] in (message.format(0), message.format(1))


def test_clusters_that_synchronise_through_memory_are_not_judged():
    text = TEXT.replace(END, "fence.acq_rel.cluster; ret")
    assert not simulate(text, grid=2, block=32, cluster=2, args=[np.zeros((2, 32), np.uint32)]).findings


ADDRESSES = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry addresses(.param .u64 out)
{
.reg .b32 %r<20>; .reg .b64 %rd<9>;
.shared .align 16 .b32 box[4];
ld.param.u64 %rd1, [out];
mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd2, %r2, 32; add.s64 %rd1, %rd1, %rd2;
add.u32 %r3, %r1, 100; st.shared.u32 [box], %r3;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
mov.u32 %r4, box; mapa.shared::cluster.u32 %r5, %r4, 1; getctarank.shared::cluster.u32 %r6, %r4;
mov.u64 %rd3, box; cvta.shared.u64 %rd3, %rd3; cvta.to.shared.u64 %rd3, %rd3; cvt.u32.u64 %r7, %rd3;
ld.shared.u32 %r8, [%r4];
and.b32 %r9, %r4, 0xFEFFFFFF; ld.shared::cluster.u32 %r10, [%r9]; ld.shared::cluster.u32 %r11, [box];
st.global.v4.u32 [%rd1], {%r4, %r5, %r6, %r7}; st.global.v4.u32 [%rd1+16], {%r8, %r10, %r11, %r9};
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ret;
}"""


def test_addresses_hold_the_rank_of_their_cta():
    """As an H200 has them: the first four numbers of each CTA and the variable itself are what it printed."""
    out = np.zeros((8, 8), np.uint32)
    result = simulate(ADDRESSES, grid=8, block=32, cluster=4, args=[out])
    assert not result.findings, str(result)
    rank = np.arange(8) % 4
    own, leader = (rank << 24) + 0x400, rank & ~1
    columns = [own, own * 0 + 0x1000400, rank, own, 100 + rank, 100 + leader, 100 + rank, (leader << 24) + 0x400]
    assert np.array_equal(out, np.stack(columns, axis=1))


@pytest.mark.parametrize(("operand", "ctas", "where"), [("%r5", "(0,0,0)", 1), ("%r15", "(1,0,0)", 0)])
def test_another_ctas_address_is_no_address_of_shared_cta(operand, ctas, where):
    """An H200 ends the launch with an illegal instruction."""
    text = ADDRESSES.replace("ld.shared.u32 %r8, [%r4];", f"and.b32 %r15, %r4, 0xFFFFFF; ld.shared.u32 %r8, [{operand}];")
    found = simulate(text, grid=2, block=32, cluster=2, args=[np.zeros((2, 8), np.uint32)]).findings[0]
    address = (where << 24) + 0x400
    assert found.kind == "out-of-bounds"
    assert found.message == (
        f"load of 4 bytes at shared address {address:#x} is in CTA {where} of the cluster; "
        "a .shared::cta access reaches its own CTA alone"
    )
    assert found.threads == f"cta {ctas} warp 0 lanes 0-31"
    assert found.repair == "write .shared::cluster where the address may be another CTA's"


def test_past_the_end_in_a_later_cta():
    text = ADDRESSES.replace("ld.shared.u32 %r8, [%r4];", "ld.shared.u32 %r8, [%r4+24];")
    found = simulate(text, grid=2, block=32, cluster=2, args=[np.zeros((2, 8), np.uint32)]).findings[0]
    assert (
        found.message == "load of 4 bytes at shared address 0x418 lies 8 bytes past the end of shared variable `box` (16 bytes)"
    )


@pytest.mark.parametrize("type_", ["u32", "u64"])
def test_an_offset_before_a_variable(type_):
    register = "%r12" if type_ == "u32" else "%rd4"
    more = f"mov.{type_} {register}, box+-2048;" + ("cvt.u32.u64 %r12, %rd4;" if type_ == "u64" else "")
    text = ADDRESSES.replace("mov.u32 %r4, box;", f"{more} mov.u32 %r4, box;").replace("%r11, %r9}", "%r11, %r12}")
    out = np.zeros((2, 8), np.uint32)
    result = simulate(text, grid=2, block=32, cluster=2, args=[out])
    assert not result.findings, str(result)
    assert out[:, 7].tolist() == [0x100000000 - 0x400, 0x1000000 - 0x400]


@pytest.mark.parametrize(("address", "message"), [
    ("0x1000000", "load of 4 bytes at shared address 0x1000000 lies in the first 1024 bytes, which the system reserves"),
    ("0x1000402", "load of 4 bytes at shared address 0x1000402, which is no multiple of 4"),
    (
        "0x1010400",
        "load of 4 bytes at shared address 0x1010400 lies 65520 bytes past the end of shared variable `box` (16 bytes)",
    ),
])  # fmt: skip
def test_messages_hold_the_rank_of_another_cta(address, message):
    load = f"mov.u32 %r12, {address}; ld.shared::cluster.u32 %r11, [%r12];"
    text = ADDRESSES.replace("ld.shared::cluster.u32 %r11, [box];", load)
    found = simulate(text, grid=2, block=32, cluster=2, args=[np.zeros((2, 8), np.uint32)]).findings[0]
    assert (found.kind, found.message) == ("out-of-bounds", message)


def test_a_generic_address_without_rank_is_that_of_cta_0():
    """An H200 gave [[101, 101], [101, 0]]: both CTAs wrote and read the memory of CTA 0, below 1024 as well."""
    text = ADDRESSES.replace(
        "ld.shared.u32 %r8, [%r4];",
        """
mov.u32 %r12, 0x400; cvt.u64.u32 %rd4, %r12; cvta.shared.u64 %rd4, %rd4; add.u32 %r13, %r2, 100; st.u32 [%rd4], %r13;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ld.u32 %r8, [%rd4];""",
    )
    out = np.zeros((2, 8), np.uint32)
    simulate(text, grid=2, block=1, cluster=2, args=[out], check=False)
    assert out[:, 4].tolist() == [101, 101]


def test_watch_points_follow_the_rank():
    text = ADDRESSES.replace("ld.shared.u32 %r8, [%r4];", "ld.shared.u32 %r8, [%r4];\nmov.u32 %r12, %r5;")
    line = text[: text.index("mov.u32 %r12, %r5;")].count("\n") + 1
    watch = Watch(on=(2, 0, line), show=("shared[%r4]:u32", "shared[%r5]:u32", "shared[0x400]:u32", "shared[0x1000400]:u32"))
    result = simulate(text, grid=4, block=32, cluster=2, args=[np.zeros((4, 8), np.uint32)], watch=[watch])
    assert not result.findings, str(result)
    (seen,) = result.watched
    assert list(seen.values.values()) == [100, 101, 100, 101]
