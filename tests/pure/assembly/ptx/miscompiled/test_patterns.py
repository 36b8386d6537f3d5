"""Each pattern that ptxas makes wrong code of is told; what it was seen to make right code of is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warpsmith as ws
from miscompiled_cases import ENTRY, Case, cases
from ptx_corpus import FILES, text_of
from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.check import check
from warpsmith.assembly.ptx.miscompiled import miscompiled, table
from warpsmith.assembly.ptx.miscompiled.patterns import PATTERNS

BYTES = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 "
HALVES = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
EVERY = pytest.mark.parametrize("case", cases().values(), ids=lambda c: c.name)
LAST = {e.name: f"{e.last[0]}.{e.last[1]}" for e in table().entries}


def found(body: str, before: str = "", version: str = "8.6", ptxas: str = "13.0.88") -> list[str]:
    """The patterns found in a body, which the checker must accept."""
    module = parse(f".version {version}\n.target sm_90a\n.address_size 64\n{before}\n" + ENTRY.format(name="k", body=body))
    assert check(module) == []
    return [f.message.rsplit(" [", 1)[1].rstrip("]") for f in miscompiled(module, ptxas)]


def test_every_pattern_of_the_table_is_there_with_its_programs() -> None:
    assert [e.name for e in table().entries] == sorted(PATTERNS) == sorted(cases())


@EVERY
def test_the_broken_program_has_the_finding(case: Case) -> None:
    module = parse(case.text("broken"), "k.ptx")
    assert check(module) == []
    (finding,) = miscompiled(module, LAST[case.name])
    assert (finding.kind, finding.severity) == ("ptxas-miscompiles", "error")
    assert finding.message.endswith(f" [{case.name}]")


@EVERY
def test_the_repaired_program_has_none(case: Case) -> None:
    module = parse(case.text("repaired"), "k.ptx")
    assert check(module) == []
    assert miscompiled(module) == []


@EVERY
def test_both_programs_compute_the_same(case: Case) -> None:
    """By the manual, as the simulator has it: numbers of every size, few different ones, and floats among them."""
    random = np.random.default_rng(5)
    words = random.integers(0, 1 << 32, (64, 8), np.uint32) >> random.integers(0, 32, (64, 8)).astype(np.uint32)
    words[16:32] = random.choice(np.array([0, 1, 7, 9, 0x7FFFFFFF, 0x80000000, 0xFFFFFFC0], np.uint32), (16, 8))
    words[32:48] = random.normal(0, 3, (16, 8)).astype(np.float32).view(np.uint32)
    words[48:] = random.normal(0, 3, (16, 16)).astype(np.float16).view(np.uint32)
    results: list[np.ndarray] = []
    for which in ("broken", "repaired"):
        out = np.zeros_like(words)
        run = ws.simulate(case.text(which), grid=(1,), block=(64,), args=[words.copy(), out])
        assert run.completed
        assert [str(f) for f in run.findings] == []
        results.append(out)
    assert (results[0] == results[1]).all()
    assert results[0].any()


@pytest.mark.parametrize(
    "body",
    [
        # rzi-of-ftz: no .ftz, another rounding, f32, bf16, a guarded negation
        "ld.global.b16 %h0, [%rd1]; neg.f16 %h1, %h0; cvt.rzi.s16.f16 %h2, %h1;",
        "ld.global.b16 %h0, [%rd1]; neg.ftz.f16 %h1, %h0; cvt.rmi.s16.f16 %h2, %h1;",
        "ld.global.b16 %h0, [%rd1]; neg.ftz.f16 %h1, %h0; cvt.rzi.f16.f16 %h2, %h1;",
        "ld.global.b32 %r0, [%rd1]; neg.ftz.f32 %r1, %r0; cvt.rzi.s32.f32 %r2, %r1;",
        "setp.eq.u32 %p0, %r11, 3; mov.b16 %h0, 5; mov.b16 %h1, %h0; @%p0 neg.ftz.f16 %h1, %h0; cvt.rzi.s16.f16 %h2, %h1;",
        # bfe-position
        "bfe.s32 %r1, %r11, 31, 8;",
        "bfe.s32 %r1, %r11, 40, 0;",
        "bfe.s32 %r1, -5, 40, 8;",
        "bfe.s32 %r1, %r11, 40, %r11;",
        "bfe.u32 %r1, %r11, 40, 8;",
        "ld.global.b64 %rd5, [%rd1]; bfe.s64 %rd6, %rd5, 70, 8;",
        # slct-constant: other types, other constants
        "slct.b32.s32 %r1, %r11, 5, 2147483647;",
        "slct.u32.s32 %r1, %r11, 5, 2147483647;",
        "slct.s32.s32 %r1, %r11, 5, 0x7f800000;",
        "slct.s32.s32 %r1, %r11, 5, -1;",
        # shift-by-float: as bits, or in another block
        "ld.global.b64 %rd5, [%rd1]; cvt.rzi.s32.f32 %r1, %r11; shl.b64 %rd6, %rd5, %r1;",
        "ld.global.b64 %rd5, [%rd1]; copysign.f32 %r1, %r11, %r11; shl.b64 %rd6, %rd5, %r1;",
        "ld.global.b64 %rd5, [%rd1]; ex2.approx.f32 %r1, %r11; shl.b64 %rd6, %rd5, %r1;",
        "ld.global.b64 %rd5, [%rd1]; set.lt.f32.s32 %r1, %r11, 4; shl.b64 %rd6, %rd5, %r1;",
        "ld.global.b64 %rd5, [%rd1]; add.f32 %r1, %r11, %r11; bra L; L: shl.b64 %rd6, %rd5, %r1;",
        "add.f32 %r1, %r11, %r11; shl.b32 %r2, %r11, %r1;",
        # video-h1: other parts, several lanes
        "vadd.s32.s32.s32 %r1.h0, %r11, %r11, %r11;",
        "vadd2.s32.s32.s32 %r1.h1, %r11, %r11, %r11;",
        # half-pair-atomic: global memory, loaded as words, a sum
        "ld.global.b64 %rd5, [%rd1]; mov.b64 {%r0, %r1}, %rd5; red.global.add.noftz.f16x2 [%rd2], %r0;",
        "ld.global.b64 %rd5, [%rd1]; add.u64 %rd6, %rd5, 1; cvt.u32.u64 %r0, %rd6; red.shared.add.noftz.f16x2 [%r11], %r0;",
        "ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%rd1]; red.shared.add.noftz.f16x2 [%r11], %r1;",
        # guarded-testp, guarded-set: nothing that the guard would keep, or built of one instruction
        "setp.eq.u32 %p0, %r11, 3; @%p0 testp.finite.f32 %p1, %r11;",
        "setp.eq.u32 %p0, %r11, 3; @%p0 set.lt.f32.s32 %r1, %r11, 7;",
        "setp.eq.u32 %p0, %r11, 3; mov.b32 %r1, 5; @%p0 set.lt.s32.s32 %r1, %r11, 7;",
        # byte-product: the same registers, others, one that is read before it is written, halves
        BYTES + "{%r4, %r5, %r6, %r7}, {%r0, %r0, %r0, %r0}, {%r0, %r0}, {%r4, %r5, %r6, %r7};",
        BYTES + "{%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r4, %r5, %r6, %r7};",
        BYTES + "{%r3, %r4, %r5, %r6}, {%r0, %r0, %r0, %r0}, {%r0, %r0}, {%r4, %r5, %r6, %r7};",
        HALVES + "{%r5, %r8, %r9, %r10}, {%r0, %r0, %r0, %r0}, {%r0, %r0}, {%r4, %r5, %r6, %r7};",
        # shift-by-cnot
        "cnot.b32 %r1, %r11; shl.b32 %r2, %r11, %r1;",
        "ld.global.b16 %h0, [%rd1]; cnot.b32 %r1, 255; shl.b16 %h1, %h0, %r1;",
        "ld.global.b16 %h0, [%rd1]; cnot.b32 %r1, %r11; shr.s16 %h1, %h0, %r1;",
        # abs-of-float: a result that may be negative, or a scaled one
        "add.f32 %r1, %r11, %r11; abs.f16x2 %r2, %r1;",
        "sqrt.approx.f32 %r1, %r11; abs.f16x2 %r2, %r1;",
        # saturated-cancel: nothing that cancels, or saturated before
        "ld.global.v2.b32 {%r0, %r1}, [%rd1]; sub.s32 %r2, %r0, %r1; sub.sat.s32 %r3, %r2, %r1;",
        "ld.global.v2.b32 {%r0, %r1}, [%rd1]; sub.s32 %r2, %r0, %r1; add.sat.s32 %r3, %r2, %r0;",
        "ld.global.v2.b32 {%r0, %r1}, [%rd1]; sub.sat.s32 %r2, %r0, %r1; add.sat.s32 %r3, %r2, %r1;",
        "ld.global.v2.b32 {%r0, %r1}, [%rd1]; sub.s32 %r2, %r0, %r1; mov.b32 %r0, 3; sub.sat.s32 %r3, %r2, %r0;",
        # saturated-constants: the first sum is wanted, or what is subtracted
        "add.s32 %r1, %r11, 100; st.global.b32 [%rd2], %r1; add.sat.s32 %r2, %r1, 200;",
        "add.s32 %r1, %r11, 100; sub.sat.s32 %r2, 200, %r1;",
        # lop3-zero-test: no predicate, another comparison, a guard
        "lop3.b32 %r1, %r11, %r11, 5, 0x96; setp.eq.u32 %p1, %r1, 0;",
        "setp.eq.u32 %p0, %r11, 3; lop3.or.b32 %r1|%p1, %r11, %r11, 5, 0x96, %p0; setp.eq.u32 %p2, %r1, 5;",
        "setp.eq.u32 %p0, %r11, 3; lop3.or.b32 %r1|%p1, %r11, %r11, 5, 0x96, %p0; setp.lt.s32 %p2, %r1, 0;",
        "setp.eq.u32 %p0, %r11, 3; lop3.or.b32 %r1|%p1, %r11, %r11, 5, 0x96, %p0; rem.s32 %r2, %r11, %r1;",
        "setp.eq.u32 %p0, %r11, 3; mov.b32 %r1, 9; @%p0 lop3.or.b32 %r1|%p1, %r1, %r1, 5, 9, %p0; setp.eq.u32 %p2, %r1, 0;",
        "setp.eq.u32 %p0, %r11, 3; lop3.or.b32 %r1|%p1, %r11, %r11, 5, 0x96, %p0; rem.u32 %r2, %r11, %r1;",
        "lop3.or.b32 %r1|%p1, %r11, %r11, 5, 0x96, %p0; bra L; L: setp.eq.u32 %p2, %r1, 0;",
        "lop3.or.b32 %r1|%p1, %r11, %r11, 5, 0x96, %p0; rcp.rn.f32 %r2, %r11; setp.eq.u32 %p2, %r1, 0;",
        # madc-high: a carry, or an unknown one, or the lower half
        "mov.b32 %r0, -3; add.cc.u32 %r1, %r0, %r0; madc.hi.s64 %rd6, %rd1, %rd2, %rd3;",
        "add.cc.u32 %r1, %r11, %r11; madc.hi.s64 %rd6, %rd1, %rd2, %rd3;",
        "mov.b32 %r0, 3; add.cc.u32 %r1, %r0, %r0; madc.lo.s64 %rd6, %rd1, %rd2, %rd3;",
        "ld.global.b16 %h0, [%rd1]; tanh.approx.f16 %h1, %h0; and.b16 %h2, %h1, 0;",
        # half-function-and: another type, another operation, another block, no constant
        "ld.global.b16 %h0, [%rd1]; tanh.approx.bf16 %h1, %h0; and.b16 %h2, %h1, 1;",
        "ld.global.b16 %h0, [%rd1]; tanh.approx.f16 %h1, %h0; or.b16 %h2, %h1, 1;",
        "ld.global.b16 %h0, [%rd1]; tanh.approx.f16 %h1, %h0; bra L; L: and.b16 %h2, %h1, 1;",
        "ld.global.v2.b16 {%h0, %h3}, [%rd1]; tanh.approx.f16 %h1, %h0; and.b16 %h2, %h1, %h3;",
        # negated-s16: not extended, or not negated
        "ld.global.b16 %h0, [%rd1]; neg.s16 %h1, %h0; cvt.u32.u16 %r0, %h1;",
        "ld.global.b16 %h0, [%rd1]; neg.s16 %h1, %h0; mul.lo.s16 %h2, %h1, 3;",
        "ld.global.b16 %h0, [%rd1]; not.b16 %h1, %h0; cvt.s32.s16 %r0, %h1;",
        "ld.global.v2.b16 {%h0, %h1}, [%rd1]; sub.s16 %h1, %h1, %h0; cvt.s32.s16 %r0, %h1;",
        # narrowed-float, narrowed-argument: taken as bits, or by another block's end; whole; another element is the float
        "ld.global.b32 %r1, [%rd1]; st.global.b16 [%rd2], %r1;",
        "add.f32 %r1, %r11, %r11; st.global.b32 [%rd2], %r1;",
        "add.f32 %r1, %r11, %r11; mov.b32 %r2, %r1; st.global.b16 [%rd2], %r2;",
        "add.f32 %r1, %r11, %r11; bra L; L: st.global.b16 [%rd2], %r1;",
        "add.f32 %r1, %r11, %r11; bar.sync 0; st.global.b16 [%rd2], %r1;",
        "add.f32 %r1, %r11, %r11; mov.u32 %r2, %clock; st.global.b16 [%rd2], %r1;",
        "add.f32 %r1, %r11, %r11; add.u32 %r1, %r1, 1; st.global.b16 [%rd2], %r1;",
        "add.f32 %r1, %r11, %r11; setp.eq.u32 %p0, %r11, 3; @%p0 st.global.b16 [%rd2], %r1;",
        "ex2.approx.f32 %r1, %r11; st.global.b8 [%rd2], %r1;",
        "copysign.f32 %r1, %r11, %r11; st.global.b8 [%rd2], %r1;",
        "set.lt.f32.s32 %r1, %r11, 4; st.global.b8 [%rd2], %r1;",
        "ld.global.f32 %rd5, [%rd1]; st.global.b32 [%rd2], %rd5;",
        "add.f32 %r1, %r11, %r11; st.global.v2.u16 [%rd2], {%r1, %r11};",
        "add.f16 %h1, %h0, %h0; st.global.b16 [%rd2], %h1;",
        # v8-store
        "ld.global.v4.b16 {%h0, %h1, %h2, %h3}, [%rd1]; st.global.v4.b16 [%rd2], {%h0, %h1, %h2, %h3};",
    ],
)  # fmt: skip
def test_what_ptxas_compiles_right_has_none(body: str) -> None:
    assert found(body) == []


@pytest.mark.parametrize(
    ("body", "pattern"),
    [
        ("neg.ftz.f16x2 %r1, %r11; mov.b32 {%h0, %h1}, %r1; cvt.rzi.sat.u8.f16 %h2, %h1;", "rzi-of-ftz"),
        ("ld.global.b16 %h0, [%rd1]; abs.ftz.f16 %h1, %h0; mov.b16 %h3, %h1; @%p0 cvt.rzi.s64.f16 %rd6, %h3;", "rzi-of-ftz"),
        ("mov.b32 %r1, 33; bfe.s32 %r2, %r11, %r1, 4;", "bfe-position"),
        ("bfe.s32 %r2, %r11, 40, 8; bra L; L: bfe.s32 %r2, %r11, 50, 8;", "bfe-position bfe-position"),
        ("slct.s32.s32 %r1, %r11, 5, 0x80000000;", "slct-constant"),
        ("mov.b32 %r2, 0x7f800001; slct.s32.s32 %r1, %r11, 5, %r2;", "slct-constant"),
        ("ld.global.b64 %rd5, [%rd1]; ld.global.f32 %r1, [%rd1]; shr.s64 %rd6, %rd5, %r1;", "shift-by-float"),
        ("mov.b64 %rd5, %rd1; mov.b32 %r1, 3; @%p0 add.f32 %r1, %r11, %r11; shr.u64 %rd6, %rd5, %r1;", "shift-by-float"),
        ("vmin.u32.u32.u32.sat %r1.h1, %r11.b0, %r11.h1, %r11;", "video-h1"),
        ("mul.wide.u32 %rd5, %r11, 9; cvt.u32.u64 %r0, %rd5; red.shared.add.noftz.bf16x2 [%r11], %r0;", "half-pair-atomic"),
        ("ld.v2.b64 {%rd5, %rd6}, [%rd1]; mov.b64 {_, %r1}, %rd6; atom.add.noftz.f16x2 %r0, [%rd2], %r1;", "half-pair-atomic"),
        ("mov.b32 %r1, 5; @%p0 set.lt.s32.s16 %r1, %h0, %h1;", "guarded-set"),
        ("mov.b16 %h1, 5; @%p0 set.lt.f16.f32 %h1, %r11, %r11;", "guarded-set"),
        ("cnot.b32 %r1, %r11; mov.b32 %r2, %r1; bra L; L: @%p0 shr.u16 %h1, %h0, %r2;", "shift-by-cnot"),
        ("ex2.approx.ftz.f32 %r1, %r11; abs.bf16x2 %r2, %r1;", "abs-of-float"),
        ("ld.global.v2.b32 {%r0, %r1}, [%rd1]; add.u32 %r2, %r0, %r1; sub.sat.s32 %r3, %r1, %r2;", "saturated-cancel"),
        ("ld.global.v2.b32 {%r0, %r1}, [%rd1]; sub.s32 %r2, %r0, %r1; add.sat.s32 %r3, %r1, %r2;", "saturated-cancel"),
        ("mov.b32 %r0, 7; sub.u32 %r1, %r0, %r11; add.sat.s32 %r2, %r0, %r1;", "saturated-constants"),
        ("lop3.and.b32 %r1|%p1, %r11, %r11, 5, 0x96, %p0; mov.b32 %r2, %r1; setp.ne.b32 %p2, 0, %r2;", "lop3-zero-test"),
        ("lop3.and.b32 %r1|%p1, %r11, %r11, 5, 0x96, %p0; div.u32 %r2, %r11, %r1;", "lop3-zero-test"),
        ("add.cc.u32 %r1, %r11, %r11; addc.u32 %r2, 0, 0; sub.sat.s32 %r3, %r11, %r1;", "saturated-cancel"),
        ("ex2.approx.f16 %h2, %h1; mov.b16 %h3, %h2; mov.b16 %h0, 3; and.b16 %h1, %h0, %h3;", "half-function-and"),
        ("mov.b16 %h2, 0; sub.s16 %h3, %h2, %h1; bra L; L: mad.wide.s16 %r1, %h0, %h3, %r11;", "negated-s16"),
        ("abs.s16 %h2, %h1; cvt.s64.s16 %rd5, %h2;", "negated-s16"),
        ("add.cc.s32 %r1, 5, 7; madc.hi.cc.u64 %rd6, %rd1, %rd2, %rd3;", "madc-high"),
        ("ld.global.v2.f32 {%r1, %r2}, [%rd1]; st.release.gpu.global.s8 [%rd2], %r2;", "narrowed-float"),
        ("@%p0 add.f32 %r11, %r11, %r11; add.u32 %r2, %r11, 1; st.u16 [%rd2], %r11;", "narrowed-float"),
        ("mov.f32 %r1, 0f40404321; st.volatile.shared.b16 [%r11], %r1;", "narrowed-float"),
        ("set.lt.and.f32.s32 %r1, %r11, 4, %p0; st.global.v2.b8 [%rd2], {%r11, %r1};", "narrowed-float"),
        ("cvt.rn.f64.s32 %rd5, %r11; st.local.u32 [%rd2], %rd5;", "narrowed-float"),
        ("rsqrt.approx.f64 %rd5, %rd1; st.global.v2.s32 [%rd2], {%rd5, %rd5};", "narrowed-argument"),
        ("fma.rn.bf16 %h2, %h0, %h1, %h0; st.global.u8 [%rd2], %h2;", "narrowed-float"),
        ("add.f32 %r1, %r11, %r11; { .param .align 8 .b8 s[8]; st.param.v2.b16 [s], {%r11, %r1}; }", "narrowed-argument"),
        (BYTES + "{%r1, %r6, %r3, %r4}, {%r1, %r2, %r1, %r2}, {%r5, %r5}, {%r8, %r9, %r6, %r7};", "byte-product"),
    ],
)  # fmt: skip
def test_other_forms_that_were_seen(body: str, pattern: str) -> None:
    head = "ld.global.v2.b16 {%h0, %h1}, [%rd1]; setp.eq.u32 %p0, %r11, 3;\n"
    assert found(head + body) == pattern.split()


def test_registers_of_inner_scopes_are_their_own() -> None:
    body = "ld.global.b16 %h0, [%rd1]; neg.ftz.f16 %h1, %h0;\n{ .reg .b16 %h1; mov.b16 %h1, %h0; cvt.rzi.s16.f16 %h2, %h1; }"
    assert found(body) == []
    assert found(body + " cvt.rzi.s16.f16 %h2, %h1;") == ["rzi-of-ftz"]


def test_every_way_to_a_value_counts() -> None:
    """A value that two instructions may have made is not told: ptxas keeps the negation apart there."""
    loop = "ld.global.b16 %h1, [%rd1];\nL: cvt.rzi.s16.f16 %h2, %h1; neg.ftz.f16 %h1, %h1; setp.eq.s16 %p0, %h2, 3; @%p0 bra L;"
    assert found(loop) == []


def test_releases() -> None:
    module = parse(cases()["bfe-position"].text("broken"), "k.ptx")
    said = {
        v: [(f.severity, f.message.partition(": ")[2]) for f in miscompiled(module, v)]
        for v in ("13.4.92", "13.5.37", "11.8.89", "14.0.1")
    }
    made = "gives -1 for a constant position past bit 31, where the sign is repeated"
    assert said == {
        "13.4.92": [("error", f"ptxas 13.4 {made} [bfe-position]")],
        "13.5.37": [],
        "14.0.1": [],
        "11.8.89": [("portability", f"ptxas {made} (seen with 12.0 to 13.4, not tried with 11.8) [bfe-position]")],
    }
    (any_release,) = miscompiled(module)
    assert any_release.message == f"`bfe.s32 %r4, %r0, 40, 8`: ptxas {made} (seen with 12.0 to 13.4) [bfe-position]"
    still = parse(cases()["returned-b128"].text("broken"), "k.ptx")
    (newer,) = miscompiled(still, "14.0.1")
    assert (newer.severity, newer.message.partition(" (")[2]) == (
        "portability",
        "seen with 12.4 to 13.5, not tried with 14.0) [returned-b128]",
    )
    (unoptimised,) = miscompiled(still, "13.0.88", ["-O0"])
    assert unoptimised.message.endswith("(seen with 12.4 to 13.5, not tried with -O0) [returned-b128]")


@pytest.mark.parametrize("path", FILES[::12], ids=lambda p: f"{p.parent.name}/{p.name}")
def test_no_compiler_writes_them(path: Path) -> None:
    """All of tests/data/ptx: tests/slow."""
    assert miscompiled(parse(text_of(path), path.name)) == []
