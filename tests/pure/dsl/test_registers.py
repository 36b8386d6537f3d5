"""Registers and operators: what they emit."""

from __future__ import annotations

from warpsmith import kernel, ptx, reg
from warpsmith.types import b32, b64, bf16, f16, f32, pred, s32, u32, u64


def test_operators_follow_the_type(emitted):
    def body():
        u, s, b, w = reg.scalar(u32), reg.scalar(s32), reg.scalar(b32), reg.scalar(u64)
        _ = u + 1, 1 + u, u - s, 5 - u, u * 3, u & 7, u | b, u ^ s, ~u
        _ = u >> 1, s >> 1, b >> 1, u << 2, w << 3, w >> u
        _ = u < 1, s < 1, b >= 1, w != 0, u == s
        _ = u.max(2), s.max(2), s.min(u)

    assert emitted(body) == [
        "add.u32 %ru1, %ru0, 1;", "add.u32 %ru2, %ru0, 1;", "sub.u32 %ru3, %ru0, %ri0;", "sub.u32 %ru4, 5, %ru0;",
        "mul.lo.u32 %ru5, %ru0, 3;", "and.b32 %ru6, %ru0, 7;", "or.b32 %ru7, %ru0, %r0;", "xor.b32 %ru8, %ru0, %ri0;",
        "not.b32 %ru9, %ru0;",
        "shr.u32 %ru10, %ru0, 1;", "shr.s32 %ri1, %ri0, 1;", "shr.u32 %r1, %r0, 1;", "shl.b32 %ru11, %ru0, 2;",
        "shl.b64 %rdu1, %rdu0, 3;", "shr.u64 %rdu2, %rdu0, %ru0;",
        "setp.lt.u32 %p0, %ru0, 1;", "setp.lt.s32 %p1, %ri0, 1;", "setp.ge.u32 %p2, %r0, 1;", "setp.ne.u64 %p3, %rdu0, 0;",
        "setp.eq.u32 %p4, %ru0, %ri0;",
        "max.u32 %ru12, %ru0, 2;", "max.s32 %ri2, %ri0, 2;", "min.s32 %ri3, %ri0, %ru0;",
    ]  # fmt: skip


def test_a_signed_shift_is_arithmetic(emitted):
    def body():
        s = reg.scalar(s32)
        s >>= 3

    assert emitted(body) == ["shr.s32 %ri0, %ri0, 3;"]


def test_in_place_forms_keep_the_register(emitted):
    def body():
        a = reg.scalar(u32)
        bits = [reg.scalar(u32), reg.scalar(u32)]
        a += 1
        a -= 2
        a *= 3
        a <<= 1
        a |= 1
        a &= a
        bits[1] ^= 1

    assert emitted(body) == [
        "add.u32 %ru0, %ru0, 1;", "sub.u32 %ru0, %ru0, 2;", "mul.lo.u32 %ru0, %ru0, 3;", "shl.b32 %ru0, %ru0, 1;",
        "or.b32 %ru0, %ru0, 1;", "and.b32 %ru0, %ru0, %ru0;", "xor.b32 %ru2, %ru2, 1;",
    ]  # fmt: skip


def test_widths_mix_by_widening(emitted):
    def body():
        p, n, s = reg.scalar(u64), reg.scalar(u32), reg.scalar(s32)
        _ = p + n, p + s, n + p, p + p

    assert emitted(body) == [
        "cvt.u64.u32 %rdu1, %ru0;", "add.u64 %rdu2, %rdu0, %rdu1;", "cvt.s64.s32 %rdu3, %ri0;", "add.u64 %rdu4, %rdu0, %rdu3;",
        "cvt.u64.u32 %rdu5, %ru0;", "add.u64 %rdu6, %rdu5, %rdu0;", "add.u64 %rdu7, %rdu0, %rdu0;",
    ]  # fmt: skip


def test_initial_values_are_exact_bits(emitted):
    def body():
        reg.scalar(f32, 1)
        reg.scalar(f32, -1e30)
        reg.scalar(f16, 1.5)
        reg.scalar(bf16, 1.5)
        reg.scalar(u32, -1)
        reg.scalar(pred, 1)
        reg.from_(ptx.special.tid.x(), s32)

    assert emitted(body) == [
        "mov.f32 %f0, 0f3F800000;", "mov.f32 %f1, 0fF149F2CA;", "mov.b16 %h0, 15872;", "mov.b16 %rs0, 16320;",
        "mov.u32 %ru0, -1;", "mov.pred %p0, 1;", "mov.u32 %ru1, %tid.x;", "mov.s32 %ri0, %ru1;",
    ]  # fmt: skip


