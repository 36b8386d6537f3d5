"""Loads and stores of every width in every space, generic addresses, constants, special registers."""

# ruff: noqa: E501 (lines of PTX)

import numpy as np
import pytest

from warpsmith.simulator import simulate

HEAD = ".version 8.6\n.target sm_90\n.address_size 64\n"
REGISTERS = ".reg .b16 %h<20>; .reg .b32 %r<60>; .reg .b64 %rd<40>; .reg .f32 %f<9>; .reg .pred %p<9>; .reg .b128 %q<4>;"


def run(body, *args, parameters=".param .u64 out, .param .u64 in", extra="", grid=1, block=32, **options):
    text = f"{HEAD}{extra}\n.visible .entry k({parameters})\n{{ {REGISTERS}\n{body}\nret; }}"
    result = simulate(text, grid=grid, block=block, args=args, **options)
    assert not result.findings, str(result)
    assert result.completed
    return result


PROLOGUE = """ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, {stride}; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
"""
data = np.random.default_rng(0).integers(0, 256, 32 * 64, dtype=np.uint8)


@pytest.mark.parametrize("space", ["global", "shared", "local", "generic"])
@pytest.mark.parametrize(
    ("mnemonic", "bytes_", "registers"),
    [
        ("u8", 1, "%h1"), ("b16", 2, "%h1"), ("b32", 4, "%r2"), ("f32", 4, "%f1"), ("b64", 8, "%rd10"), ("b128", 16, "%q1"),
        ("v2.u8", 2, "{%h1, %h2}"), ("v4.b16", 8, "{%h1, %h2, %h3, %h4}"), ("v4.b32", 16, "{%r2, %r3, %r4, %r5}"),
        ("v4.u32", 16, "{%r9, %r3, %r20, %r5}"), ("v2.b64", 16, "{%rd10, %rd11}"),
    ],
)  # fmt: skip
def test_bytes_come_back_as_they_went(space, mnemonic, bytes_, registers):
    """In through global memory, out and back through the space, out through global memory."""
    there = {
        "global": "mov.u64 %rd6, scratch; add.s64 %rd6, %rd6, %rd3;",
        "shared": "mov.u64 %rd6, box; add.s64 %rd6, %rd6, %rd3;",
        "local": "mov.u64 %rd6, mine;",
        "generic": "mov.u64 %rd6, box; cvta.shared.u64 %rd6, %rd6; add.s64 %rd6, %rd6, %rd3;",
    }[space]
    dot = "" if space == "generic" else f".{space}"
    body = (
        ".shared .align 16 .b8 box[1024]; .local .align 16 .b8 mine[32];" + PROLOGUE.format(stride=bytes_) + there
        + f"ld.global.{mnemonic} {registers}, [%rd5]; st{dot}.{mnemonic} [%rd6], {registers};"
        + f"ld{dot}.{mnemonic} {registers}, [%rd6]; st.global.{mnemonic} [%rd4], {registers};"
    )  # fmt: skip
    out = np.zeros(32 * bytes_, np.uint8)
    run(body, out, data, extra=".global .align 16 .b8 scratch[1024];")
    assert np.array_equal(out, data[: 32 * bytes_])


def test_vectors_of_32_bytes():
    body = (
        PROLOGUE.format(stride=32) + "ld.global.v8.b32 {%r2,%r3,%r4,%r5,%r6,%r7,%r8,%r9}, [%rd5];"
        "st.global.v4.b64 [%rd4], {%rd10,%rd11,%rd12,%rd13};"
    ).replace(
        "st.global.v4",
        "mov.b64 %rd10,{%r2,%r3}; mov.b64 %rd11,{%r4,%r5}; mov.b64 %rd12,{%r6,%r7}; mov.b64 %rd13,{%r8,%r9}; st.global.v4",
    )
    out = np.zeros(1024, np.uint8)
    text = f"{HEAD.replace('8.6', '8.8').replace('sm_90', 'sm_100')}.visible .entry k(.param .u64 out, .param .u64 in) {{ {REGISTERS} {body} ret; }}"
    result = simulate(text, grid=1, block=32, args=[out, data])
    assert not result.findings, str(result)
    assert np.array_equal(out, data[:1024])


@pytest.mark.parametrize(("type_", "dtype"), [("u8", np.uint8), ("s8", np.int8), ("u16", np.uint16), ("s16", np.int16)])
def test_narrow_loads_are_extended_by_their_sign(type_, dtype):
    size = np.dtype(dtype).itemsize
    body = (
        PROLOGUE.format(stride=size)
        + f"mul.wide.u32 %rd6, %r1, 4; add.s64 %rd4, %rd1, %rd6; ld.global.{type_} %r2, [%rd5]; st.global.u32 [%rd4], %r2;"
    )
    out = np.zeros(32, np.int32)
    run(body, out, data)
    assert np.array_equal(out, data[: 32 * size].view(dtype).astype(np.int32))


