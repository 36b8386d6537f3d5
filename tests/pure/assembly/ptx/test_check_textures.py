"""Coordinates, offsets and gradients of textures and surfaces: types as ptxas judges them, from grids of combinations."""

from __future__ import annotations

import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.check import check
from warpsmith.base.errors import PtxError

REGISTERS = "b16 s16 u32 s32 b32 f32 f16x2 b64"
DECLARED = " ".join(f".reg .{t} %{t}_<9>;" for t in REGISTERS.split()) + " .reg .v2 .f32 %v; .reg .v2 .u32 %w; .reg .pred %p;"
D = "{%f32_0, %f32_1, %f32_2, %f32_3}"
V = "{%f32_0, %f32_1}"


def said(instruction: str, version: str = "8.0", arch: str = "sm_80") -> list[str]:
    head = f".version {version}\n.target {arch}\n.address_size 64\n"
    text = f"{head}.visible .entry k() {{ {DECLARED}\n{instruction};\nret; }}\n"
    try:
        return [p.message for p in check(parse(text))]
    except PtxError as error:
        return [p.message for p in error.problems]


ACCEPTED = [
    f"tex.a1d.v4.f32.f32 {D}, [%b64_0, {{%u32_0, %f32_0}}]",
    f"tex.a2d.v4.f32.f32 {D}, [%b64_0, {{%s32_0, %f32_0, %f32_1, %f32_1}}]",
    f"tex.a2d.v4.f32.f32 {D}, [%b64_0, {{3, %f32_0, 0f3F800000, 1.5}}]",
    f"tex.a1d.v4.f32.s32 {D}, [%b64_0, {{%b32_0, %s32_0}}]",
    f"tex.1d.v4.f32.s32 {D}, [%b64_0, {{1}}]",
    f"tex.2d.v4.f32.f32 {D}, [%b64_0, {{0f3F800000, %f32_0}}]",
    f"tex.2d.v4.f32.f32 {D}, [%b64_0, {{%s32_0, %u32_0}}]",  # ptxas reads their bits
    f"tex.2d.v4.f32.f32 {D}, [%b64_0, %w]",
    f"tex.2d.v4.f32.s32 {D}, [%b64_0, {{%b32_0, %u32_0}}], {{1, %s32_1}}",
    "txq.level.width.b32 %b32_0, [%b64_0], %s32_0",
    "suld.b.1d.b8.zero {%b16_0}, [%b64_0, {%s32_0}]",  # so nvcc writes it: there are no registers of 8 bits
    "sust.b.2d.v2.b16.trap [%b64_0, {%s32_0, %s32_1}], {%f32_0, %f32_1}",
    "sured.p.min.1d.b32.clamp [%b64_0, {%s32_0}], %b64_1",
]


@pytest.mark.parametrize("instruction", ACCEPTED)
def test_accepted(instruction: str) -> None:
    assert said(instruction) == []


REFUSED = [
    (
        f"tex.1d.v4.f32.f32 {D}, [%b64_0, {{1}}]",
        "element 0 of `[%b64_0, {1}]` is an integer constant, type .f32 is wanted",
    ),
    (
        f"tex.1d.v4.f32.s32 {D}, [%b64_0, {{%f32_0}}]",
        "element 0 of `[%b64_0, {%f32_0}]` is .f32, an operand of type .s32 is wanted (.b32, .u32, .s32, .f16x2)",
    ),
    (
        f"tex.1d.v4.f32.s32 {D}, [%b64_0, {{1.5}}]",
        "element 0 of `[%b64_0, {1.5}]` is a floating-point constant, type .s32 is wanted",
    ),
    (
        f"tex.a1d.v4.f32.f32 {D}, [%b64_0, {{%f32_0, %f32_1}}]",
        "element 0 of `[%b64_0, {%f32_0, %f32_1}]` is .f32, the index of a layer of type .u32 is wanted (.b32, .u32, .s32)",
    ),
    (
        f"tex.a1d.v4.f32.f32 {D}, [%b64_0, {{1.5, %f32_1}}]",
        "element 0 of `[%b64_0, {1.5, %f32_1}]` is a floating-point constant, type .u32 is wanted",
    ),
    (
        f"tex.a1d.v4.f32.s32 {D}, [%b64_0, {{%f16x2_0, %s32_0}}]",
        "element 0 of `[%b64_0, {%f16x2_0, %s32_0}]` is .f16x2, the index of a layer of type .u32 is wanted (.b32, .u32, .s32)",
    ),
    (
        f"tex.2d.v4.f32.f32 {D}, [%b64_0, {{%s32_0, %f32_0}}]",
        "the elements of `[%b64_0, {%s32_0, %f32_0}]` are of different types",
    ),
    (
        f"tex.2d.v4.f32.f32 {D}, [%b64_0, {{%f32_0, 1}}]",
        "the elements of `[%b64_0, {%f32_0, 1}]` are of different types",
    ),
    (
        f"tex.2d.v4.s32.f32 {{%s32_0, %s32_1, %s32_2, %s32_3}}, [%b64_0, {V}], {{%f16x2_0, %f16x2_1}}",
        "element 0 of `{%f16x2_0, %f16x2_1}` is .f16x2, an operand of type .s32 is wanted (.b32, .u32, .s32)",
    ),
    (
        f"tex.1d.v4.f32.f32 {D}, [%b64_0, %v.y]",
        "in `[%b64_0, %v.y]`, an element of a vector register stands in braces: `{%v.y}`",
    ),
    (
        f"tex.a1d.v4.f32.f32 {D}, [%b64_0, %v]",
        "`[%b64_0, %v]` should be a vector of 2 elements in braces",
    ),
    (
        "suld.b.1d.b8.zero %b16_0, [%b64_0, {%b64_0}]",
        "element 0 of `[%b64_0, {%b64_0}]` is .b64, an operand of type .s32 is wanted (.b32, .u32, .s32)",
    ),
    (
        "suld.b.1d.b32.zero %b16_0, [%b64_0, {%s32_0}]",
        "`%b16_0` is .b16, an operand of type .b32 is wanted (.b32, .b64, .b128, .u32, .u64, .s32, .s64, .f32, .f64, .f16x2)",
    ),
    (
        "sured.b.add.1d.s32.trap [%b64_0, {%f16x2_0}], %s32_0",
        "element 0 of `[%b64_0, {%f16x2_0}]` is .f16x2, an operand of type .s32 is wanted (.b32, .u32, .s32)",
    ),
    (
        "txq.level.width.b32 %b32_0, [%b64_0], %f32_0",
        "`%f32_0` is .f32, an operand of type .u32 is wanted (.b32, .u32, .s32)",
    ),
]


@pytest.mark.parametrize(("instruction", "message"), REFUSED)
def test_refused(instruction: str, message: str) -> None:
    (found,) = said(instruction)
    assert found == message


def test_operands_that_came_later() -> None:
    resident = f"tex.2d.v4.f32.f32 {D}|%p, [%b64_0, {V}]"
    (found,) = said(resident, "7.0")
    assert found == f"`{D}|%p` needs PTX 7.1, the module is 7.0"
    assert said(resident, "7.1") == []
    offsets = f"tex.2d.v4.f32.f32 {D}, [%b64_0, {V}], {{%s32_0, %s32_1}}"
    (found,) = said(offsets, "4.2", "sm_50")
    assert found == "`{%s32_0, %s32_1}` needs PTX 4.3, the module is 4.2"
    assert said(offsets, "4.3", "sm_50") == []