def test_predicates(emitted):
    def body():
        p, q = reg.scalar(pred), reg.scalar(pred)
        a = reg.scalar(u32)
        _ = p & q, p ^ q
        ptx.inst.setp.eq.u32(p | q, a, 1)
        ptx.inst.add.u32(a, a, 1, pred=~p)
        ptx.inst.and_.pred(p, p, ~q)
        ptx.inst.shfl.sync.bfly.b32(a | p, a, 1, 31, 0xFFFFFFFF)

    assert emitted(body) == [
        "and.pred %p2, %p0, %p1;", "xor.pred %p3, %p0, %p1;", "setp.eq.u32 %p0|%p1, %ru0, 1;", "@!%p0 add.u32 %ru0, %ru0, 1;",
        "and.pred %p0, %p0, !%p1;", "shfl.sync.bfly.b32 %ru0|%p0, %ru0, 1, 31, 4294967295;",
    ]  # fmt: skip


def test_assigning_into_an_array_keeps_its_declaration(emitted):
    def body():
        acc = reg.array(u32, 4, name="acc")
        t = acc[0] + acc[1]
        acc[2] = t
        acc[3] = 7
        acc[1] += t

    assert emitted(body) == [
        "add.u32 %ru0, acc0, acc1;",
        "mov.u32 acc2, %ru0;",
        "mov.u32 acc3, 7;",
        "add.u32 acc1, acc1, %ru0;",
    ]
    assert ".reg .u32 \tacc<4>;" in kernel(body).ptx()


def test_arrays_are_vectors(emitted):
    def body():
        a, d = reg.array(f32, 4), reg.scalar(b64)
        x, y = reg.scalar(b32), reg.scalar(b32)
        ptx.inst.ld.global_.v4.f32(a, ptx.addr(d, 16))
        ptx.inst.mov.b64(d, [x, y])
        ptx.inst.mov.b64([x, y], d)
        assert len(a) == a.count == 4
        assert [r.name for r in a.hw_order(reverse=True)] == [r.name for r in a][::-1]

    assert emitted(body) == [
        "ld.global.v4.f32 {%af0_0, %af0_1, %af0_2, %af0_3}, [%rd0+16];", "mov.b64 %rd0, {%r0, %r1};",
        "mov.b64 {%r0, %r1}, %rd0;",
    ]  # fmt: skip


def test_names_like_ours_are_kept_apart():
    @kernel
    def body():
        r = reg.array(b32, 4, name="%r")
        t = reg.scalar(b32)
        ptx.inst.add.u32(t, r[0], r[3])

    assert "\tadd.u32 \t%t_r0, %r0, %r3;\n" in body.ptx(loc=False)


def test_scopes_have_registers_of_their_own():
    @kernel
    def body():
        outer = reg.scalar(u32, name="x")
        with ptx.scope():
            inner = reg.scalar(u32, name="x")
            ptx.inst.add.u32(inner, inner, 1)
            with ptx.scope():
                reg.scalar(u32, 5)
        ptx.inst.add.u32(outer, outer, 2)

    assert body.ptx(loc=False).partition("{\n")[2] == (
        "\t.reg .u32 \tx;\n\t{\n\t\t.reg .u32 \tx;\n\t\tadd.u32 \tx, x, 1;\n\t\t{\n\t\t\t.reg .u32 \t%ru2_<1>;\n"
        "\t\t\tmov.u32 \t%ru2_0, 5;\n\t\t}\n\t}\n\tadd.u32 \tx, x, 2;\n}\n"
    )


def test_escapes_of_chains(emitted):
    def body():
        a, p, m = reg.scalar(b32), reg.scalar(u64), reg.scalar(b32)
        ptx.inst.and_.b32(a, a, 1)
        ptx.inst.ld.global_.L1__no_allocate.b32(a, ptx.addr(p))
        ptx.inst.fence.proxy.async__global() if False else None
        ptx.inst.cp.async_.bulk.commit_group()
        ptx.inst.mov.b32(a, "%laneid")
        ptx.inst.vote.sync.ballot.b32(m, a == 0, 0xFFFFFFFF)

    assert emitted(body) == [
        "and.b32 %r0, %r0, 1;", "ld.global.L1::no_allocate.b32 %r0, [%rdu0];", "cp.async.bulk.commit_group;",
        "mov.b32 %r0, %laneid;",
        "setp.eq.u32 %p0, %r0, 0;",
        "vote.sync.ballot.b32 %r1, %p0, 4294967295;",
    ]  # fmt: skip


def test_any_instruction_even_tcgen05():
    @kernel(arch="sm_100a")
    def body():
        r, t = reg.array(b32, 8), reg.scalar(b32)
        ptx.inst.tcgen05.ld.sync.aligned._32x32b.x8.b32(r, ptx.addr(t))
        ptx.inst.tcgen05.wait__ld.sync.aligned()

    text = body.ptx(loc=False)
    assert "tcgen05.ld.sync.aligned.32x32b.x8.b32" in text
    assert "tcgen05.wait::ld.sync.aligned;" in text
