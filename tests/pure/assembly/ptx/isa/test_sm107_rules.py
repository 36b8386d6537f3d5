"""Rules of the rows of PTX 9.4 and 9.5, and of cache policies: every message in full."""

from __future__ import annotations

import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.check import check

REGISTERS = ".reg .b16 %h<8>; .reg .b32 %r<20>; .reg .b64 %d<8>; .reg .f32 %f<4>;"


def complaints(statement: str, arch: str = "sm_107a", version: str = "9.5", kind: str = ".entry") -> list[str]:
    text = f".version {version}\n.target {arch}\n.address_size 64\n{kind} k() {{ {REGISTERS}\n{statement}\nret; }}\n"
    return [p.message for p in check(parse(text))]


RIGHT = [
    "createpolicy.fractional.L2::evict_last.b64 %d0, 1.0;",
    "createpolicy.fractional.L2::evict_last.b64 %d0, %f0;",
    "createpolicy.range.fabric.L2::evict_last.L2::evict_first.b64 %d0, [%r0, %d1], 128, %r1;",
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group.override::global_address.override::global_dim "
    "[%d0, %d1, {%h0}, {%r0}], [%r1];",
    "cp.async.bulk.prefetch.tensor.3d.L2.global.override::global_address.override::global_dim_stride "
    "[%d0, %d1, {%h0, 1, %h1}, {%r0, 16}, %h2, {0, %r1, 0}];",
    "fabric.submit.commit_group;",
    "spdecompress.b8.b4.sp::4:16.x1 {%r0, %r1, %r2, %r3}, {%r4}, {%r5};",
    "mov.u32 %r0, %locality_domain_id;",
]


@pytest.mark.parametrize("statement", RIGHT)
def test_right_ones(statement: str):
    assert complaints(statement) == []


TENSOR = "cp.async.bulk.tensor.{}.global.shared::cta.bulk_group.override::global_address.override::{} [%d0, %d1, {}], [%r9];"
GET = "fabric.try_get.async.shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric"
WRONG = [
    (
        TENSOR.format("1d", "global_dim", "{%h0}, {3}"),
        "constant coordinate 3 beside overridden extents is not 0",
    ),
    (
        TENSOR.format("2d", "global_dim_stride", "{%h0, %h1}, {%r0}, %h2, {%r1, -1}"),
        "constant coordinate -1 beside overridden extents is not 0",
    ),
    (
        TENSOR.format("3d", "global_dim_stride", "{%h0, %h1, %h2}, {16, 32}, %h3, {0, %r1, %r2}"),
        "the overridden strides are all constants",
    ),
    ("createpolicy.fractional.L2::evict_last.b64 %d0, 1.5;", "fraction 1.5 is not between 0 and 1"),
    ("createpolicy.fractional.L2::evict_last.b64 %d0, 0.0;", "fraction 0.0 is not between 0 and 1"),
    (
        "createpolicy.fractional.L2::evict_first.L2::evict_last.b64 %d0;",
        "the modifiers of `createpolicy.fractional.L2::evict_first.L2::evict_last.b64` are out of order",
    ),
    (
        TENSOR.format("2d", "global_dim", "{%h0, %h1}, {%r0, %r1}"),
        "a 2d tensor cannot have .override::global_dim",
    ),
    (
        TENSOR.format("1d", "global_dim_stride", "{%h0}, {}, %h1, {%r0}"),
        "a 1d tensor cannot have .override::global_dim_stride",
    ),
    (f"{GET}.relaxed.b128 [%r0], [%r1, %d0], 16, [%r2];", f"`{GET}.relaxed.b128` has .relaxed without a scope"),
    (f"{GET}.b128 [%r0], [%d1, %d0], 16, [%r2];", "`[%d1, %d0]`: a logical endpoint has 32 bits, `%d1` is .b64"),
    (f"{GET}.b128 [%r0], [%r1], 16, [%r2];", "`[%r1]` should hold 2 parts, separated by commas"),
    (
        "spdecompress.b8.b2.sp::1:2.x1 {%r0}, {%r1}, {%r2};",
        "spdecompress.b8.b2.sp::1:2.x1 writes 16 bits, and 32 to 4096 are possible",
    ),
]


@pytest.mark.parametrize(("statement", "message"), WRONG)
def test_wrong_ones_are_named(statement: str, message: str):
    assert complaints(statement) == [message]


def test_parameters_of_a_call_are_named_in_an_entry():
    statement = ".param .b32 p; st.param::func.b32 [%d0], %r0;"
    assert complaints(statement) == ["`st.param::func.b32` in an entry by the register `%d0`"]
    assert complaints(statement, kind=".func") == []
    assert complaints(".param .b32 p; st.param::func.b32 [p], %r0;") == []


@pytest.mark.parametrize(("statement", "version"), [("fabric.submit;", "9.2"), ("sin.approx.ftz.2pi.f32 %f0, %f1;", "9.4")])
def test_earlier_versions_do_not_have_them(statement: str, version: str):
    assert len(complaints(statement, arch="sm_100", version=version)) == 1
