"""Findings about tensor memory, each from a correct program with one change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcgen05_program import A_AT, B_AT, BYTES, instruction, laid_out, module, wait
from warpsmith.assembly.ptx import parse
from warpsmith.base.device import DeviceModel
from warpsmith.simulator.api import simulate

rng = np.random.default_rng(11)
A, B = rng.standard_normal((128, 16)).astype(np.float16), rng.standard_normal((16, 16)).astype(np.float16)
IMAGE = np.zeros(BYTES, np.uint8)
DA, DB = laid_out(A, A_AT, "128B", False, IMAGE), laid_out(B, B_AT, "128B", False, IMAGE)
I = instruction(128, 16, 1, 0, 0)  # noqa: E741
REGISTERS = "{" + ", ".join(f"%r{i}" for i in range(16)) + "}"
STORE = "".join(f" st.global.b32 [%out+{512 * i}], %r{i};\n" for i in range(16))

ISSUE = f""" @!%first bra ISSUED;
 mov.b64 %rd10, {DA}; mov.b64 %rd11, {DB}; mov.b32 %r200, {I}; setp.ne.u32 %p2, 0, 0;
 tcgen05.mma.cta_group::1.kind::f16 [%tmem], %rd10, %rd11, %r200, %p2;
 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
ISSUED:
"""
LOAD = f" tcgen05.ld.sync.aligned.32x32b.x16.b32 {REGISTERS}, [%mine];\n tcgen05.wait::ld.sync.aligned;\n"
PRODUCT = ISSUE + wait() + " tcgen05.fence::after_thread_sync;\n" + LOAD + STORE
# warps 0 to 3 store P, warp 0's first thread multiplies with it, everybody reads the result
FILL = "".join(f" mov.b32 %r{i}, 0x3c003c00;\n" for i in range(8))
EIGHT = "{" + ", ".join(f"%r{i}" for i in range(8)) + "}"
FROM_P = f""" add.u32 %r230, %tmem, 64; add.u32 %r231, %mine, 64;
{FILL} tcgen05.st.sync.aligned.32x32b.x8.b32 [%r231], {EIGHT};
 tcgen05.wait::st.sync.aligned;
 tcgen05.fence::before_thread_sync;
 bar.sync 0;
 tcgen05.fence::after_thread_sync;
 @!%first bra ISSUED;
 mov.b64 %rd11, {DB}; mov.b32 %r200, {I}; setp.ne.u32 %p2, 0, 0;
 tcgen05.mma.cta_group::1.kind::f16 [%tmem], [%r230], %rd11, %r200, %p2;
 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
ISSUED:
{wait()} tcgen05.fence::after_thread_sync;
{LOAD}{STORE}"""
# a second product writes the columns that everybody has just read
AGAIN = (
    PRODUCT.replace(STORE, "")
    + f""" tcgen05.fence::before_thread_sync;
 bar.sync 0;
 tcgen05.fence::after_thread_sync;
 @!%first bra SECOND;
 tcgen05.mma.cta_group::1.kind::f16 [%tmem], %rd10, %rd11, %r200, %p2;
 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
