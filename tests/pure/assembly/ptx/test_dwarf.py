"""`@@DWARF`, the debug data of compilers before PTX 2.0: read, kept, printed; wrong ones are named."""

from __future__ import annotations

import pytest

from warpsmith.assembly.ptx import parse, print_module
from warpsmith.assembly.ptx.check import check
from warpsmith.assembly.ptx.tree import Dwarf
from warpsmith.base.errors import PtxError

HEAD = ".version 1.4\n.target sm_13\n"
KERNEL = ".entry k\n{\n$begin:\n\texit;\n$end:\n}\n"
DATA = """@@DWARF .section\t.debug_info, "", @progbits
@@DWARF .byte\t0x95, 0x02, 0, 255
@@DWARF .4byte\t.debug_abbrev
@@DWARF .4byte\t0x742f0108, 0x742f706d
@@DWARF .quad\t$begin
@@DWARF .quad\t0x1122334455667788, 1
"""


def test_every_form_is_kept_and_printed_as_it_was():
    module = parse(HEAD + KERNEL + DATA)
    kept = [i for i in module.items if isinstance(i, Dwarf)]
    assert [(d.kind, d.arguments) for d in kept] == [
        ("section", [".debug_info", '""', "@progbits"]),
        ("byte", ["0x95", "0x02", "0", "255"]),
        ("4byte", [".debug_abbrev"]),
        ("4byte", ["0x742f0108", "0x742f706d"]),
        ("quad", ["$begin"]),
        ("quad", ["0x1122334455667788", "1"]),
    ]
    text = str(module)
    assert DATA in text
    assert parse(text) == module


def test_it_is_tokens_and_not_a_line():
    spread = '@@DWARF /* a */ .section .debug_info , "",@progbits @@DWARF .byte 1\n , 2 // two\n' + KERNEL
    items = parse(HEAD + spread).items
    assert [type(i).__name__ for i in items] == ["Dwarf", "Dwarf", "Function"]
    assert items[1] == Dwarf("byte", ["1", "2"])


def test_it_goes_with_the_other_debug_data():
    assert "@@DWARF" not in print_module(parse(HEAD + KERNEL + DATA), locations=False)


def test_old_ptx_is_printed_without_an_address_size():
    assert str(parse(HEAD + KERNEL)).startswith(".version 1.4\n.target sm_13\n\n\n.entry k")
    assert ".address_size 64\n" in str(parse(".version 2.3\n.target sm_50\n" + KERNEL))


def test_the_checker_says_once_that_it_is_gone():
    text = ".version 4.0\n.target sm_50\n" + KERNEL + '@@DWARF .section .debug_info, "", @progbits\n@@DWARF .byte 1\n'
    assert [str(p) for p in check(parse(text, "k.ptx"))] == [
        "k.ptx:9:1: error: PTX 4.0 does not have `@@DWARF`\n"
        '  @@DWARF .section .debug_info, "", @progbits\n'
        "  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  hint: since PTX 2.0 debug data stands in `.section .name { … }`"
    ]


SECTION = '@@DWARF .section .debug_info, "", @progbits\n'
WRONG = [
    ("@@DWARF .byte 1", "`@@DWARF .byte` before any section"),
    ("@@dwarf .byte 1", "`@@` is not a directive"),
    ("@@DWARF .string 1", "`@@` is not a directive"),
    (SECTION + "@@DWARF .byte 256", "the constant `256` does not fit .byte"),
    (SECTION + "@@DWARF .byte -1", "expected a constant, a label or a section, found `-`"),
    (SECTION + "@@DWARF .4byte 1 ;", "expected a function, a variable or a directive, found `;`"),
    ("@@DWARF .section .debug_info", "expected `,` after the name of the section, found the end of the text"),
    ('@@DWARF .section .debug_info, "", progbits', "expected `@` before the type of the section, found `progbits`"),
    ("@@DWARF .section 3", "expected the name of a section, found `3`"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_wrong_ones_are_named(text: str, message: str):
    with pytest.raises(PtxError) as caught:
        parse(HEAD + KERNEL + text)
    assert caught.value.problems[0].message == message


def test_it_does_not_stand_in_a_body():
    with pytest.raises(PtxError, match="expected an instruction, a label or a directive, found `@@`"):
        parse(HEAD + ".entry k { @@DWARF .byte 1\n exit; }")
