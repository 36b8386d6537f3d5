"""Places and spans: `.loc` when there is one, else the PTX line; printing with and without locations."""

from __future__ import annotations

from warpsmith.assembly.ptx import Module, parse, print_module
from warpsmith.assembly.ptx.spans import mnemonic_span, operand_spans
from warpsmith.assembly.ptx.tree import Instruction, Scope, Statement
from warpsmith.base.source import Place

TEXT = """\
.version 8.0
.target sm_90a
.address_size 64
.entry a ()
{
  mov.u32 %r1, 1;
  .loc 2 10 5
  mov.u32 %r1, 2; mov.u32 %r1, 3;
  { .loc 1 20 1, function_name $L__info_string0, inlined_at 2 11 3
    @!%p add.s32 %r1,  %r2 , (1+2)*3; }
  ret;
}
.entry b ()
{

  bar.sync 0; /* two
  lines */ ret;
}
.file 1 "src/kernel.cu"
.file 2 "src/other.cuh", 5, 6
.section .debug_str { .b8 1 }
"""


def instructions(body: list[Statement] | None) -> list[Instruction]:
    out: list[Instruction] = []
    for statement in body or []:
        if isinstance(statement, Scope):
            out += instructions(statement.body)
        elif isinstance(statement, Instruction):
            out.append(statement)
    return out


def module() -> Module:
    return parse(TEXT, "k.ptx")


def test_places_follow_loc_and_begin_anew_in_each_function() -> None:
    assert [i.place for i in instructions(module().entry("a").body)] == [
        Place("k.ptx", 6),
        Place("src/other.cuh", 10, 5),
        Place("src/other.cuh", 10, 5),
        Place("src/kernel.cu", 20, 1),
        Place("src/kernel.cu", 20, 1),
    ]
    assert [str(i.place) for i in instructions(module().entry("b").body)] == ["k.ptx:16", "k.ptx:17"]


def test_line_0_stays_with_the_line_before() -> None:
    head, tail = TEXT.split("  mov.u32 %r1, 2;")
    for first in ("mov.u32 %r1, 2;", "{ } mov.u32 %r1, 2;"):
        text = head + f"  .loc 1 0 30\n{first}" + tail
        assert instructions(parse(text, "k.ptx").entry("a").body)[1].place == Place("src/other.cuh", 10, 5)
    text = TEXT.replace("  mov.u32 %r1, 1;", "  .loc 1 0 30\n  mov.u32 %r1, 1;")
    assert instructions(parse(text, "k.ptx").entry("a").body)[0].place == Place("k.ptx", 7)


def test_a_file_without_a_name_is_still_told_apart() -> None:
    text = TEXT.replace('.file 1 "src/kernel.cu"\n', "")
    assert [str(i.place) for i in instructions(parse(text).entry("a").body)][3] == "<file 1>:20"


def test_spans_of_instructions_and_of_their_parts() -> None:
    spans = [TEXT[i.span.start : i.span.end] for i in instructions(module().entry("a").body) if i.span]
    assert spans == ["mov.u32 %r1, 1;", "mov.u32 %r1, 2;", "mov.u32 %r1, 3;", "@!%p add.s32 %r1,  %r2 , (1+2)*3;", "ret;"]
    add = instructions(module().entry("a").body)[3]
    assert [TEXT[s.start : s.end] for s in operand_spans(add) if s] == ["%r1", "%r2", "(1+2)*3"]
    span = mnemonic_span(add)
    assert span is not None
    assert TEXT[span.start : span.end] == "add.s32"
    assert str(span) == "k.ptx:10:10"


def test_printing_without_locations() -> None:
    text = print_module(module(), locations=False)
    assert not any(word in text for word in (".loc", ".file", ".section", "inlined_at"))
    assert ".loc" in str(module())
    assert [str(i.mnemonic) for i in instructions(parse(text).entry("a").body)] == [
        "mov.u32",
        "mov.u32",
        "mov.u32",
        "add.s32",
        "ret",
    ]


def test_an_edit_of_the_tree_shows_in_the_text() -> None:
    edited = module()
    body = edited.entry("b").body
    assert body is not None
    body.insert(0, Instruction("membar.gl"))
    edited.version, edited.target = (8, 7), ["sm_100a", "debug"]
    assert "\n.version 8.7\n.target sm_100a, debug\n" in "\n" + str(edited)
    assert "\tmembar.gl;\n\tbar.sync \t0;\n" in str(edited)
