"""What the reader says about text that is not PTX: every message in full."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from warpsmith.assembly.ptx import LIMIT, Module, parse, parse_file
from warpsmith.base.errors import InputError, PtxError, WarpsmithError

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"


def body(text: str) -> str:
    return f"{HEAD}.entry e ()\n{{\n{text}\n}}\n"


def attempt(text: str) -> Module | PtxError:
    try:
        return parse(text)
    except PtxError as error:
        return error


MESSAGES = [
    ("", "k.ptx:1:1: error: the text is empty: no PTX in it\n  \n  ^"),
    (
        "hello world",
        "k.ptx:1:1: error: PTX begins with `.version`, not `hello`\n  hello world\n  ^^^^^\n"
        "  hint: write e.g. `.version 8.0` and `.target sm_90a` first",
    ),
    (
        ".version 8\n",
        "k.ptx:1:10: error: expected a version number, found `8`\n  .version 8\n           ^\n"
        "  hint: write e.g. `.version 8.0`",
    ),
    (
        HEAD + ".entry k () {\n  ret;\n",
        "k.ptx:4:13: error: the text ends inside this `{`\n  .entry k () {\n              ^\n"
        "  hint: close it with `}`; the file may be truncated",
    ),
    (
        HEAD + ".global a;",
        "k.ptx:4:9: error: expected the type of the variable, found `a`\n  .global a;\n          ^\n"
        "  hint: write e.g. `.global .b32 name;`",
    ),
    (
        HEAD + ".entry e (.param .u32 x { ret; }",
        "k.ptx:4:25: error: expected `,` between parameters, found `{`\n  .entry e (.param .u32 x { ret; }\n" + " " * 26 + "^",
    ),
    (
        body("add.s32 %r1, %r2, %r3\nadd.s32 %r1, , %r3;\nadd.s32 %r1, %r2, %r3;\nld.u32 %r1, [%r2-4];"),
        "k.ptx:6:22: error: expected `;` after `add.s32`, found `add.s32`\n  add.s32 %r1, %r2, %r3\n" + " " * 23 + "^\n"
        "  hint: operands are separated by commas, the instruction ends with `;`\n"
        "k.ptx:7:14: error: expected an operand, found `,`\n  add.s32 %r1, , %r3;\n" + " " * 15 + "^\n"
        "k.ptx:9:17: error: an address adds its offset\n  ld.u32 %r1, [%r2-4];\n" + " " * 18 + "^\n"
        "  hint: write `+-4` for a negative offset",
    ),
    (
        body("ld.global.u32 %r1, [%r2+%r3];"),
        "k.ptx:6:25: error: an address adds a constant, not a register, to its base\n  ld.global.u32 %r1, [%r2+%r3];\n"
        + " " * 26
        + "^^^\n  hint: add the registers first (add.s64)",
    ),
    (
        body("mov.u32 %r1, 7 / (2-2);"),
        "k.ptx:6:16: error: the constant expression has no value: `/` of 7 and 0\n  mov.u32 %r1, 7 / (2-2);\n"
        + " " * 17
        + "^^^^^^^",
    ),
    (
        body("/* never"),
        "k.ptx:6:1: error: expected an instruction, a label or a directive, found a comment that is never closed",
    ),
    (body('.pragma "x'), "k.ptx:6:9: error: expected a pragma in double quotes, found a string that is never closed"),
    (body("mov.u32 %r1, \x01;"), "k.ptx:6:14: error: expected an operand, found the character U+0001"),
    (body("mov.u32 %r1, é;"), "k.ptx:6:14: error: expected an operand, found `é`"),
    (body("mov.u32 %r1, 08;"), "k.ptx:6:14: error: expected an operand, found `08`"),
    (
        body(".reg .b33 %r<4>;"),
        "k.ptx:6:6: error: `.b33` is not a register type\n  .reg .b33 %r<4>;\n       ^^^^\n"
        "  hint: write e.g. `.reg .b32 %r<4>;`",
    ),
    (body(".maxntid 128;"), "k.ptx:6:1: error: `.maxntid` is not a directive of a function body"),
    (body("{ {"), "k.ptx:6:1: error: the text ends inside this `{`"),
    (HEAD + ".section .debug { .b8 1", "k.ptx:4:17: error: section .debug is never closed with `}`"),
    (HEAD + ".alias f;", "k.ptx:4:9: error: `.alias` names two functions"),
    (HEAD + ".foo;", "k.ptx:4:1: error: `.foo` is not a directive of a module\n  .foo;\n  ^^^^"),
]


@pytest.mark.parametrize(("text", "message"), MESSAGES, ids=range(len(MESSAGES)))
def test_messages(text: str, message: str) -> None:
    with pytest.raises(PtxError) as caught:
        parse(text, "k.ptx")
    said = str(caught.value)
    # short expectations give the first line only: what follows is the source line and its caret
    assert said == message if "\n" in message else said.split("\n", maxsplit=1)[0] == message
    assert "\n" in message or len(caught.value.problems) == 1


def test_many_problems_end_at_the_limit() -> None:
    with pytest.raises(PtxError) as caught:
        parse(body("add.s32 %r1 %r2;\n" * 80), "k.ptx")
    assert len(caught.value.problems) == 50


def test_deep_nesting_is_refused() -> None:
    for text, message in [
        (body("mov.u32 %r1, " + "(" * 5000 + "1" + ")" * 5000 + ";"), "a constant expression nested deeper than 100 levels"),
        (body("mov.u32 %r1, " + "-" * 5000 + "1;"), "a constant expression nested deeper than 100 levels"),
        (body("{" * 5000), "scopes nested deeper than 64 levels"),
        (HEAD + ".global .u32 a[1] = " + "{" * 5000, "initialiser braces nested deeper than 32 levels"),
    ]:
        with pytest.raises(PtxError) as caught:
            parse(text)
        assert caught.value.problems[0].message == message


def test_files_that_are_not_ptx(tmp_path: Path) -> None:
    def refused(data: bytes | None, message: str) -> None:
        path = tmp_path / "x"
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(WarpsmithError) as caught:
            parse_file(path)
        assert str(caught.value) == message.replace("PATH", str(path))

    refused(None, "PATH: cannot be read: No such file or directory")
    refused(
        b"\x7fELF\x02\x01",
        "PATH: an ELF file (cubin or object), not PTX text; `warpsmith extract --kind ptx` writes what PTX it holds",
    )
    refused(
        b"\x50\xed\x55\xba\x01\x00", "PATH: a fatbin, not PTX text; `warpsmith extract --kind ptx` writes what PTX it holds"
    )
    refused(b"ab\0cd", "PATH: a binary file (it has zero bytes), not PTX text")
    refused(b"", "PATH:1:1: error: the text is empty: no PTX in it\n  \n  ^")
    with pytest.raises(InputError, match=r"^.*: cannot be read: Is a directory$"):
        parse_file(tmp_path)


def test_text_over_the_limit_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "big.ptx"
    with path.open("wb") as file:
        file.truncate(100 << 20)
    start = time.perf_counter()
    with pytest.raises(InputError) as caught:
        parse_file(path)
    assert str(caught.value) == f"{path}: more than 67,108,864 bytes, over the limit for PTX; pass limit= to read it anyway"
    assert time.perf_counter() - start < 5
    with pytest.raises(InputError) as caught:
        parse("x" * 11, "t", limit=10)
    assert str(caught.value) == "t: 11 characters of PTX, over the limit of 10; pass limit= to read it anyway"
    assert LIMIT == 67_108_864


def test_trailing_zeros_of_a_fatbin_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_bytes(HEAD.encode() + b"\0\0\0")
    assert parse_file(path).arch == "sm_90a"


STATEMENTS = """
.reg .b32 %r<9>;
.reg .pred %p;
@!%p ld.global.v2.b32 {%r1, _}, [%r2+16];
L: { setp.eq.s32 %p|_, %r1, -5; }
call (a), f, (b, 1), t;
t: .branchtargets L, M;
.loc 1 2 3
mov.f32 %r1, 0f3F800000; // x
.shared .align 4 .b8 s[4];
"""
SAMPLE = body(STATEMENTS) + '.global .u32 g[2] = {1, 2};\n.file 1 "x"\n.section .debug_str { .b8 1 }\n'


def test_truncated_text_never_crashes() -> None:
    for end in range(len(SAMPLE)):
        got = attempt(SAMPLE[:end])
        assert not isinstance(got, PtxError) or 1 <= len(got.problems) <= 50


def test_damaged_text_never_crashes_and_never_hangs() -> None:
    draw = random.Random(5)
    pieces = [
        *"{}()[]<>;:,.|@!%\"'/*+-=~?&^#\\0123 \n\t",
        "/*",
        "//",
        ".reg",
        ".loc",
        ".entry",
        "call",
        "0f",
        "::",
        "\x00",
        "ü",
    ]
    start = time.perf_counter()
    for _ in range(1500):
        text = list(SAMPLE)
        for _ in range(draw.randint(1, 6)):
            at = draw.randrange(len(text))
            text[at : at + draw.randint(0, 3)] = [draw.choice(pieces)]
        got = attempt("".join(text))
        if isinstance(got, PtxError):
            assert 1 <= len(got.problems) <= 50
            assert str(got)
        else:
            assert parse(str(got)).items == got.items
    assert time.perf_counter() - start < 30
