"""st.async.release and red.async.release: asynchronous stores to global memory (PTX ISA 9.7.10.12, 9.7.15.7, 8.8, 8.9.1.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

PARAMETERS = ".param .u64 out, .param .u64 data, .param .u64 flag"
LOADS = " ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [flag]; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0;\n"
SPIN = "S: ld.acquire.gpu.global.u32 %r2, [%rd2]; setp.ne.u32 %p2, %r2, {count}; @%p2 bra S;\n"
SCHEDULES = [("fair", 0), ("adversarial", 0), ("adversarial", 1), *[("random", seed) for seed in range(5)]]


def launch(run: Any, body: str, *, block: int = 1, grid: int = 2, schedule: str = "fair", seed: int = 0) -> Any:
    """Run CTA 0, which stores, and CTA 1, which reads; return the result, what was read, and the arrays written."""
    out, data, flag = np.zeros(64, np.uint32), np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    options = {"schedule": schedule, "seed": seed, "target": "sm_100a", "version": "8.7"}
    result = run(LOADS + body, out, data, flag, parameters=PARAMETERS, block=block, grid=grid, **options)
    return result, out, data, flag


def kinds(result: Any) -> list[str]:
    return [f.kind for f in result.findings]


PASS_ON = (
    "@%p1 bra C;\n st.global.u32 [%rd1], 7; {store}; ret;\nC: "
    + SPIN.format(count=1)
    + " ld.global.u32 %r3, [%rd1]; st.global.u32 [%out], %r3;\n"
)


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
@pytest.mark.parametrize(
    "store",
    [
        "st.async.release.gpu.global.u32 [%rd2], 1",
        "st.async.release.sys.u32 [%rd2], 1",
        "st.async.mmio.release.sys.global.b32 [%rd2], 1",
        "red.async.release.gpu.global.add.u32 [%rd2], 1",
        "red.async.mmio.release.sys.add.s32 [%rd2], 1",
    ],
)
def test_who_acquires_the_value_knows_what_was_done_before_the_store(run: Any, store: str, schedule: str, seed: int) -> None:
    result, out, _, flag = launch(run, PASS_ON.format(store=store), schedule=schedule, seed=seed)
    assert result.completed
    assert [str(f) for f in result.findings] == []
    assert (out[0], flag[0]) == (7, 1)


def test_what_was_stored_after_it_is_not_released(run: Any) -> None:
    late = "st.async.release.gpu.global.u32 [%rd2], 1; st.global.u32 [%rd1], 8"
    assert kinds(launch(run, PASS_ON.format(store=late))[0]) == ["global-race"]


def test_a_relaxed_read_and_a_fence_acquire_it(run: Any) -> None:
    body = PASS_ON.format(store="st.async.release.gpu.global.u32 [%rd2], 1").replace("ld.acquire", "ld.relaxed")
    fenced = body.replace(" ld.global.u32 %r3", " fence.acq_rel.gpu; ld.global.u32 %r3")
    assert kinds(launch(run, fenced)[0]) == []
    assert kinds(launch(run, body)[0]) == ["global-race"]


def test_a_weak_read_of_the_value_is_named_with_both_places(run: Any) -> None:
    body = PASS_ON.format(store="st.async.release.gpu.global.u32 [%rd2], 1").replace("ld.acquire.gpu", "ld")
    result, *_ = launch(run, body)
    first = result.findings[0]
    assert first.kind == "async-read-before-complete"
    assert first.message == (
        "`ld.global.u32` reads global address 0x700000000500 before its thread can know that `st.async.release.gpu` has "
        "written it"
    )
    assert first.repair == "Read what it stores with ld.acquire until the value shows, and let all others know by a barrier."
    assert [r.message for r in first.related] == ["`st.async.release.gpu` by an asynchronous store of warp 0 of cta (0,0,0)"]


OWN = "{store}; {wait} ld.global.u32 %r3, [%rd2]; st.global.u32 [%out], %r3;\n"


def test_the_store_is_not_in_the_program_order_of_its_own_thread(run: Any) -> None:
    store = "st.async.release.gpu.global.u32 [%rd2], 1"
    assert kinds(launch(run, OWN.format(store=store, wait=""), grid=1)[0]) == ["async-read-before-complete"]
    waiting = launch(run, OWN.format(store=store, wait=SPIN.format(count=1)), grid=1)
    assert (kinds(waiting[0]), waiting[1][0]) == ([], 1)
    again = launch(run, f"{store}; st.global.u32 [%rd2], 2;\n", grid=1)
    assert kinds(again[0]) == ["async-overwrite"]


def test_two_asynchronous_stores_of_a_thread_have_no_order(run: Any) -> None:
    both = "st.async.release.gpu.global.u32 [%rd1], 7; st.async.release.gpu.global.u32 [%rd2], 1"
    body = PASS_ON.format(store=both).replace(" st.global.u32 [%rd1], 7;", "")
    assert kinds(launch(run, body)[0]) == ["async-read-before-complete"]


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
def test_reductions_of_many_threads_add_up(run: Any, schedule: str, seed: int) -> None:
    body = (
        "@%p1 bra C;\n mul.wide.u32 %rd5, %t, 4; add.u64 %rd6, %rd1, %rd5; st.global.u32 [%rd6], %t;"
        " red.async.release.gpu.global.add.u32 [%rd2], 1; ret;\nC: "
        + SPIN.format(count=64)
        + " mul.wide.u32 %rd5, %t, 4; add.u64 %rd6, %rd1, %rd5; ld.global.u32 %r3, [%rd6];"
        " add.u64 %rd7, %out, %rd5; st.global.u32 [%rd7], %r3;\n"
    )
    result, out, _, flag = launch(run, body, block=64, schedule=schedule, seed=seed)
    assert [str(f) for f in result.findings] == []
    assert flag[0] == 64
    assert (out == np.arange(64)).all()


@pytest.mark.parametrize(("element", "size"), [("b8", 1), ("u16", 2), ("s32", 4), ("b64", 8), ("f32", 4), ("f64", 8)])
def test_as_many_bytes_as_the_type_has(run: Any, element: str, size: int) -> None:
    register = {"b8": "%c1", "u16": "%h1", "f32": "%f1", "f64": "%fd1", "b64": "%rd9", "s32": "%r9"}[element]
    made = f"mov.b{max(16, 8 * size)} {register}, -1; " if register[1] != "f" else f"mov.b{8 * size} {register}, -1; "
    if element == "b8":
        made = ".reg .b8 %c1; mov.b16 %h1, -1; cvt.u8.u16 %c1, %h1; "
    result, _, _, flag = launch(run, f"{made}st.async.release.gpu.global.{element} [%rd2+8], {register};\n", grid=1)
    assert result.completed
    assert flag.tobytes() == bytes(8) + b"\xff" * size + bytes(248 - size)


def test_a_generic_address_elsewhere_is_named(run: Any) -> None:
    body = " .shared .b32 word; mov.u32 %r3, word; cvt.u64.u32 %rd3, %r3; cvta.shared.u64 %rd4, %rd3;\n"
    body += " st.async.release.gpu.u32 [%rd4], 1;\n"
    result, *_ = launch(run, body, grid=1)
    assert result.findings[0].message.startswith(
        "the generic address 0x10000000400 of `st.async` with .release is none of global"
    )


@pytest.mark.parametrize("store", ["st.async.release.gpu.global.u32", "red.async.release.gpu.global.add.u32"])
def test_a_value_that_nobody_wrote_is_named(run: Any, store: str) -> None:
    body = f" .shared .b32 word; ld.shared.u32 %r3, [word]; {store} [%rd2], %r3;\n"
    result, *_ = launch(run, body, grid=1)
    assert [(f.kind, f.message) for f in result.findings] == [
        (
            "uninitialised-read",
            f"`{store}`: a value that comes from memory or registers nobody wrote is stored to global memory",
        )
    ]


def test_bytes_of_a_remote_store_that_nobody_wrote_stay_so(run: Any) -> None:
    body = """ .shared .align 8 .b64 bar; .shared .b32 there; .shared .b32 word;
 mov.u32 %r1, bar; mov.u32 %r2, there;
 mbarrier.init.shared::cta.b64 [%r1], 1; fence.mbarrier_init.release.cluster;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 4; ld.shared.u32 %r3, [word];
 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r2], %r3, [%r1];
W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;
 @!%p1 bra W;
 ld.shared.u32 %r4, [%r2]; st.global.u32 [%out], %r4;
"""
    r = run(body, np.zeros(4, np.uint32), block=1, target="sm_90", version="8.1")
    assert [f.kind for f in r.findings] == ["uninitialised-read"]
    assert r.findings[0].message.startswith("`st.global.u32`: a value that comes from memory or registers nobody wrote")
