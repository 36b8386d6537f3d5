"""tcgen05 with .cta_group::2: operands of both CTAs, D in both tensor memories, allocation and commits together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcgen05_program import A_AT, B_AT, BYTES, instruction, laid_out, module, wait
from warpsmith.assembly.ptx import parse
from warpsmith.simulator.api import simulate

rng = np.random.default_rng(13)
ALLOC = "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 512;"
DEALLOC = "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %tmem, 512;"
MEET = " barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;\n"
COMMIT = (
    " mov.b16 %h1, 3;\n tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [bar], %h1;\n"
)


def images(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Each CTA's half of the rows of A and of B; the descriptors are the same in both."""
    both = np.zeros((2, BYTES), np.uint8)
    for rank in range(2):
        da = laid_out(a[len(a) // 2 * rank : len(a) // 2 * (rank + 1)], A_AT, "128B", False, both[rank])
        db = laid_out(b[len(b) // 2 * rank : len(b) // 2 * (rank + 1)], B_AT, "128B", False, both[rank])
    return both.reshape(-1), da, db


def middle(m: int, n: int, da: int, db: int, columns: int) -> str:
    text = f""" .reg .b16 %h<4>;
 setp.ne.u32 %p3, %r300, 0;
 @%p3 bra ISSUED;
 @!%first bra ISSUED;
 mov.b64 %rd10, {da}; mov.b64 %rd11, {db}; mov.b32 %r200, {instruction(m, n, 1, 0, 0)}; setp.ne.u32 %p2, 0, 0;
 tcgen05.mma.cta_group::2.kind::f16 [%tmem], %rd10, %rd11, %r200, %p2;
{COMMIT}ISSUED:
{wait()} tcgen05.fence::after_thread_sync;
"""
    registers = ", ".join(f"%r{j}" for j in range(columns))
    text += f" tcgen05.ld.sync.aligned.32x32b.x{columns}.b32 {{{registers}}}, [%mine];\n tcgen05.wait::ld.sync.aligned;\n"
    return text + "".join(f" st.global.b32 [%out+{1024 * j}], %r{j};\n" for j in range(columns))


def launch(m: int, n: int, *edits: tuple[str, str], tail: str = MEET, **options: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    a, b = rng.standard_normal((m, 16)).astype(np.float16), rng.standard_normal((n, 16)).astype(np.float16)
    image, da, db = images(a, b)
    columns = n if m == 256 else n // 2
    text = module(middle(m, n, da, db, columns), group=2, head=MEET, tail=tail)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    out = np.zeros((columns, 2, 128), np.float32)
    r = simulate(
        parse(text), kernel="k", grid=(2, 1, 1), cluster=(2, 1, 1), block=(128, 1, 1), args=[out, image], **options
    )  # fmt: skip
    return r, out, a.astype(float) @ b.astype(float).T


@pytest.mark.parametrize("options", [{}, {"schedule": "random", "seed": 1}, {"schedule": "adversarial"}])
def test_256_rows(options: dict[str, Any]) -> None:
    r, out, want = launch(256, 32, **options)
    assert r.completed
    assert not r.findings, str(r)
    assert np.abs(out.transpose(1, 2, 0).reshape(256, 32) - want).max() < 1e-5
    assert ".cta_group::2" in str(r.fidelity)


def test_128_rows_are_split_along_n() -> None:
    """Each CTA has 64 rows: lanes 0 to 63 the lower half of the columns, lanes 64 to 127 the upper one."""
    r, out, want = launch(128, 32)
    assert not r.findings, str(r)
    for rank in range(2):
        for half in range(2):
            got = out[:, rank, 64 * half : 64 * half + 64].T
            assert np.abs(got - want[64 * rank : 64 * rank + 64, 16 * half : 16 * half + 16]).max() < 1e-5


def test_a_commit_without_multicast_reaches_one_cta() -> None:
    single = " tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [bar];\n"
    r, _, _ = launch(256, 32, (COMMIT, single))
    assert "deadlock" in [f.kind for f in r.findings], str(r)


@pytest.mark.parametrize("options", [{}, {"schedule": "adversarial"}, {"schedule": "random", "seed": 3}])
def test_a_cta_may_end_when_it_has_waited_for_the_commits_that_signal_it(options: dict[str, Any]) -> None:
    r, out, want = launch(256, 32, tail="", **options)
    assert not r.findings, str(r)
    assert np.abs(out.transpose(1, 2, 0).reshape(256, 32) - want).max() < 1e-5


@pytest.mark.parametrize("options", [{}, {"schedule": "adversarial"}])
def test_a_cta_ends_before_its_peer_has_signalled_it(options: dict[str, Any]) -> None:
    """The second commit is the last thing that CTA 0 sends: CTA 1 must wait for it, the cluster's barrier does not."""
    again = COMMIT.replace("[bar]", "[bar2]")
    r, _, _ = launch(256, 32, (COMMIT, COMMIT + again), **options)
    assert [(f.kind, f.message) for f in r.findings] == [
        ("cluster-exit", "cta (1,0,0) ended before `tcgen05.commit` of another CTA had signalled its mbarrier")
    ]
    last = f" tcgen05.fence::before_thread_sync;\n{MEET}"
    waited = wait(0, "LAST", "bar2") + last
    r, _, _ = launch(256, 32, (COMMIT, COMMIT + again), (last, waited), **options)
    assert r.findings == []


def test_the_ctas_must_agree_on_what_they_allocate() -> None:
    unlike = ALLOC.replace("512", "%r260")
    change = f"mov.b32 %r260, 512; setp.ne.u32 %p4, %r300, 0; @%p4 mov.b32 %r260, 256; {unlike}"
    r, _, _ = launch(256, 32, (ALLOC, change))
    assert len(r.findings) == 1
    head, _, both = r.findings[0].message.partition(": ")
    assert head == "the CTAs of a pair come to different operations"
    assert sorted(both.split(", ")) == ["alloc of 256 columns", "alloc of 512 columns"]


def test_one_cta_alone_waits_for_its_peer() -> None:
    r, _, _ = launch(256, 32, (DEALLOC, f"setp.ne.u32 %p4, %r300, 0; @%p4 bra DONE; {DEALLOC}"))
    kinds = [f.kind for f in r.findings]
    assert "deadlock" in kinds, str(r)
    assert "its peer CTA has not come to tcgen05.dealloc" in str(r)


def test_a_pair_needs_a_cluster() -> None:
    text = module("", group=2)
    args = [np.zeros(4, np.uint32), np.zeros(BYTES, np.uint8)]
    r = simulate(parse(text), kernel="k", grid=(1, 1, 1), block=(128, 1, 1), args=args)
    assert [f.message for f in r.findings] == [
        "`tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32` in cta (0,0,0), which has no peer: its cluster has 1 CTA(s)"
    ]