def test_initialised_constants_globals_and_pointers_between_them():
    extra = """.const .align 4 .b32 table[4] = {10, 20, 30, 40};
.global .align 4 .f32 values[3] = {0f3F800000, 2.5, 0f40400000};
.global .align 8 .u64 where[2] = {values+4, generic(values)};
.global .align 4 .b8 text[4] = {104, 105, 0, 0};"""
    body = (
        PROLOGUE.format(stride=4)
        + """
and.b32 %r2, %r1, 3; mul.lo.u32 %r3, %r2, 4; mov.u32 %r4, table; add.u32 %r4, %r4, %r3; ld.const.u32 %r5, [%r4];
ld.global.u64 %rd8, [where]; ld.global.f32 %f1, [%rd8]; ld.global.u64 %rd9, [where+8]; ld.f32 %f2, [%rd9+8]; add.f32 %f1, %f1, %f2;
cvt.rzi.u32.f32 %r6, %f1; ld.global.u8 %r7, [text+1]; mad.lo.u32 %r5, %r6, 1000, %r5; mad.lo.u32 %r5, %r7, 100000, %r5;
mov.u64 %rd20, table; cvta.const.u64 %rd20, %rd20; ld.u32 %r8, [%rd20+12]; add.u32 %r5, %r5, %r8;
st.global.u32 [%rd4], %r5; setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [values], %r5;"""
    )
    out = np.zeros(32, np.uint32)
    result = run(body, out, data, extra=extra)
    want = 105 * 100000 + 5 * 1000 + np.array([10, 20, 30, 40])[np.arange(32) % 4] + 40
    assert np.array_equal(out, want)
    assert result.globals["values"].view(np.uint32)[0] == want[0]


def test_parameters_can_be_addressed():
    body = """ld.param.u64 %rd1, [out]; mov.u64 %rd2, s; cvta.param.u64 %rd3, %rd2; ld.u32 %r2, [%rd3+8];
ld.param.v2.u32 {%r3, %r4}, [s]; add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; st.global.u32 [%rd1], %r2;"""
    out = np.zeros(1, np.uint32)
    run(body, out, np.array([1, 20, 300, 0], np.uint32).tobytes(), parameters=".param .u64 out, .param .align 8 .b8 s[16]")
    assert out[0] == 321


def test_isspacep_and_window_arithmetic():
    body = (
        ".shared .align 4 .b8 box[64]; .local .align 4 .b8 mine[16];"
        + PROLOGUE.format(stride=4)
        + """
mov.u64 %rd6, box; cvta.shared.u64 %rd7, %rd6; mov.u64 %rd8, mine; cvta.local.u64 %rd9, %rd8; mov.u32 %r2, 0;
isspacep.shared %p1, %rd7; @%p1 add.u32 %r2, %r2, 1; isspacep.local %p1, %rd9; @%p1 add.u32 %r2, %r2, 2;
isspacep.global %p1, %rd1; @%p1 add.u32 %r2, %r2, 4; isspacep.shared %p1, %rd1; @%p1 add.u32 %r2, %r2, 8;
isspacep.global %p1, %rd7; @%p1 add.u32 %r2, %r2, 16; isspacep.shared::cluster %p1, %rd7; @%p1 add.u32 %r2, %r2, 32;
cvta.to.shared.u64 %rd10, %rd7; sub.u64 %rd11, %rd10, %rd6; cvt.u32.u64 %r3, %rd11; add.u32 %r2, %r2, %r3;
st.global.u32 [%rd4], %r2;"""
    )
    out = np.zeros(32, np.uint32)
    run(body, out, data)
    assert out.tolist() == [1 + 2 + 4 + 32] * 32


