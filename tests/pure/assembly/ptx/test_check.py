"""What the checker says: messages, places and hints in full."""

from __future__ import annotations

import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.check import check

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
BEFORE = """\
.global .b32 g;
.shared .b32 s;
.func (.param .b32 r) f (.param .b32 a) { ret; }
.entry e (.param .u64 p)
{
.reg .b32 %r<4>;
.reg .b64 %rd<4>;
.reg .f32 %f<4>;
.reg .pred %p<4>;
"""


def said(text: str) -> str:
    return "\n".join(str(p) for p in check(parse(text, "k.ptx")))


STATEMENTS = {
    "add.s32 %r1, %r2, %r9;": (
        "k.ptx:13:19: error: `%r9` is not declared\n"
        "  add.s32 %r1, %r2, %r9;\n"
        "                    ^^^\n"
        "  hint: %r<4> is declared: %r0 … %r3"
    ),
    "add.f32 %f1, %r1, %rd1;": (
        "k.ptx:13:19: error: `%rd1` is .b64, an operand of type .f32 is wanted (.b32, .f32)\n"
        "  add.f32 %f1, %r1, %rd1;\n"
        "                    ^^^^"
    ),
    "add.s33 %r1, %r1, %r1;": (
        "k.ptx:13:1: error: `add` has no modifier `.s33`\n  add.s33 %r1, %r1, %r1;\n  ^^^^^^^\n  hint: did you mean `.s32`?"
    ),
    "adds.s32 %r1, %r1, 1;": (
        "k.ptx:13:1: error: unknown instruction `adds`\n  adds.s32 %r1, %r1, 1;\n  ^^^^^^^^\n  hint: did you mean `add`?"
    ),
    "add.s32 %r1, %r1;": (
        "k.ptx:13:1: error: `add.s32` takes 3 operands, 2 given\n  add.s32 %r1, %r1;\n  ^^^^^^^\n  hint: form: add.s32 d, a, b"
    ),
    "add.s32 %r1, %r1, 1.5;": (
        "k.ptx:13:19: error: `1.5` is a floating-point constant, type .s32 is wanted\n"
        "  add.s32 %r1, %r1, 1.5;\n"
        "                    ^^^"
    ),
    "@%r1 bra L; L:": (
        "k.ptx:13:1: error: the guard `%r1` is not a predicate register\n"
        "  @%r1 bra L; L:\n"
        "  ^^^^^^^^^^^\n"
        "  hint: declare it with `.reg .pred`"
    ),
    "bra M;\nL:": ("k.ptx:13:5: error: `M` is not a label of this function\n  bra M;\n      ^"),
    "ld.shared.b32 %r1, [g];": (
        "k.ptx:13:20: error: `[g]`: `g` is in .global, the instruction addresses .shared\n"
        "  ld.shared.b32 %r1, [g];\n"
        "                     ^^^"
    ),
    "ld.global.v2.b32 {%r1, %r2, %r3}, [g];": (
        "k.ptx:13:18: error: `{%r1, %r2, %r3}` has 3 elements, 2 are wanted\n"
        "  ld.global.v2.b32 {%r1, %r2, %r3}, [g];\n"
        "                   ^^^^^^^^^^^^^^^"
    ),
    "ld.global.b32 %r1, [%r2];": (
        "k.ptx:13:20: error: `[%r2]`: a global address has 64 bits, `%r2` is .b32\n"
        "  ld.global.b32 %r1, [%r2];\n"
        "                     ^^^^^"
    ),
    "ld.global.b32 %f1, [%f2];": (
        "k.ptx:13:20: error: `[%f2]`: an address is held in an integer register of 32 or 64 bits, `%f2` is .f32\n"
        "  ld.global.b32 %f1, [%f2];\n"
        "                     ^^^^^"
    ),
    "mov.u32 %r1, %tid;": (
        "k.ptx:13:14: error: `%tid` is a vector, name an element: `%tid.x`\n  mov.u32 %r1, %tid;\n               ^^^^"
    ),
    "mov.u32 %tid.x, 5;": (
        "k.ptx:13:9: error: `%tid.x` is a special register, it cannot be written\n  mov.u32 %tid.x, 5;\n          ^^^^^^"
    ),
    "bar.sync 16;": (
        "k.ptx:13:10: error: barrier 16 does not exist\n  bar.sync 16;\n           ^^\n  hint: a CTA has the barriers 0 to 15"
    ),
    "tcgen05.wait::ld.sync.aligned;": (
        "k.ptx:13:1: error: `tcgen05` needs PTX 8.6, the module is 8.0\n"
        "  tcgen05.wait::ld.sync.aligned;\n"
        "  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: write `.version 8.6` or later"
    ),
    "call (%r1), f, (%r1, %r2);": (
        "k.ptx:13:1: error: `f` has 1 argument, the call gives 2\n  call (%r1), f, (%r1, %r2);\n  ^^^^^^^^^^^^^^^^^^^^^^^^^^"
    ),
    "call (%r1), nof, (%r1);": (
        "k.ptx:13:1: error: `nof` is not declared before this call\n"
        "  call (%r1), nof, (%r1);\n"
        "  ^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: declare the function before it is called"
    ),
    "call f, (%r1);": ("k.ptx:13:1: error: `f` has 1 result, the call gives 0\n  call f, (%r1);\n  ^^^^^^^^^^^^^^"),
    "fma.f32 %f1, %f1, %f1, %f1;": (
        "k.ptx:13:1: error: `fma.f32` lacks one of `.rn`, `.rz`, `.rm`, `.rp`\n"
        "  fma.f32 %f1, %f1, %f1, %f1;\n"
        "  ^^^^^^^\n"
        "  hint: closest form: fma.{rn,rz,rm,rp}{.ftz}{.sat}.f32"
    ),
    "fma.rn.relu.f32 %f1, %f1, %f1, %f1;": (
        "k.ptx:13:1: error: the modifiers of `fma.rn.relu.f32` do not go together\n"
        "  fma.rn.relu.f32 %f1, %f1, %f1, %f1;\n"
        "  ^^^^^^^^^^^^^^^\n"
        "  hint: closest form: fma.rn{.relu}.{bf16,bf16x2}"
    ),
    "cvt.rn.f32.f32.sat %f1, %f1;": (
        "k.ptx:13:1: error: the modifiers of `cvt.rn.f32.f32.sat` do not go together\n"
        "  cvt.rn.f32.f32.sat %f1, %f1;\n"
        "  ^^^^^^^^^^^^^^^^^^\n"
        "  hint: closest form: cvt.{rn,rz,rm,rp}{.ftz}{.sat}.f16.f32"
    ),
    "st.param.u64 [p], %rd1;": (
        "k.ptx:13:14: error: `[p]`: `p` is an input parameter, it cannot be written\n"
        "  st.param.u64 [p], %rd1;\n"
        "               ^^^"
    ),
    "setp.eq.s32 %p1|%r1, %r1, 1;": (
        "k.ptx:13:13: error: `%p1|%r1` is .b32, an operand of type .pred is wanted (.pred)\n"
        "  setp.eq.s32 %p1|%r1, %r1, 1;\n"
        "              ^^^^^^^"
    ),
    "elect.sync %p1, -1;": ("k.ptx:13:12: error: `%p1` should be a pair `d|p`\n  elect.sync %p1, -1;\n             ^^^"),
    ".reg .bf16 x;": (
        "k.ptx:13:1: error: no register has type .bf16\n"
        "  .reg .bf16 x;\n"
        "  ^^^^^^^^^^^^^\n"
        "  hint: it is the type of an instruction; declare .b16"
    ),
    ".reg .b32 %r<2>;": ("k.ptx:13:1: error: `%r<2>` is declared twice in this scope\n  .reg .b32 %r<2>;\n  ^^^^^^^^^^^^^^^^"),
    ".local .b32 q[];": (
        "k.ptx:13:1: error: `q` has no size\n"
        "  .local .b32 q[];\n"
        "  ^^^^^^^^^^^^^^^\n"
        "  hint: give it a size, an initialiser, or `.extern`"
    ),
    "add.s32 %p1, %r1, 1;": (
        "k.ptx:13:9: error: `%p1` is .pred, an operand of type .s32 is wanted (.b32, .u32, .s32, .f16x2)\n"
        "  add.s32 %p1, %r1, 1;\n"
        "          ^^^"
    ),
    "selp.b32 %r1, 1, 2, !%r1;": (
        "k.ptx:13:21: error: `!%r1`: only a predicate that is read may be negated with `!`\n"
        "  selp.b32 %r1, 1, 2, !%r1;\n"
        "                      ^^^^"
    ),
    "mov.b32 %clock, 1; add.u32 %r1, _, 1;": (
        "k.ptx:13:9: error: `%clock` is a special register, it cannot be written\n"
        "  mov.b32 %clock, 1; add.u32 %r1, _, 1;\n"
        "          ^^^^^^\n"
        "k.ptx:13:33: error: `_` takes a result, it cannot be read\n"
        "  mov.b32 %clock, 1; add.u32 %r1, _, 1;\n"
        "                                  ^"
    ),
    "ld.global.nc.L1::evict_first.v4.u32 {%r1, %r2, %r3, _}, [%rd1];\nt: .branchtargets A;\nbrx.idx %r1, t;": (
        "k.ptx:14:4: error: `A` in .branchtargets is not a label\n  t: .branchtargets A;\n     ^^^^^^^^^^^^^^^^^"
    ),
    "mov.u32 %r1, %nosuch.x;": (
        "k.ptx:13:14: error: `%nosuch.x` is not declared\n  mov.u32 %r1, %nosuch.x;\n               ^^^^^^^^^"
    ),
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements(statement: str) -> None:
    assert said(HEAD + BEFORE + statement + "\nret;\n}\n") == STATEMENTS[statement]


MODULES = {
    (".version 7.0\n.target sm_90a\n.address_size 64\n"): (
        "k.ptx:1:1: error: target sm_90a needs PTX 8.0, the module is 7.0\n  .version 7.0\n  ^^^^^^^^^^^^\n"
        "  hint: write `.version 8.0` or later"
    ),
    (
        ".version 8.0\n"
        ".target sm_90a\n"
        ".address_size 64\n"
        ".global .u32 a = x;\n"
        ".global .f32 b = 1;\n"
        ".global .u32 c[1] = {1, 2};\n"
        ".global .u32 d[2] = 1;\n"
        ".shared .u32 e = 1;\n"
        ".local .u32 f;\n"
        ".global .u32 a;\n"
        ".global .align 3 .u32 h;\n"
        ".global .f16 hh = 1;"
    ): (
        "k.ptx:4:18: error: `x` is not declared before its address is taken\n"
        "  .global .u32 a = x;\n"
        "                   ^\n"
        "k.ptx:5:18: error: `b`: 1 is an integer, type .f32 wants e.g. 1.0\n"
        "  .global .f32 b = 1;\n"
        "                   ^\n"
        "k.ptx:6:21: error: `c`: 2 values for 1 elements\n"
        "  .global .u32 c[1] = {1, 2};\n"
        "                      ^^^^^^\n"
        "k.ptx:7:21: error: `d`: the values of an array stand in braces\n"
        "  .global .u32 d[2] = 1;\n"
        "                      ^\n"
        "k.ptx:8:1: error: `e` is in .shared, which takes no initial value\n"
        "  .shared .u32 e = 1;\n"
        "  ^^^^^^^^^^^^^^^^^^^\n"
        "k.ptx:9:1: error: `f`: .local variables belong in functions\n"
        "  .local .u32 f;\n"
        "  ^^^^^^^^^^^^^^\n"
        "k.ptx:10:1: error: `a` is declared twice in this scope\n"
        "  .global .u32 a;\n"
        "  ^^^^^^^^^^^^^^^\n"
        "k.ptx:11:1: error: alignment 3 is not a power of two\n"
        "  .global .align 3 .u32 h;\n"
        "  ^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "k.ptx:12:1: error: variables of type .f16 take no initial value\n"
        "  .global .f16 hh = 1;\n"
        "  ^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: declare it .b16 and give its bits"
    ),
    (
        ".version 8.0\n"
        ".target sm_90a\n"
        ".address_size 64\n"
        ".func e () .maxntid 1 { ret; }\n"
        ".entry k () .maxntid 1 .reqntid 1 .foo { ret; }\n"
        ".entry k () { ret; }\n"
        ".func (.param .b32 x, .param .b32 y) g () { ret; }\n"
        ".alias aa, bb;"
    ): (
        "k.ptx:4:12: error: `.maxntid` belongs to an .entry, `e` is an .func\n"
        "  .func e () .maxntid 1 { ret; }\n"
        "             ^^^^^^^^^^\n"
        "k.ptx:5:35: error: `.foo` is no directive of a function\n"
        "  .entry k () .maxntid 1 .reqntid 1 .foo { ret; }\n"
        "                                    ^^^^\n"
        "  hint: known are .maxnreg, .maxntid, .reqntid, .minnctapersm, .maxnctapersm, .explicitcluster, "
        ".reqnctapercluster, .maxclusterrank, .blocksareclusters, .noreturn, .abi_preserve, .abi_preserve_control\n"
        "k.ptx:5:1: error: `k` has both .maxntid and .reqntid\n"
        "  .entry k () .maxntid 1 .reqntid 1 .foo { ret; }\n"
        "  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: keep one of them\n"
        "k.ptx:6:1: error: function `k` is defined twice\n"
        "  .entry k () { ret; }\n"
        "  ^^^^^^^^^^^^^^^^^^^^\n"
        "k.ptx:7:1: error: `g` returns several .param\n"
        "  .func (.param .b32 x, .param .b32 y) g () { ret; }\n"
        "  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: return them in .reg, or one .param array of bytes\n"
        "k.ptx:8:1: error: `.alias` of `aa`, which is no function declared so far\n"
        "  .alias aa, bb;\n"
        "  ^^^^^^^^^^^^^\n"
        "k.ptx:8:1: error: `.alias` of `bb`, which is no function declared so far\n"
        "  .alias aa, bb;\n"
        "  ^^^^^^^^^^^^^"
    ),
}


@pytest.mark.parametrize("text", MODULES, ids=range(len(MODULES)))
def test_modules(text: str) -> None:
    assert said(text) == MODULES[text]


def test_unknown_target() -> None:
    text = said(".version 8.0\n.target sm_99\n")
    assert text.startswith(
        "k.ptx:1:1: error: unknown target `sm_99`\n  .version 8.0\n  ^^^^^^^^^^^^\n  hint: known are sm_20, sm_21, "
    )


def test_good_text_has_no_problems() -> None:
    text = (
        HEAD
        + BEFORE
        + """
    .loc 1 2 3
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd3, %r1, 4, %rd2;
    ld.global.f32 %f1, [%rd3+4];
    setp.lt.f32 %p1|%p2, %f1, 0f00000000;
    @!%p1 bra DONE;
    { .reg .b64 %r1; mov.u64 %r1, g; st.b32 [%r1], 5; }
    { .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; call (y), f, (x); ld.param.b32 %r2, [y]; }
    DONE: ret;
    }
    """
    )
    assert said(text) == ""


def test_every_problem_is_found_in_one_run() -> None:
    wrong = "add.s32 %r1, %r2, %q;\nadd.f32 %f1, %rd1, %f2;\n@%r1 bra NOWHERE;\n.reg .b32 %r1;\nmov.b32 %r1, 1.5;"
    problems = check(parse(HEAD + BEFORE + wrong + "\n}\n", "k.ptx"))
    assert [p.message for p in problems] == [
        "`%q` is not declared",
        "`%rd1` is .b64, an operand of type .f32 is wanted (.b32, .f32)",
        "the guard `%r1` is not a predicate register",
        "`NOWHERE` is not a label of this function",
        "`%r1` is declared twice in this scope",
        "`1.5` is a floating-point constant, type .b32 is wanted",
    ]