SECOND:
{wait(1, "LATER")} tcgen05.fence::after_thread_sync;
{LOAD}{STORE}"""
)
WAIT_LD, WAIT_ST = " tcgen05.wait::ld.sync.aligned;\n", " tcgen05.wait::st.sync.aligned;\n"
ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;"
DEALLOC = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tmem, 512;"


def launch(middle: str, edit: tuple[str, str] = ("", ""), **options: Any) -> Any:
    text = module(middle)
    if edit[0]:
        assert edit[0] in text
        text = text.replace(edit[0], edit[1], 1)
    out = np.zeros((16, 128), np.float32)
    r = simulate(parse(text), kernel="k", grid=(1, 1, 1), block=(128, 1, 1), args=[out, IMAGE], **options)
    return r, out


@pytest.mark.parametrize("middle", [PRODUCT, FROM_P, AGAIN])
@pytest.mark.parametrize("schedule", [{}, *({"schedule": "random", "seed": s} for s in range(4)), {"schedule": "adversarial"}])
def test_correct_programs_have_no_findings(middle: str, schedule: dict[str, Any]) -> None:
    r, out = launch(middle, **schedule)
    assert r.completed
    assert not r.findings, str(r)
    left = np.ones((128, 16)) if middle is FROM_P else A.astype(float)
    assert np.abs(out.T - left @ B.astype(float).T).max() < 1e-5


MUTANTS = [
    ("tmem-alias", PRODUCT, (wait(), "")),
    ("tmem-alias", AGAIN, (wait(1, "LATER"), "")),
    ("missing-tcgen05-wait", FROM_P, (WAIT_ST, "")),
    ("missing-tcgen05-wait", AGAIN, (WAIT_LD, "")),
    ("tmem-lifetime", PRODUCT, (DEALLOC, "")),
    ("tmem-lifetime", PRODUCT, (DEALLOC, DEALLOC.replace("512", "256"))),
    ("tmem-lifetime", PRODUCT, (DEALLOC, DEALLOC + "\n " + DEALLOC)),
    ("tmem-lifetime", PRODUCT, (ALLOC, "mov.b32 %r233, 96; " + ALLOC.replace("512", "%r233"))),
    ("tmem-lifetime", PRODUCT, ("[%mine];", "[%r232];")),
    ("tmem-lifetime", PRODUCT, (ALLOC, f"tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n {ALLOC}")),
    ("tmem-lifetime", PRODUCT, ("@!%zero bra DONE;", "setp.ne.u32 %p3, %warp, 1; @%p3 bra DONE;")),
    ("tmem-lifetime", PRODUCT, (" tcgen05.ld.sync", f" @!%zero bra SKIP;\n {DEALLOC}\nSKIP: bar.sync 0;\n tcgen05.ld.sync")),
    ("empty-commit", PRODUCT, (" tcgen05.commit", "ISSUED:\n setp.ne.u32 %p3, %t, 32; @%p3 bra NOT;\n tcgen05.commit")),
    ("out-of-bounds", PRODUCT, ("[%mine];", "[%tmem];")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "middle", "edit"), MUTANTS)
def test_mutants(kind: str, middle: str, edit: tuple[str, str]) -> None:
    head = " add.u32 %r232, %mine, 500;\n" if "%r232" in edit[1] else ""
    if kind == "empty-commit":
        middle = middle.replace("[bar];\nISSUED:\n", "[bar];\nNOT:\n")
    r, _ = launch(head + middle, edit)
    assert kind in [f.kind for f in r.findings], str(r)
    found = next(f for f in r.findings if f.kind == kind)
    assert found.where is not None
    assert found.threads
    assert found.repair


_LOAD = "`tcgen05.ld.sync.aligned.32x32b.x16.b32`"
_MMA = "`tcgen05.mma.cta_group::1.kind::f16`"
MESSAGES = {
    0: f"{_LOAD} reads columns 0 to 15 of tensor memory while `tcgen05.mma` in flight writes columns 0 to 15",
    2: f"{_MMA} reads columns 64 to 71 of tensor memory, which warp 0 has stored without tcgen05.wait::st behind",
    3: f"{_MMA} overwrites columns 0 to 15 of tensor memory, which warp 0 has loaded without tcgen05.wait::ld behind",
    4: "cta (0,0,0) ended and has not freed 512 columns of tensor memory",
    5: "tcgen05.dealloc of 256 columns at 0x0, which no allocation is: cta (0,0,0) holds 512 columns at 0x0",
    6: "tcgen05.dealloc of 512 columns at 0x0, which no allocation is: cta (0,0,0) holds nothing",
    7: "96 columns of tensor memory: only 32, 64, 128, 256 and 512 can be allocated or freed",
    8: f"{_LOAD} accesses columns 500 to 515 of tensor memory, which has 512",
    9: "tcgen05.alloc after the CTA has relinquished the right to allocate",
    10: "warp 1 frees the columns at 0x0, which warp 0 has allocated",
    11: f"{_LOAD} accesses columns 0 to 15 of tensor memory; column 0 has been freed",
    12: "thread 32 commits and has issued nothing: a commit covers what its own thread has issued",
    13: "warp 1 accesses lanes 0 to 31 of tensor memory; it may access lanes 32 to 63",
}


@pytest.mark.parametrize("index", MESSAGES)
def test_messages(index: int) -> None:
    kind, middle, edit = MUTANTS[index]
    head = " add.u32 %r232, %mine, 500;\n" if "%r232" in edit[1] else ""
    if kind == "empty-commit":
        middle = middle.replace("[bar];\nISSUED:\n", "[bar];\nNOT:\n")
    r, _ = launch(head + middle, edit)
    assert MESSAGES[index] in [f.message for f in r.findings], str(r)


ONE = DeviceModel("One", "sm_100", 1, 228 << 10, 227 << 10)
SHARED = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out) .reqntid 32
{
 .reg .b32 %r<8>; .reg .b64 %rd<8>; .shared .align 4 .b32 slot;
 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], COLUMNS;
 RELINQUISH
 bar.sync 0;
 ld.shared.b32 %r1, [slot]; mov.u32 %r2, %ctaid.x; add.u32 %r3, %r2, 7;
 tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r3};
 tcgen05.wait::st.sync.aligned;
 tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r1];
 tcgen05.wait::ld.sync.aligned;
 ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r2, 8; add.u64 %rd3, %rd1, %rd2;
 st.global.v2.b32 [%rd3], {%r1, %r4};
 bar.sync 0;
 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, COLUMNS;
 ret;
}
"""


