"""Text that means harm: constants, lines and nests beyond all bounds. Each message in full, and none of them long."""

from __future__ import annotations

import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.check import check
from warpsmith.base.errors import PtxError

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"


def said(text: str) -> str:
    """Return what reader and checker say."""
    try:
        return str(PtxError(check(parse(text, name="k.ptx"))))
    except PtxError as error:
        return str(error)


def body(text: str) -> str:
    return f"{HEAD}.entry e () {{ .reg .b32 %r<9>; .reg .f32 %f<9>;\n{text}\nret; }}\n"


MESSAGES = {
    "mov.u32 %r1, 18446744073709551616;": (
        "k.ptx:5:14: error: the constant `18446744073709551616` does not fit 64 bits\n"
        "  mov.u32 %r1, 18446744073709551616;\n" + " " * 15 + "^" * 20
    ),
    "mov.s32 %r1, -0xfffffffffffffffff;": (
        "k.ptx:5:15: error: the constant `0xfffffffffffffffff` does not fit 64 bits\n"
        "  mov.s32 %r1, -0xfffffffffffffffff;\n" + " " * 16 + "^" * 19
    ),
    "ld.u32 %r1, [%r2+99999999999999999999];": (
        "k.ptx:5:18: error: the constant `99999999999999999999` does not fit 64 bits\n"
        "  ld.u32 %r1, [%r2+99999999999999999999];\n" + " " * 19 + "^" * 20
    ),
    "mov.f32 %f1, 1e999;": (
        "k.ptx:5:14: error: the constant `1e999` does not fit a double\n"
        "  mov.f32 %f1, 1e999;\n" + " " * 15 + "^^^^^\n"
        "  hint: write infinity as `0f7F800000`"
    ),
    "mov.f32 %f1, 1.5e-999;": (
        "k.ptx:5:14: error: the constant `1.5e-999` does not fit a double\n"
        "  mov.f32 %f1, 1.5e-999;\n" + " " * 15 + "^^^^^^^^\n"
        "  hint: write infinity as `0f7F800000`"
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", MESSAGES)
def test_constants_and_nests(text: str) -> None:
    assert said(body(text)) == MESSAGES[text]


def test_a_vector_in_a_vector() -> None:
    assert said(body("mov.b64 {%r1,{%r2}}, %rd1;")).startswith(
        "k.ptx:5:14: error: expected an element of the vector, found `{`\n  mov.b64 {%r1,{%r2}}, %rd1;\n" + " " * 15 + "^\n"
    )


def test_constants_of_a_million_digits_and_vectors_of_a_million_braces() -> None:
    for text in (
        "mov.u32 %r1, " + "9" * 10**6 + ";",
        "mov.u32 %r1, 0x" + "f" * 10**6 + ";",
        "mov.b64 %r1, " + "{" * 10**6 + ";",
    ):
        assert len(said(body(text))) < 20_000
    assert parse(body("mov.u32 %r1, " + "0" * 10**5 + "17;")) == parse(body("mov.u32 %r1, " + "0" * 10**5 + "17;"))


def test_the_header() -> None:
    assert said(".version 9.6\n.target sm_90a\n") == (
        "k.ptx:1:1: error: PTX 9.6 is not known; the newest is 9.5\n  .version 9.6\n  ^^^^^^^^^^^^\n"
        "  hint: write the version that the program was written for"
    )
    assert said(".version 8.0\n.target sm_90a\n.address_size 65\n") == (
        "k.ptx:1:1: error: address size 65 is neither 32 nor 64\n  .version 8.0\n  ^^^^^^^^^^^^\n"
        "  hint: write `.address_size 64`"
    )
    assert said(".version " + "9" * 5000 + ".0\n").startswith("k.ptx:1:10: error: expected a version number, found `9999")


def test_of_a_long_line_the_part_around_the_fault_is_shown() -> None:
    text = said(body("add.u32 %r1, %r2, %r3; " * 1000 + "bogus.u32 %r1; //" + "\0\x1b" * 100))
    head, shown, caret = text.split("\n")[:3]
    assert head == "k.ptx:5:23001: error: unknown instruction `bogus`"
    assert len(shown) == 2 + 162
    assert shown[caret.index("^") :].startswith("bogus.u32 %r1; //\ufffd\ufffd")


def test_of_many_problems_fifty_are_shown() -> None:
    error = PtxError(check(parse(body("bogus %r1;\n" * 1000))))
    assert len(error.problems) == 1000
    assert str(error).endswith("\n… and 950 more problems")


def test_numbers_of_a_directive_are_integer_constants() -> None:
    assert not check(parse(f"{HEAD}.entry e () .maxntid 040, 0x2, 1 {{ ret; }}\n"))
