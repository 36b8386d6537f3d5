"""Texts: encoding, refusals, labels, unknown words, control codes."""

from __future__ import annotations

import re

import pytest

from warpsmith import sass
from warpsmith.assembly.sass.control import CONTROL_MASK, NO_CONTROL
from warpsmith.base.errors import CapabilityError, InputError

ARCH = "sm_90a"


def word_of(text: str, **options: int) -> int:
    return int.from_bytes(sass.encode(text, ARCH, **options), "little")


def test_known_encodings() -> None:
    assert word_of("NOP") == 0x7918 | NO_CONTROL
    # IADD3 R1, R2, R3, RZ: opcode 0x210, guard PT, registers at 16, 24, 32 and 64, carries PT at 81, 84 and their inputs
    # !PT at 87, 77
    assert word_of("IADD3 R1, R2, R3, RZ") & ~CONTROL_MASK == 0x7FFE0FF_0000000302017210
    assert word_of("@!P3 FADD R1, R2, 1.5") >> 12 & 15 == 0b1011
    assert word_of("FADD R1, R2, 1.5") >> 32 & 0xFFFFFFFF == 0x3FC00000


def test_blanks_and_semicolon_mean_nothing() -> None:
    assert word_of("  IADD3   R1,R2 , R3,RZ ; ") == word_of("IADD3 R1, R2, R3, RZ")


def test_control_codes() -> None:
    control = sass.Control(stall=4, yield_=True, write=2, read=None, wait=(0, 5))
    i = sass.decode(sass.encode("LDG.E R2, desc[UR4][R4.64]", ARCH, control), ARCH)[0]
    assert i.control == control
    assert str(i.control) == "B0----5:R-:W2:Y:S04"
    assert sass.decode(sass.encode("FFMA R1, R2.reuse, R3, R4", ARCH), ARCH)[0].control.reuse == 1


@pytest.mark.parametrize(
    ("text", "control", "message"),
    [
        (
            "FFMA R1, R2.reuse, R3, R4",
            sass.Control(),
            "the text has .reuse for slots 001, the control bits for 000; write both alike",
        ),
        (
            "FFMA R1, R2, R3, R4",
            sass.Control(stall=13),
            "ffma__RRR_RRR cannot be issued with stall 13, yield 0 and reuse 000 together",
        ),
        ("BRA 0x40", sass.Control(write=1), "bra__CONV_DIV does not take write scoreboard 1"),
    ],
)
def test_control_codes_that_do_not_go_with_the_text(text: str, control: sass.Control, message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(f'{text!r}: {message}')}$"):
        sass.encode(text, ARCH, control)


def test_refusals_name_what_is_near() -> None:
    with pytest.raises(InputError, match=r"^'FFMAX R1, R2, R3, R4': sm_90a has no instruction 'FFMAX'; near it: FFMA\b"):
        sass.encode("FFMAX R1, R2, R3, R4", ARCH)
    with pytest.raises(InputError) as caught:
        sass.encode("FFMA.SAT R1, R2, R3", ARCH)
    assert str(caught.value).startswith(
        "'FFMA.SAT R1, R2, R3': no form of FFMA of sm_90a reads like this; the nearest are\n  FFMA"
    )
    with pytest.raises(InputError, match=r"^'MOV R1, 0x100000000': no form of MOV of sm_90a reads like this"):
        sass.encode("MOV R1, 0x100000000", ARCH)


def test_branches_to_labels() -> None:
    code = sass.assemble("start: NOP ;\n  @P0 BRA done // forward\n BRA start\ndone:\n EXIT", ARCH)
    assert [i.text for i in sass.decode(code, ARCH)] == ["NOP", "@P0 BRA 0x30", "BRA 0x0", "EXIT"]
    far = sass.decode(code, ARCH, base=0x1000)
    assert far[1].text == "@P0 BRA 0x1030"
    assert sass.assemble("a: NOP\nBRA a", ARCH, base=0x500) == sass.assemble("NOP\nBRA 0x500", ARCH, base=0x500)


def test_errors_of_a_listing_name_the_line() -> None:
    with pytest.raises(InputError, match=r"^k.sass:2: the label 'a' stands twice\n    a: EXIT$"):
        sass.assemble("a: NOP\na: EXIT", ARCH, name="k.sass")
    with pytest.raises(InputError, match=r"^k.sass:1: 'BRA nowhere': no form of BRA of sm_90a reads like this"):
        sass.assemble("BRA nowhere", ARCH, name="k.sass")


def test_unknown_words_show_their_bits_and_spare_the_neighbours() -> None:
    words = [0x7918 | NO_CONTROL, 0xFFF | NO_CONTROL, 0x7918 | NO_CONTROL]
    program = sass.decode(b"".join(w.to_bytes(16, "little") for w in words), ARCH)
    assert [i.known for i in program] == [True, False, True]
    assert program[1].text == ".word 0x0000000000000fff, 0x000fe20000000000 // unknown: opcode 0xfff (bits 0-11)"
    assert program[1].fields == {}
    assert program.texts() == ["NOP", None, "NOP"]
    assert sass.assemble(program.listing(), ARCH) == program.code


def test_bad_input() -> None:
    with pytest.raises(InputError, match=r"^17 bytes are not whole instructions of 16; the last 1 start at 0x10$"):
        sass.decode(bytes(17), ARCH)
    with pytest.raises(CapabilityError, match=r"^there is no SASS table for sm_70; tables in tables: sm_"):
        sass.decode(bytes(16), "sm_70")