def resident(columns: int, relinquish: bool, ctas: int) -> Any:
    permit = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" if relinquish else ""
    out = np.zeros((ctas, 2), np.uint32)
    text = SHARED.replace("COLUMNS", str(columns)).replace("RELINQUISH", permit)
    r = simulate(parse(text), kernel="k", grid=(ctas, 1, 1), block=(32, 1, 1), args=[out], device=ONE)
    return r, out


def test_resident_ctas_share_the_columns_of_their_multiprocessor() -> None:
    r, out = resident(256, True, 2)
    assert r.completed
    assert not r.findings, str(r)
    assert out[:, 0].tolist() == [0, 256]
    assert out[:, 1].tolist() == [7, 8]


def test_an_allocation_waits_until_columns_are_free() -> None:
    r, out = resident(512, True, 4)
    assert r.completed
    assert not r.findings, str(r)
    assert out[:, 0].tolist() == [0] * 4
    assert out[:, 1].tolist() == [7, 8, 9, 10]


def test_an_allocation_waits_for_the_right_to_allocate() -> None:
    r, out = resident(128, False, 2)  # the second CTA goes on when the first has ended
    assert r.completed
    assert not r.findings, str(r)
    assert out[:, 0].tolist() == [0, 0]


def test_two_allocations_that_cannot_both_be_had_hang() -> None:
    text = module("", columns=512).replace(ALLOC, f"{ALLOC}\n {ALLOC}")
    r = simulate(parse(text), kernel="k", grid=(1, 1, 1), block=(128, 1, 1), args=[np.zeros(128, np.uint32), IMAGE])
    assert "deadlock" in [f.kind for f in r.findings], str(r)
    assert "tcgen05.alloc of 512 columns on multiprocessor 0: cta (0,0,0) holds 512 columns" in str(r)


def test_a_branch_may_lead_past_the_wait() -> None:
    r, _ = launch(PRODUCT, (WAIT_LD, f" @!%first bra PAST;\n{WAIT_LD}PAST:\n"))
    (found,) = [f for f in r.findings if "uses registers" in f.message]
    assert (found.kind, "`st.global.b32` uses registers of `tcgen05.ld." in found.message) == ("missing-tcgen05-wait", True)


def test_registers_used_before_the_wait_are_a_matter_of_portability() -> None:
    r, out = launch(PRODUCT, (WAIT_LD, ""))
    found = [(f.kind, f.severity) for f in r.findings]
    assert found[0] == ("missing-tcgen05-wait", "portability"), str(r)
    assert r.findings[0].message == (
        "`st.global.b32` uses registers of `tcgen05.ld.sync.aligned.32x32b.x16.b32` without tcgen05.wait::ld between them"
    )
    assert np.abs(out.T - A.astype(float) @ B.astype(float).T).max() < 1e-5  # hardware waits for the registers


def test_a_wait_behind_other_instructions_is_enough() -> None:
    between = " add.u32 %r300, %r300, 1;\n bar.sync 0;\n"
    r, _ = launch(PRODUCT, (WAIT_LD, between + WAIT_LD))
    assert not r.findings, str(r)


def test_who_waits_for_columns_waits_for_those_who_hold_them() -> None:
    """CTA 0 hangs and holds all columns, CTA 1 waits for them: the report begins with the barrier of CTA 0."""
    text = module(ISSUE.replace(" tcgen05.commit", " // tcgen05.commit", 1) + wait())
    r = simulate(parse(text), kernel="k", grid=(2, 1, 1), block=(128, 1, 1), args=[np.zeros(256, np.uint32), IMAGE], device=ONE)
    (hang,) = [f for f in r.findings if f.kind == "deadlock"]
    assert "mbarrier.try_wait" in str(hang.related[0])
