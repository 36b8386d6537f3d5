"""Loads and stores of tensor memory without their waits: what hardware does all the same, and what is portability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcgen05_program import A_AT, B_AT, BYTES, instruction, laid_out, module, wait
from warpsmith.assembly.ptx import parse
from warpsmith.simulator.api import simulate

IMAGE = np.zeros(BYTES, np.uint8)
ONES = np.ones((128, 16), np.float16)
DA, DB = laid_out(ONES, A_AT, "128B", False, IMAGE), laid_out(ONES[:16], B_AT, "128B", False, IMAGE)
KIND, WAITS = "missing-tcgen05-wait", {"ld": " tcgen05.wait::ld.sync.aligned;\n", "st": " tcgen05.wait::st.sync.aligned;\n"}
MEET = " tcgen05.fence::before_thread_sync;\n bar.sync 0;\n tcgen05.fence::after_thread_sync;\n"
FROM_SHARED = "%rd10, %rd11, %r200, %p2"
FROM_TENSOR = "[%r230], %rd11, %r200, %p2"
ORDERS: list[dict[str, Any]] = [{}, {"schedule": "adversarial"}, *({"schedule": "random", "seed": s} for s in range(3))]


def product(operands: str, label: str = "P") -> str:
    """D = A B by the first thread, awaited by everybody."""
    return f""" @!%first bra {label};
 mov.b64 %rd10, {DA}; mov.b64 %rd11, {DB}; mov.b32 %r200, {instruction(128, 16, 1, 0, 0)}; setp.ne.u32 %p2, 0, 0;
 tcgen05.mma.cta_group::1.kind::f16 [%tmem], {operands};
 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
{label}:
{wait(0, label + "W")} tcgen05.fence::after_thread_sync;
"""


LOAD = " tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, %r1}, [%mine];\n"
STORE = " tcgen05.st.sync.aligned.32x32b.x2.b32 [%mine], {%r2, %r2};\n"
VALUES = " add.u32 %r2, %t, 7;\n"
USE = " add.u32 %r3, %r0, %r1;\n"
RESULT = " st.global.b32 [%out], %r0;\n"


def run(middle: str, **options: Any) -> tuple[np.ndarray, set[tuple[str, str, str]]]:
    """Return what each thread has stored, and (kind, severity, opcode at fault) of the findings."""
    text = module(middle, threads=256)
    out = np.zeros(256, np.uint32)
    result = simulate(parse(text), kernel="k", grid=(1, 1, 1), block=(256, 1, 1), args=[out, IMAGE], **options)
    assert result.completed
    return out, {(f.kind, f.severity, f.message.split("`")[1][:11]) for f in result.findings}


def only(condition: str, label: str, text: str) -> str:
    """Text for threads whose predicate is true."""
    return f" @!{condition} bra {label};\n{text}{label}:\n"


LOW, HIGH = " setp.lt.u32 %p4, %t, 128;\n", " setp.ge.u32 %p5, %t, 128;\n"
FILLED = LOW + HIGH + VALUES + only("%p4", "FILL1", STORE + WAITS["st"]) + MEET
USED = (KIND, "portability", "add.u32")
OVERWRITTEN = "tcgen05.mma"


@pytest.mark.parametrize("order", ORDERS)
def test_a_load_whose_registers_were_used_has_read_its_columns(order: dict[str, Any]) -> None:
    _, found = run(FILLED + only("%p4", "A", LOAD + USE) + MEET + product(FROM_SHARED), **order)
    assert found == {USED, (KIND, "portability", OVERWRITTEN), (KIND, "portability", "tcgen05.dea")}
    _, found = run(FILLED + only("%p4", "A", LOAD) + MEET + only("%p4", "U", USE) + product(FROM_SHARED, "Q"), **order)
    assert {USED, (KIND, "error", OVERWRITTEN)} <= found
    _, found = run(FILLED + only("%p4", "A", LOAD) + MEET + product(FROM_SHARED) + only("%p4", "U", USE), **order)
    assert {USED, (KIND, "error", OVERWRITTEN)} <= found


@pytest.mark.parametrize("order", ORDERS)
def test_a_load_follows_the_stores_of_other_warps_to_its_lanes(order: dict[str, Any]) -> None:
    handed = LOW + HIGH + VALUES + only("%p4", "S", STORE) + MEET + only("%p5", "L", LOAD + WAITS["ld"] + RESULT)
    out, found = run(handed + MEET + product(FROM_SHARED), **order)
    assert out[128:].tolist() == list(range(7, 135))
    assert found == {
        (KIND, "portability", "tcgen05.ld."), (KIND, "portability", "tcgen05.mma"), (KIND, "portability", "tcgen05.dea"),
    }  # fmt: skip
    out, found = run(handed.replace(STORE, STORE + WAITS["st"]) + MEET + product(FROM_SHARED), **order)
    assert (out[128:].tolist(), found) == (list(range(7, 135)), set())


@pytest.mark.parametrize("order", ORDERS)
def test_a_product_does_not_follow_the_stores_of_warps(order: dict[str, Any]) -> None:
    stored = LOW + VALUES + " mov.b32 %r230, %tmem;\n" + only("%p4", "S", STORE * 4) + MEET
    found = run(stored + product(FROM_SHARED), **order)[1]
    assert (KIND, "error", "tcgen05.mma") in found


@pytest.mark.parametrize("order", ORDERS)
def test_columns_that_were_freed_hold_what_they_held(order: dict[str, Any]) -> None:
    """CUTLASS's gradients for Blackwell free them while other warps still load; nobody else has them yet."""
    free = " tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tmem, 512;\n"
    text = module(FILLED + only("%zero", "F", free) + MEET + only("%p5", "L", LOAD + WAITS["ld"] + RESULT), threads=256)
    head, _, tail = text.rpartition(free)
    out = np.zeros(256, np.uint32)
    result = simulate(parse(head + tail), kernel="k", grid=1, block=256, args=[out, IMAGE], **order)
    assert result.completed
    assert out[128:].tolist() == list(range(7, 135))
    assert [(f.kind, f.severity) for f in result.findings] == [("tmem-lifetime", "error")]
    assert result.findings[0].message.endswith("accesses columns 0 to 1 of tensor memory; column 0 has been freed")


def test_another_warp_frees_what_one_has_allocated() -> None:
    text = module("", threads=256).replace(" @!%zero bra DONE;", " setp.ne.u32 %p3, %warp, 1;\n @%p3 bra DONE;")
    out = np.zeros(256, np.uint32)
    (found,) = simulate(parse(text), kernel="k", grid=1, block=256, args=[out, IMAGE]).findings
    assert (found.kind, found.severity) == ("tmem-lifetime", "portability")
    assert found.message == "warp 1 frees the columns at 0x0, which warp 0 has allocated"
