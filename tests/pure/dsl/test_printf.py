"""`ptx.printf`: what is printed, what is refused, and that printing changes nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.assembly.ptx.check import check
from warpsmith.base.errors import KernelError
from warpsmith.types import b32, bf16, f16, f32, f64, pred, s16, u8, u32, u64


@kernel(block=(32, 1, 1), grid=(2, 1, 1))
def every_type():
    thread, cta = ptx.special.tid.x(), ptx.special.ctaid.x()
    small, wide, double = reg.scalar(s16, -3), reg.scalar(u64, 1 << 40), reg.scalar(f64, 0.1)
    h, b, bits, byte = reg.scalar(f16), reg.scalar(bf16), reg.scalar(b32, 0x3FC00000), reg.scalar(u8)
    f = reg.scalar(f32, 1.5)
    ptx.inst.cvt.u8.u32(byte, 200)
    ptx.inst.cvt.rn.f16.f32(h, f)
    ptx.inst.cvt.rn.bf16.f32(b, f)
    with ptx.if_(thread == 1):
        ptx.printf(
            "%d.%u: %d %llu %hd %u|%g %g %f %f|%.1f %x|%s %s %c|%*d%%\n",
            cta,
            thread,
            small,
            wide,
            small,
            byte,
            h,
            b,
            bits,
            double,
            2.25,
            255,
            "text",
            "text",
            65,
            4,
            7,
        )
    with ptx.if_(thread >= 30):
        ptx.printf("no value\n")


def test_every_type() -> None:
    assert check(every_type.module()) == []
    result = every_type.simulate()
    assert not result.findings
    line = "{}.1: -3 1099511627776 -3 200|1.5 1.5 1.500000 0.100000|2.2 ff|text text A|   7%\n"
    assert sorted(result.printed.splitlines(keepends=True)) == sorted([line.format(0), line.format(1)] + ["no value\n"] * 4)


def test_equal_texts_are_one_variable() -> None:
    assert every_type.ptx().count(".global .align 1 .b8 printf_text") == 3
    assert every_type.ptx().count(".extern .func") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (lambda r: (7,), "ptx.printf takes a text without null characters first"),
        (lambda r: ("%d",), "ptx.printf: the format takes 1 values, and 0 values are given"),
        (lambda r: ("%d\n", r[u32], r[u32]), "ptx.printf: the format takes 1 values, and 2 values are given"),
        (lambda r: ("5% of %d", r[u32]), "ptx.printf: the format takes 2 values, and 1 value are given"),
        (lambda r: ("%y",), "ptx.printf: '%y' has a % that begins no conversion"),
        (lambda r: ("%d", r[f32]), "ptx.printf: value 0 is printed by %d, which takes an integer: a register or a number"),
        (lambda r: ("%d", 1.5), "ptx.printf: value 0 is printed by %d, which takes an integer: a register or a number"),
        (lambda r: ("%d", r[pred]), "ptx.printf: value 0 is printed by %d, which takes an integer: a register or a number"),
        (lambda r: ("%f", r[u32]), "ptx.printf: value 0 is printed by %f, which takes a float: a register or a number"),
        (lambda r: ("%s", r[u64]), "ptx.printf: value 0 is printed by %s, which takes a Python string"),
        (lambda r: ("%d", r[u64]), "ptx.printf: value 0 has 64 bits, and %d takes 32"),
        (lambda r: ("%lld", r[u32]), "ptx.printf: value 0 has 32 bits, and %lld takes 64"),
        (lambda r: ("%p", r[u32]), "ptx.printf: value 0 has 32 bits, and %p takes 64"),
        (lambda r: ("%d", 1 << 32), "ptx.printf: value 0, 4294967296, does not fit the 4 bytes of %d"),
        (
            lambda r: ("%d" * 33, *[1] * 33),
            "ptx.printf: the format takes 33 values, and 33 values are given; at most 32 can be printed at once",
        ),
    ],
)
def test_what_cannot_be_printed(arguments, said) -> None:
    @kernel(block=(32, 1, 1))
    def wrong():
        ptx.printf(*arguments({t: reg.scalar(t) for t in (u32, u64, f32, pred)}))

    with pytest.raises(KernelError) as caught:
        wrong.ptx()
    message = str(caught.value)
    assert "test_printf.py" in message
    assert said in message.splitlines()[0]


@pytest.mark.parametrize("loud", [False, True])
def test_printing_changes_no_finding(loud: bool) -> None:
    """A missing barrier, a store out of bounds and an undefined value: the same findings at the same lines."""

    @kernel(in_specs=(Tile(64, f32),), out_specs=(Tile(64, f32),), block=(64, 1, 1), grid=(1, 1, 1))
    def faulty(x, y):
        source, target = ptx.global_ptrs(x, y)
        thread = ptx.special.tid.x()
        tile, value, nothing = smem.alloc(f32, (64,)), reg.scalar(f32), reg.scalar(f32)
        ptx.inst.ld.global_.f32(value, ptx.addr(source + thread * 4))
        tile[thread] = value
        if loud:
            ptx.printf("%d %f %f\n", thread, value, nothing)
        ptx.mov(f32, value, tile[thread ^ 32])
        ptx.inst.st.global_.f32(ptx.addr(target + thread * 8), value)

    result = faulty.simulate(np.arange(64, dtype=np.float32))
    seen = {(f.kind, f.severity, f.threads) for f in result.findings}
    assert {kind for kind, _, _ in seen} == {"shared-race", "out-of-bounds"}
    assert seen == SEEN.setdefault("faulty", seen)
    assert bool(result.printed) == loud


SEEN: dict[str, set[tuple[str, str, str]]] = {}
