"""Transpiled source: what it looks like, and what is refused."""

from __future__ import annotations

import pytest

from warpsmith import ptx
from warpsmith.assembly.ptx.printer import print_module
from warpsmith.base.errors import CapabilityError, InputError, PtxError

SOURCE = """.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry odd$name(.param .u64 p, .param .align 8 .b8 blob[16])
.maxntid 128, 1, 1
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<2>;
	.reg .f32 %f<2>;
	.shared .align 4 .b8 tile[64];
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	add.s32 %r1, %r1, 4;
	setp.lt.u32 %p1, %r1, 0x10;
	@!%p1 bra DONE;
	mov.f32 %f1, 0f7FC00001;
	mov.f32 %f1, 0f3FC00000;
	{
	.reg .b32 %r<2>;
	xor.b32 %r1, %r1, -1;
	}
	st.shared.v2.f32 [tile+8], {%f1, %f1};
	bar.sync 0;
	ld.global.nc.L1::no_allocate.v2.b32 {%r2, %r3}, [%rd1+16];
DONE:
	ret;
}
"""


def test_plain():
    assert (
        ptx.to_python(SOURCE)
        == '''"""Kernels of <string>, written by `warpsmith transpile`."""

from warpsmith import kernel, ptx, reg
from warpsmith.types import b32, b64, f32, pred


def odd_name():
    ptx.declare(".extern .shared .align 16 .b8 dynamic[];")
    p = reg.array(pred, 2, name="%p")
    r = reg.array(b32, 4, name="%r")
    rd = reg.array(b64, 2, name="%rd")
    f = reg.array(f32, 2, name="%f")
    ptx.raw(".shared .align 4 .b8 tile[64];")
    ptx.inst.ld.param.u64(rd[1], ptx.addr("p"))
    ptx.inst.mov.u32(r[1], "%tid.x")
    ptx.inst.add.s32(r[1], r[1], 4)
    ptx.inst.setp.lt.u32(p[1], r[1], 16)
    ptx.inst.bra("DONE", pred=~p[1])
    ptx.raw("mov.f32 \\t%f1, 0f7FC00001;")
    ptx.inst.mov.f32(f[1], 1.5)
    with ptx.scope():
        r_1 = reg.array(b32, 2, name="%r")
        ptx.inst.xor.b32(r_1[1], r_1[1], -1)
    ptx.inst.st.shared.v2.f32(ptx.addr("tile", 8), [f[1], f[1]])
    ptx.inst.bar.sync(0)
    ptx.inst.ld.global_.nc.L1__no_allocate.v2.b32([r[2], r[3]], ptx.addr(rd[1], 16))
    ptx.label("DONE")
    ptx.inst.ret()


odd_name.__name__ = "odd$name"
odd_name = kernel(
    arch="sm_90a",
    version=(8, 0),
    raw_params=[("u64", "p"), ("b8.align8.array16", "blob")],
    raw_directives=[("maxntid", (128, 1, 1))],
)(odd_name)
'''
    )


def test_sugared_lines():
    lines = [line.strip() for line in ptx.to_python(SOURCE, sugar=True).splitlines()]
    for line in (
        'ptx.ld(u64, rd[1], ptx.addr("p"), space="param")',
        'ptx.setp("lt", u32, p[1], r[1], 16)',
        'ptx.bra("DONE", pred=~p[1])',
        "ptx.bar.sync(0)",
        'ptx.st(f32, ptx.addr("tile", 8), [f[1], f[1]], space="shared")',
        "r_1[1] ^= -1",
        "ptx.ret()",
    ):
        assert line in lines


@pytest.mark.parametrize("sugar", [False, True])
def test_the_round_trip_prints_the_same_statements(sugar):
    space: dict[str, object] = {}
    exec(ptx.to_python(SOURCE, sugar=sugar), space)
    again = ptx.parse(space["odd_name"].ptx(loc=False))  # type: ignore[attr-defined]
    first = ptx.parse(SOURCE.replace("0x10", "16"))

    def statements(module):
        text = print_module(module, locations=False)
        return sorted(line.strip() for line in text.splitlines() if not line.strip().startswith((".reg", ".version")))

    assert statements(again) == statements(first)


VECTORS = """.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
	.reg .v2 .u32 	%c;
	.reg .u32 	%x<5>;
	.reg .u64 	%r<3>;
	ld.param.u64 	%r0, [p];
	ld.v2.u32 	%c, [%r0];
	mov.u32 	%x1, %c.y;
	mov.v2.u32 	%c, {%x1, 7};
	mov.u32 	%c.x, %x1;
	mov.b64 	%r1, %c;
	mov.v2.u32 	{%x3, %x4}, {%x1, %c.y};
	st.v2.u32 	[%r0], %c;
	st.u64 	[%r0+8], %r1;
	ret;
}
"""


@pytest.mark.parametrize("sugar", [False, True])
def test_vector_registers_keep_their_elements(sugar):
    space: dict[str, object] = {}
    exec(ptx.to_python(VECTORS, sugar=sugar), space)

    def statements(text):
        return sorted(line.strip() for line in text.splitlines() if line.strip().startswith((".reg", "ld.", "mov.", "st.")))

    assert statements(space["k"].ptx(loc=False)) == statements(VECTORS)  # type: ignore[attr-defined]
    assert len(statements(VECTORS)) == 12


def test_one_kernel_of_several():
    two = SOURCE + SOURCE[SOURCE.index(".visible") :].replace("odd$name", "second")
    source = ptx.to_python(two, kernel_name="second")
    assert "def second():" in source
    assert "odd" not in source
    with pytest.raises(InputError, match=r"^<string> has no kernel 'third'; it has: odd\$name, second$"):
        ptx.to_python(two, kernel_name="third")


def test_bad_input(tmp_path):
    with pytest.raises(InputError, match=r"has no kernel to write$"):
        ptx.to_python(".version 8.0\n.target sm_90a\n.address_size 64\n")
    with pytest.raises((PtxError, InputError)):
        ptx.to_python("")
    with pytest.raises(PtxError):
        ptx.to_python("not PTX\nat all\n")
    with pytest.raises(InputError, match=r"absent\.ptx"):
        ptx.to_python(str(tmp_path / "absent.ptx"))
    with pytest.raises(InputError, match=r"^PTX is given as text or as a path, not as int$"):
        ptx.to_python(3)  # type: ignore[arg-type]
    with pytest.raises(
        CapabilityError, match=r"^transpile: <string> has \.target texmode_independent, which @kernel cannot declare$"
    ):
        ptx.to_python(SOURCE.replace("sm_90a\n", "sm_90a, texmode_independent\n", 1))


def test_parse_takes_text_and_paths(tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(SOURCE)
    assert len({str(ptx.parse(x)) for x in (SOURCE, path, str(path))}) == 1