@pytest.mark.parametrize(
    ("register", "want"),
    [
        ("%tid.x", np.arange(96) % 8), ("%tid.y", np.arange(96) // 8 % 4), ("%tid.z", np.arange(96) // 32), ("%ntid.y", [4] * 96),
        ("%laneid", np.arange(96) % 32), ("%warpid", np.arange(96) // 32), ("%lanemask_lt", (1 << (np.arange(96) % 32)) - 1),
        ("%lanemask_eq", 1 << (np.arange(96) % 32)), ("%nctaid.x", [2] * 96), ("WARP_SZ", [32] * 96), ("%nwarpid", [64] * 96),
        ("%lanemask_gt", [0xFFFFFFFF ^ ((2 << (i % 32)) - 1) for i in range(96)]), ("%dynamic_smem_size", [64] * 96),
    ],
)  # fmt: skip
def test_special_registers(register, want):
    body = """ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mad.lo.u32 %r1, %tid.y, 8, %r1; mad.lo.u32 %r1, %tid.z, 32, %r1;
mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; mov.u32 %r2, REG; st.global.u32 [%rd4], %r2;""".replace("REG", register)
    body = body.replace("mad.lo.u32 %r1, %tid.y", "mov.u32 %r8, %tid.y; mad.lo.u32 %r1, %r8")
    body = body.replace("mad.lo.u32 %r1, %tid.z", "mov.u32 %r9, %tid.z; mad.lo.u32 %r1, %r9")
    out = np.zeros(96, np.uint32)
    run(body, out, data, grid=2, block=(8, 4, 3), dynamic_shared=64)
    assert out.tolist() == [int(w) & 0xFFFFFFFF for w in want]


def test_clocks_move_forward():
    body = (
        PROLOGUE.format(stride=4)
        + """
mov.u64 %rd6, %clock64; mov.u32 %r2, %clock; mov.u64 %rd7, %clock64; setp.gt.u64 %p1, %rd7, %rd6; selp.u32 %r3, 1, 0, %p1;
st.global.u32 [%rd4], %r3;"""
    )
    out = np.zeros(32, np.uint32)
    run(body, out, data)
    assert out.tolist() == [1] * 32


def test_partial_warps_and_one_thread():
    body = PROLOGUE.format(stride=4) + "activemask.b32 %r2; st.global.u32 [%rd4], %r2;"
    out = np.zeros(40, np.uint32)
    run(body, out, data, block=40)
    assert out.tolist() == [0xFFFFFFFF] * 32 + [0xFF] * 8
    out = np.zeros(1, np.uint32)
    run(body, out, data, block=1)
    assert out.tolist() == [1]


def test_setmaxnreg_waits_for_registers():
    text = f"""{HEAD.replace("sm_90", "sm_90a")}
.visible .entry k(.param .u64 out) {{ {REGISTERS}
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 128; @%p1 bra GIVE;
setmaxnreg.inc.sync.aligned.u32 240; ld.volatile.global.u32 %r2, [%rd1]; st.global.u32 [%rd1+4], %r2; bra END;
GIVE: mov.u32 %r3, 7; st.volatile.global.u32 [%rd1], %r3; {{}} END: ret; }}"""
    out = np.zeros(2, np.uint32)
    result = simulate(text.replace("{}", "setmaxnreg.dec.sync.aligned.u32 40;"), grid=1, block=512, args=[out])
    assert not result.findings, str(result)
    assert out.tolist() == [7, 7]
    result = simulate(text.replace("{}", "bar.sync 0;"), grid=1, block=512, args=[out])
    assert [f.kind for f in result.findings] == ["setmaxnreg-budget", "deadlock"]
    assert "240 registers per thread: the CTA has 65536 and its warps hold 65536" in str(result)


@pytest.mark.parametrize(
    ("directives", "threads", "allotted", "most"),
    [
        ("", 512, 128, 256),
        (".maxnreg 255", 256, 256, 256),
        (".maxnreg 100", 256, 104, 184),
        (".maxntid 384 .minnctapersm 2", 384, 80, 192),
        (".reqntid 640 .minnctapersm 2", 640, 48, 144),
    ],
)
def test_setmaxnreg_begins_with_what_the_directives_allot(directives: str, threads: int, allotted: int, most: int):
    """What ptxas 13.0 and 13.5 say they use, rounded up to 8; one warpgroup grows to the most that the others leave."""
    text = f"""{HEAD.replace("sm_90", "sm_90a")}
.visible .entry k() {directives} {{ {REGISTERS}
mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 128; @%p1 bra GIVE;
setmaxnreg.inc.sync.aligned.u32 COUNT; bra END;
GIVE: setmaxnreg.dec.sync.aligned.u32 24; END: ret; }}"""
    found = simulate(text.replace("COUNT", str(most)), grid=1, block=threads, args=[])
    assert found.completed, str(found)
    if most < 256:
        found = simulate(text.replace("COUNT", str(most + 8)), grid=1, block=threads, args=[])
        assert f"{most + 8} registers per thread: the CTA has {allotted * threads} and its warps hold" in str(found)


@pytest.mark.parametrize(
    ("others", "severity", "message"),
    [
        ("40", None, ""),
        ("24", "portability", "was executed with different counts by the warps of a warpgroup: they have 40, 40, 40, 24"),
        ("", "error", "was executed by some warps of a warpgroup only: they have 40, 40, 40, 256"),
    ],
)
def test_warps_of_a_warpgroup_execute_the_same_setmaxnreg(others: str, severity: str | None, message: str):
    last = f"setmaxnreg.dec.sync.aligned.u32 {others};" if others else ""
    text = f"""{HEAD.replace("sm_90", "sm_90a")}
.visible .entry k() {{ {REGISTERS}
mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 96; @%p1 bra LAST;
setmaxnreg.dec.sync.aligned.u32 40; bra END;
LAST: {last} END: ret; }}"""
    found = simulate(text, grid=1, block=128, args=[]).findings
    said = [f"`setmaxnreg.dec.sync.aligned.u32` {message} registers"] if message else []
    assert [(f.kind, f.severity, f.message) for f in found] == [("setmaxnreg-budget", severity, m) for m in said]


def test_a_grid_waits_for_those_it_depends_on() -> None:
    """One grid runs at a time: what the one before wrote is there, and the report says so."""
    text = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
 .reg .b32 %r<4>; .reg .b64 %rd<2>;
 ld.param.u64 %rd1, [out]; griddepcontrol.wait;
 ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1; griddepcontrol.launch_dependents;
 ret;
}
"""
    out = np.zeros(1, np.uint32)
    for count in (1, 2):
        r = simulate(text, grid=1, block=1, args=[out])
        assert r.findings == []
        assert out[0] == count
    assert "griddepcontrol" in str(r.fidelity)
