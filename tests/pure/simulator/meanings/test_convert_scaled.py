"""Scaled, fixed-point and stochastic conversions: values worked out by hand, and a kernel that runs one."""

import numpy as np
import pytest

import warpsmith as ws
from warpsmith.assembly.ptx.isa import match
from warpsmith.simulator.meanings import registry


def run(mnemonic, dtype, *operands):
    built = registry.build(match(mnemonic)[0])
    assert isinstance(built, registry.Built)
    out = np.empty(1, dtype)
    with np.errstate(all="ignore"):
        built.fn(out, *(np.array([o]) for o in operands))
    return int(out[0])


F, H, W = np.float32, np.uint16, np.uint32
SCALED = "cvt.rn.scaled::n2::ue8m0.bf16x2"


@pytest.mark.parametrize(
    ("mnemonic", "dtype", "operands", "expected"),
    [
        # 1.0 in both halves: the upper times 4, the lower times 1/2
        (f"{SCALED}.e4m3x2", W, (H(0x3838), H(0x817E)), 0x40803F00),
        # NaN factor above, 448 * 2^127 overflows below
        (f"{SCALED}.e4m3x2", W, (H(0x387E), H(0xFFFE)), 0x7FFF7F80),
        ("cvt.rn.satfinite.scaled::n2::ue8m0.bf16x2.e4m3x2", W, (H(0xFE7E), H(0xFEFE)), 0xFF7F7F7F),
        # bytes 127 and -128 in units of 1/64, times 64: integers
        (f"{SCALED}.s2f6x2", W, (H(0x7F80), H(0x8585)), 0x42FEC300),
        ("cvt.rn.bf16x2.s2f6x2", W, (H(0x4080),), 0x3F80C000),
        # halves of a unit go to even: 1.5/64 -> 2, 2.5/64 -> 2
        ("cvt.rn.satfinite.s2f6x2.f32", H, (F(1.5 / 64), F(2.5 / 64)), 0x0202),
        ("cvt.rn.satfinite.s2f6x2.f32", H, (F(-3.0), F(np.nan)), 0x807F),
        ("cvt.rn.satfinite.relu.s2f6x2.f32", H, (F(-3.0), F(np.inf)), 0x007F),
        # 4 / 4 and 1 / 2
        ("cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32", H, (F(4.0), F(1.0), H(0x8180)), 0x4020),
        # 0x3f800001 has one discarded unit: only 0xffff carries
        ("cvt.rs.bf16x2.f32", W, (W(0x3F800001).view(F), W(0x3F800001).view(F), W(0xFFFFFFFE)), 0x3F813F80),
        ("cvt.rs.bf16x2.f32", W, (F(-1.0), W(0x7F7FFFFF).view(F), W(0xFFFF0001)), 0xBF807F80),
        ("cvt.rs.relu.satfinite.bf16x2.f32", W, (F(-1.0), W(0x7F7FFFFF).view(F), W(0xFFFF0001)), 0x00007F7F),
    ],
)
def test_value(mnemonic, dtype, operands, expected):
    assert hex(run(mnemonic, dtype, *operands)) == hex(expected)


@pytest.mark.parametrize("to", ["f16x2", "e4m3x4", "e2m1x4"])
def test_random_bits_whose_place_is_open_are_refused(to):
    built = registry.build(match(f"cvt.rs.satfinite.{to}.f32")[0])
    assert isinstance(built, registry.Refused)
    assert "random bits" in built.reason


def test_in_a_kernel():
    text = """.version 9.2
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .u64 %o; .reg .b32 %d, %e; .reg .b16 %h, %s, %g; .reg .f32 %a, %b; .reg .b32 %r;
ld.param.u64 %o, [out];
mov.b32 %a, 0x3f808000; mov.b32 %b, 0x3f808000; mov.b32 %r, 0x80007fff;
cvt.rs.bf16x2.f32 %d, %a, %b, %r;
st.global.b32 [%o], %d;
mov.b16 %s, 0x8585;
cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32 %h, 0f42fe0000, 0fc2800000, %s;
cvt.rn.scaled::n2::ue8m0.bf16x2.s2f6x2 %e, %h, %s;
cvt.u32.u16 %d, %h;
st.global.b32 [%o+4], %d;
st.global.b32 [%o+8], %e;
ret;
}
"""
    out = np.zeros(3, np.uint32)
    result = ws.simulate(ws.ptx.parse(text), kernel="k", grid=(1, 1, 1), block=(1, 1, 1), args=[out])
    assert result.completed
    assert [hex(w) for w in out] == ["0x3f813f80", "0x7fc0", "0x42fec280"]
