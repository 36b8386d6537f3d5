"""Run-time control flow."""

from __future__ import annotations

from warpsmith import intrinsic, kernel, ptx, reg, smem
from warpsmith.types import s32, u32


def test_if_and_else(emitted):
    def body():
        a = reg.scalar(u32)
        with ptx.if_(a == 0):
            a += 1
        with ptx.else_():
            a += 2

    assert emitted(body) == [
        "setp.eq.u32 %p0, %ru0, 0;", "@!%p0 bra $if_end_0;", "add.u32 %ru0, %ru0, 1;", "bra $else_end_0;", "$if_end_0:",
        "add.u32 %ru0, %ru0, 2;", "$else_end_0:",
    ]  # fmt: skip


def test_else_binds_to_the_if_just_closed(emitted):
    def body():
        a = reg.scalar(u32)
        with ptx.if_(a == 0):
            with ptx.if_(a == 1):
                a += 1
            with ptx.else_():
                a += 2
        with ptx.else_():
            a += 3

    assert emitted(body) == [
        "setp.eq.u32 %p0, %ru0, 0;", "@!%p0 bra $if_end_0;",
        "setp.eq.u32 %p1, %ru0, 1;", "@!%p1 bra $if_end_1;", "add.u32 %ru0, %ru0, 1;", "bra $else_end_0;", "$if_end_1:",
        "add.u32 %ru0, %ru0, 2;", "$else_end_0:",
        "bra $else_end_1;", "$if_end_0:", "add.u32 %ru0, %ru0, 3;", "$else_end_1:",
    ]  # fmt: skip


def test_else_after_a_nested_if_without_else(emitted):
    def body():
        a = reg.scalar(u32)
        with ptx.if_(a == 0), ptx.if_(a == 1):
            a += 1
        with ptx.else_():
            a += 3

    assert emitted(body)[5:] == ["$if_end_1:", "bra $else_end_0;", "$if_end_0:", "add.u32 %ru0, %ru0, 3;", "$else_end_0:"]


def test_else_must_follow_directly(mistake):
    def body():
        a = reg.scalar(u32)
        with ptx.if_(a == 0):
            a += 1
        a += 5
        with ptx.else_():
            a += 2

    assert "ptx.else_() must directly follow the `with ptx.if_(…)` block it belongs to" in mistake(body)


def test_if_inside_expr(emitted):
    def body():
        a, r = reg.scalar(u32), reg.array(u32, 2)
        with ptx.expr(), ptx.if_(a == 0):
            r[1] = ((a - 8) & 15) >> 1
        with ptx.else_():
            a += 1

    assert emitted(body) == [
        "setp.eq.u32 %p0, %ru0, 0;", "@!%p0 bra $if_end_0;", "sub.u32 %ru1, %ru0, 8;", "and.b32 %ru2, %ru1, 15;",
        "shr.u32 %ru3, %ru2, 1;", "mov.u32 %aru0_1, %ru3;", "bra $else_end_0;", "$if_end_0:", "add.u32 %ru0, %ru0, 1;",
        "$else_end_0:",
    ]  # fmt: skip


def test_loops(emitted):
    def body():
        n = reg.scalar(u32, init=4)
        p = n != 0
        with ptx.loop("work", pred=p):
            n -= 1
            ptx.inst.setp.ne.u32(p, n, 0)
        with ptx.loop("forever"):
            n += 1
        for k in ptx.range_(0, 8, 2):
            n += k

    assert emitted(body) == [
        "mov.u32 %ru0, 4;", "setp.ne.u32 %p0, %ru0, 0;", "work:", "sub.u32 %ru0, %ru0, 1;", "setp.ne.u32 %p0, %ru0, 0;",
        "@%p0 bra work;", "forever:", "add.u32 %ru0, %ru0, 1;", "bra.uni forever;",
        "mov.s32 %ri0, 0;", "$loop_0:", "setp.ge.s32 %p1, %ri0, 8;", "@%p1 bra $loop_end_0;", "add.u32 %ru0, %ru0, %ri0;",
        "add.s32 %ri0, %ri0, 2;", "bra $loop_0;", "$loop_end_0:",
    ]  # fmt: skip


def test_range_from_a_register(emitted):
    def body():
        start, stop = reg.scalar(u32), reg.scalar(s32)
        for _ in ptx.range_(start, stop):
            pass

    assert emitted(body)[:3] == ["mov.b32 %ri1, %ru0;", "$loop_0:", "setp.ge.s32 %p0, %ri1, %ri0;"]


def test_kloop_runs_the_body_as_often_as_told(emitted):
    calls = []

    def body():
        a = reg.scalar(u32)

        def one() -> None:
            calls.append(0)
            ptx.inst.add.u32(a, a, 1)

        ptx.kloop(7, unroll=3, body=one)

    lines = emitted(body)
    assert len(calls) == 4  # three in the loop of two trips, one behind it
    assert lines == [
        "mov.u32 %ru1, 2;", "kloop:", *["add.u32 %ru0, %ru0, 1;"] * 3, "sub.u32 %ru1, %ru1, 1;", "setp.ne.u32 %p0, %ru1, 0;",
        "@%p0 bra kloop;", "add.u32 %ru0, %ru0, 1;",
    ]  # fmt: skip


def test_waits_have_labels_of_their_own(emitted):
    def body():
        bars = smem.mbarrier(2)
        for i in range(2):
            ptx.mbarrier.wait(bars[i], 0)

    assert emitted(body) == [
        "$wait_0:", "mbarrier.try_wait.parity.shared::cta.b64 %p0, [mbar], 0;", "@!%p0 bra $wait_0;",
        "$wait_1:", "mbarrier.try_wait.parity.shared::cta.b64 %p1, [mbar+8], 0;", "@!%p1 bra $wait_1;",
    ]  # fmt: skip


def test_raw_statements_are_checked_and_known_afterwards(emitted):
    def body():
        ptx.raw(".reg .b32 %x<2>; mov.u32 %x0, 1; spin: add.u32 %x1, %x0, 1;")
        ptx.inst.add.u32("%x0", "%x1", 2)
        ptx.bra("spin")

    assert emitted(body) == [
        "mov.u32 %x0, 1;", "spin:", "add.u32 %x1, %x0, 1;", "add.u32 %x0, %x1, 2;", "bra spin;",
    ]  # fmt: skip


def test_raw_mistakes(mistake):
    assert "error: ptx.raw: `%q` is not declared" in mistake(lambda: ptx.raw("add.u32 %q, %q, 1;"))


def test_intrinsic_marks_what_it_emits():
    @intrinsic
    def twice(a, count):
        ptx.inst.add.u32(a, a, a)

    @kernel
    def body():
        twice(reg.scalar(u32), count=2)

    assert "\t// BEGIN twice(%ru0, count=2)\n\tadd.u32 \t%ru0, %ru0, %ru0;\n\t// END twice(%ru0, count=2)\n" in body.ptx(
        loc=False
    )
