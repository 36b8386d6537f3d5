"""Where values come from: blocks, reaching definitions, scopes."""

from __future__ import annotations

import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.flow import Flow, Step

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
ENTRY = (
    HEAD
    + ".visible .entry k(.param .u64 x)\n{{\n .reg .pred %p<4>;\n .reg .b32 %r<9>, %w<9>;\n .reg .b64 %rd<9>;\n{body}\n}}\n"
)


def flow_of(body: str) -> Flow:
    module = parse(ENTRY.format(body=body))
    return Flow(module, module.entry("k"))


def last(flow: Flow) -> Step:
    """The instruction that the test asks about: the last `add`."""
    return [s for s in flow.steps if s.instruction.opcode == "add"][-1]


def made(body: str, operand: int = 1) -> list[str | None]:
    """What may have made an operand of the last `add`: the constants that its definitions end with, in order."""
    flow = flow_of(body)
    step = last(flow)
    found = flow.definitions(step, step.instruction.operands[operand])
    return sorted((None if s is None else s.instruction.operands[-1].text for s in found), key=str)  # type: ignore[union-attr]


ADD = "add.u32 %r2, %r1, 0; ret;"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"mov.b32 %r1, 1; mov.b32 %r1, 2; {ADD}", ["2"]),
        (f"mov.b32 %r1, 1; @%p0 mov.b32 %r1, 2; {ADD}", ["1", "2"]),
        (f"@%p0 mov.b32 %r1, 2; {ADD}", ["2", None]),
        (f"mov.b32 %r1, 1; @%p0 bra L; mov.b32 %r1, 2; L: {ADD}", ["1", "2"]),
        (f"mov.b32 %r1, 1; bra L; mov.b32 %r1, 2; L: {ADD}", ["1"]),
        (f"mov.b32 %r1, 1; L: add.u32 %r3, %r1, 0; mov.b32 %r1, 2; @%p0 bra L; {ADD}", ["2"]),
        ("mov.b32 %r1, 1; L: add.u32 %r3, %r1, 0; mov.b32 %r1, 2; @%p0 bra L; ret;", ["1", "2"]),
        (f"mov.b32 %r1, 1; @%p0 ret; {ADD}", ["1"]),
        (f"mov.b32 %r1, 1; {{ .reg .b32 %r1; mov.b32 %r1, 2; }} {ADD}", ["1"]),
        (f"mov.b32 %r1, 1; {{ mov.b32 %r1, 2; }} {ADD}", ["2"]),
        ("mov.b32 %r1, 1; { .reg .b32 %r1; mov.b32 %r1, 2; add.u32 %r2, %r1, 0; } ret;", ["2"]),
        (f"mov.b32 %r1, 1; {{ bra L; mov.b32 %r1, 2; L: }} {{ L: }} {ADD}", ["1"]),
        (f"mov.b32 %r1, 1; T: .branchtargets A, B; brx.idx %r3, T; A: mov.b32 %r1, 2; bra B; B: {ADD}", ["1", "2"]),
        ("add.u32 %r2, %r1, 0; ret;", [None]),
    ],
)  # fmt: skip
def test_definitions(body: str, expected: list[str | None]) -> None:
    assert made(body) == sorted(expected, key=str)


def test_every_result_is_a_definition() -> None:
    flow = flow_of(
        "ld.global.v2.b32 {%w0, %r1}, [%rd1]; setp.eq.u32 %p1|%p2, %r1, 0; "
        "shfl.sync.up.b32 %w1|%p3, %r1, 1, 0, -1; add.u32 %r2, %r1, 0;"
    )
    assert [[name for _, name in flow.writes(s)] for s in flow.steps] == [
        ["%w0", "%r1"],
        ["%p1", "%p2"],
        ["%w1", "%p3"],
        ["%r2"],
    ]


def test_the_source_behind_moves() -> None:
    flow = flow_of("add.u32 %r5, %r6, 9; mov.b32 %r3, %r5; mov.u32 %r1, %r3; add.u32 %r2, %r1, 0; ret;")
    step = last(flow)
    source = flow.source(step, step.instruction.operands[1])
    assert source is flow.steps[0]
    assert flow.constant(step, step.instruction.operands[2]) == 0
    assert flow.constant(step, step.instruction.operands[1]) is None


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("mov.b32 %r3, 7; mov.b32 %r1, %r3; ", 7),
        ("mov.b32 %r1, 7; @%p0 mov.b32 %r1, 7; ", None),
        ("mov.u32 %r1, %tid.x; ", None),
        ("mov.b32 %r1, 0f3F800000; ", None),
        ("L: mov.b32 %r1, %r1; bra L; ", None),
    ],
)
def test_constants(body: str, value: int | None) -> None:
    flow = flow_of(body + ADD)
    step = last(flow)
    assert flow.constant(step, step.instruction.operands[1]) == value


def test_the_last_write_of_a_block_and_its_reads() -> None:
    flow = flow_of("mov.b32 %r1, 1; @%p0 mov.b32 %r1, 2; add.u32 %r2, %r1, 0; L: add.u32 %r2, %r1, %r1; ret;")
    first, second = flow.steps[2], flow.steps[3]
    assert flow.last_in_block(first, first.instruction.operands[1]) is flow.steps[1]
    assert flow.last_in_block(second, second.instruction.operands[1]) is None
    assert [flow.reads(r) for r in flow.writes(flow.steps[0])] == [2]


def test_calls_write_what_they_return_and_loc_names_the_place() -> None:
    module = parse(
        HEAD + '.file 1 "kern.py"\n.func (.reg .b32 %out) f(.reg .b32 %in)\n{\n mov.b32 %out, %in;\n ret;\n}\n'
        ".visible .entry k()\n{\n .reg .b32 %r<4>;\n .loc 1 7 0\n call (%r1), f, (%r0);\n add.u32 %r2, %r1, 0;\n ret;\n}\n"
    )
    flow = Flow(module, module.entry("k"))
    step = flow.steps[1]
    assert flow.definitions(step, step.instruction.operands[1]) == [flow.steps[0]]
    assert [str(s.place) for s in flow.steps] == ["kern.py:7"] * 3
    inner = Flow(module, module.entry("f"))
    assert inner.definitions(inner.steps[0], inner.steps[0].instruction.operands[1]) == [None]
