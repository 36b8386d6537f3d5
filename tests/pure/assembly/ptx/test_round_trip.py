"""Text → tree → text → tree: the second tree equals the first."""

from __future__ import annotations

import pytest

from warpsmith.assembly.ptx import parse

HEAD = ".version 8.5\n.target sm_90a\n.address_size 64\n"

ITEMS = [
    ".global .align 4 .b8 a[64];",
    ".visible .global .v4 .f32 v = {1.0, 0f3F800000, -1.5e3, .5};",
    ".global .u32 a, b = 5, c[3] = {1, 2};",
    ".global .u64 p[] = {a, a+4, generic(a), generic(a)+4, 5};",
    ".global .u8 m[] = {0xFF(a), 0xFF00(a), 0xff0000(generic(a)+4)};",
    ".global .u32 m2[2][2] = {{1, 2}, {3, 4}};",
    ".global .samplerref s = {addr_mode_0 = clamp_to_border, filter_mode = nearest};",
    ".global .attribute(.managed, .unified(1, 2)) .s32 g;",
    ".extern .shared .align 16 .b8 dyn[];",
    ".func (.reg .u32 r) f (.reg .u32 a, .param .align 8 .b8 b[]) .noreturn;",
    ".extern .func (.param .b32 func_retval0) vprintf (.param .b64 x, .param .b64 y);",
    ".entry e (.param .u64 .ptr .global .align 16 t, .param .texref x) .maxntid 128, 1, 1 .minnctapersm 2 { ret; }",
    '.entry e .pragma "nounroll"; { ret; }',
    '.file 1 "a/b.cu", 3, 4',
    ".section .debug_str { L: .b8 1,2\n.b32 L }",
    ".alias x, y;",
]

STATEMENTS = [
    "ld .global .u32 %r1, [%rd1+-4];",
    "ld.global.u32 %r1, [%rd1+2*(4+1)];",
    "mov.u64 %rd2, arr+8;",
    "mov.u64 %rd2, arr[2];",
    "mov.f32 v.x, 0f3F800000;",
    "vmad.s32.s32.s32 %r1, %r2.b0, -%r3.b1, %r4;",
    "@ ! %p1 bra L; L:",
    "M: N: mov.u32 %r1, (1<<4)|3;",
    "mov.u32 %r1, 1 ? 2 : 3;",
    "mov.u32 %r1, (.s64)-1;",
    "setp.lt.s32 p|q, %r1, %r2;",
    "setp.lt.and.s32 p|_, %r1, %r2, !%p3;",
    "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, s, {%r1, %r2}];",
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [a], [m, {%r1, 0}], [b];",
    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.override::global_address.override::global_dim_stride "
    "[m, g, {s0, s1}, {l0}, u, {%r1, 0}], [b];",
    "fabric.try_put.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.counted::bytes.b128 "
    "[e, o, n], [a], 16, [b];",
    "spcompress.b8.b4.sp::2:4.x1 {m}, {c}, {a, b}, desc;",
    "@p tcgen05.ld.spcompress.sync.aligned.32x32b.x4.max.sp::2:4.f32.b2 {m}, {c, d}, [t];",
    "mov.u32 %r1, 1 ? 2:4;",
    "call (r), f, (a, 1), proto;",
    "call.uni f;",
    "proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[16]) .noreturn;",
    "ts: .branchtargets A, B, C;",
    ".loc 1 2 3, function_name $L__info_string0+5, inlined_at 1 9 3",
    "{ .reg .b32 a<4>, b; .reg .v2 .f32 w; { mov.b32 a0, b; } }",
    '.pragma "nounroll", "x";',
    "ld.global.v4.b32 {%r1, _, %r2, 3}, [%r4];",
    "mov.u32 %r1, %tid.x; // comment ; {\n /* ret; */ mov.u32 %r1, WARP_SZ-1;",
]


@pytest.mark.parametrize("item", ITEMS)
def test_items(item: str) -> None:
    module = parse(HEAD + item)
    assert module.items
    again = parse(str(module))
    assert again.items == module.items
    assert str(again) == str(module)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements(statement: str) -> None:
    module = parse(HEAD + ".entry e ()\n{\n" + statement + "\n}\n")
    again = parse(str(module))
    assert module.entry("e").body
    assert again.items == module.items
    assert str(again) == str(module)
