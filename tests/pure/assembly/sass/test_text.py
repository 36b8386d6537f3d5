"""Texts: encoding, refusals, labels, unknown words, control codes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from warpsmith import sass
from warpsmith.assembly.sass.assemble import assemble_lines
from warpsmith.assembly.sass.control import CONTROL_MASK, NO_CONTROL
from warpsmith.assembly.sass.match import _Lazy
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("FFMAX R1, R2, R3, R4", "sm_90a has no instruction 'FFMAX'; near it: FFMA, DFMA, HFMA2, FMNMX"),
        ("FADD R1, R2, R300", "R300 is not there: R0 to R254 and RZ"),
        ("FADD R1, R2, R255", "R255 is not there: R0 to R254 and RZ"),
        ("LDG.E R2, desc[UR63][R4.64]", "UR63 is not there: UR0 to UR62 and URZ"),
        ("@P9 FADD R1, R2, R3", "P9 is no predicate to guard an instruction: P0 to P6 and PT"),
        ("MOV R1, 0x100000000", "0x100000000 is out of range: 0x0 to 0xffffffff"),
        ("IADD3 R1, R2, -0x80000001, R3", "-0x80000001 is out of range: -0x80000000 to 0x7fffffff"),
        ("LDG.E R2, desc[UR4][R4.64+0x1000000]", "0x1000000 is out of range: -0x800000 to 0x7fffff"),
        ("BRA 0x41", "0x41 is not 0x10 plus a multiple of 4"),
        ("BRA 1.5", "1.5 stands where an integer is wanted"),
        ("FADD R1, R2, 0.1", "0.1 is not a number of binary32; the nearest is 0.10000000149011611938"),
        ("FADD R1, R2, -1e-60", "-1e-60 is not a number of binary32; the nearest is -0.0"),
        ("FADD R1, R2, 1e99", "1e99 is beyond the numbers of binary32"),
        ("FADD R1, R2, 1e999999999", "1e999999999 is beyond the numbers of binary32"),
        ("FADD R1, R2, 0.1e-999999999", "0.1e-999999999 is not a number of binary32; the nearest is 0"),
        (f"MOV R{'1' * 5000}, R1", f"R{'1' * 5000} is not there: R0 to R254 and RZ"),
        ("HADD2 R1, R2, 70000, 1", "70000 is beyond the numbers of binary16"),
        (
            "DADD R2, R2, 0.1",
            "0.1 is not a number of binary64 with a lower half of zeros; the nearest is 0.10000002384185791016",
        ),
        ("FADD R1, R2, 0x10", "0x10 stands where a decimal number is wanted"),
        ("MUFU.EX3 R1, R2", "MUFU of sm_90a has no modifier .EX3; it has .EX2"),
        ("FFMA.SAT.FTZ R1, R2, R3, R4", "its modifiers are written in this order: 'FFMA.FTZ.SAT R1, R2, R3, R4'"),
        (
            "FFMA.RM.RZ R1, R2, R3, R4",
            "no form of FFMA has .RZ together with .RM; there is 'FFMA.RM R1, R2, R3, R4'",
        ),
        ("MUFU.RCP.RCP R1, R2", ".RCP is written more than once; there is 'MUFU.RCP R1, R2'"),
        (
            "FFMA.RM.RZ.RM R1, R2, R3, R4",
            "no form of FFMA has .RZ, .RM more than once; there is 'FFMA.RM R1, R2, R3, R4'",
        ),
        (
            "IMAD R1, R2, 0x1, R3",
            "no word reads like this; with these operands imad__RsIR_RIR reads 'IMAD.IADD R1, R2, 0x1, R3'",
        ),
        ("BRA nowhere", "there is no label 'nowhere'; `assemble` reads listings with labels"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(f'{text!r}: {message}')}$"):
        sass.encode(text, ARCH)


def test_other_refusals_name_the_nearest_forms() -> None:
    with pytest.raises(InputError) as caught:
        sass.encode("FFMA.SAT R1, R2, R3", ARCH)
    assert str(caught.value).startswith(
        "'FFMA.SAT R1, R2, R3': no form of FFMA of sm_90a reads like this; the nearest are\n  FFMA"
    )


def test_the_refusal_of_many_modifiers_tries_few_combinations() -> None:
    """All subsets of forty modifiers would take for ever."""
    text = "MUFU" + ".RCP.RSQ" * 20 + " R1, R2"
    with pytest.raises(InputError, match=f"^{re.escape(f'{text!r}: no form of MUFU of sm_90a reads like this; ')}"):
        sass.encode(text, ARCH)


@pytest.mark.parametrize(
    ("control", "message"),
    [
        (sass.Control(stall=16), "stall 16 is out of range: 0 to 15"),
        (sass.Control(stall=-1), "stall -1 is out of range: 0 to 15"),
        (sass.Control(reuse=8), "reuse 8 is out of range: 0 to 7"),
        (sass.Control(write=7), "write scoreboard 7 is not there: 0 to 5, or None for none"),
        (sass.Control(read=-1), "read scoreboard -1 is not there: 0 to 5, or None for none"),
        (sass.Control(wait=(6,)), "there is no scoreboard 6 to wait for: 0 to 5"),
    ],
)
def test_control_codes_out_of_range(control: sass.Control, message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(f'control code: {message}')}$"):
        sass.encode("NOP", ARCH, control)


@pytest.mark.parametrize("code", ["B1-----:R-:W-:-:S01", "B------:R-:W-:-:S1", "B------:RX:W-:-:S01", "B-----:R-:W-:-:S01"])
def test_control_codes_that_are_none(code: str) -> None:
    with pytest.raises(InputError) as caught:
        sass.assemble(f"NOP\n  {code} NOP", ARCH, name="k.sass")
    assert str(caught.value) == (
        f"k.sass:2: {code!r} is no control code; write B012345:R0:W0:Y:S00 with '-' for scoreboards that are not waited for or"
        f" set, and for no yield\n    {code} NOP"
    )


def test_branches_to_labels() -> None:
    code = sass.assemble("start: NOP ;\n  @P0 BRA done // forward\n BRA start\ndone:\n EXIT", ARCH)
    assert [i.text for i in sass.decode(code, ARCH)] == ["NOP", "@P0 BRA 0x30", "BRA 0x0", "EXIT"]
    far = sass.decode(code, ARCH, base=0x1000)
    assert far[1].text == "@P0 BRA 0x1030"
    assert sass.assemble("a: NOP\nBRA a", ARCH, base=0x500) == sass.assemble("NOP\nBRA 0x500", ARCH, base=0x500)


def test_errors_of_a_listing_name_the_line() -> None:
    with pytest.raises(InputError, match=r"^k.sass:2: the label 'a' stands twice\n    a: EXIT$"):
        sass.assemble("a: NOP\na: EXIT", ARCH, name="k.sass")
    with pytest.raises(InputError, match=r"^k.sass:2: 'BRA lop': there is no label 'lop'; near it: loop\n    BRA lop$"):
        sass.assemble("loop: NOP\nBRA lop", ARCH, name="k.sass")


UNPRINTED = "unprinted bits are one hexadecimal number: /*unprinted 0x1f*/"
RAW = "a raw word is .word LOW, HIGH: two hexadecimal numbers, without control bits"
CONTROL = (
    "stands without an instruction, or is no control code; write B012345:R0:W0:Y:S00 TEXT with '-' for scoreboards that are not"
    " waited for or set, and for no yield"
)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "FADD R0, R1, R2 ; /*unprinted 0xff0000*/",
            "unprinted 0xff0000 changes 'FADD R0, R1, R2' to 'FADD RZ, R1, R2'; it holds bits alone that nothing is printed of",
        ),
        (
            "EXIT ; /*unprinted 0xfff*/",
            "unprinted 0xfff changes 'EXIT' to 'no instruction'; it holds bits alone that nothing is printed of",
        ),
        (
            f"NOP ; /*unprinted {1 << 105:#x}*/",
            f"unprinted {1 << 105:#x} changes the control bits; it holds bits alone that nothing is printed of",
        ),
        ("NOP ; /*unprinted -0x1*/", UNPRINTED),
        ("NOP ; /*unprinted 1f*/", UNPRINTED),
        ("NOP ; /*unprinted 0x1*/ /*unprinted 0x2*/", UNPRINTED),
        (".word 0x1, 0x2 /*unprinted 0x1*/", "a raw word has all its bits; unprinted bits go with a text"),
        ("B------:R-:W-:-:S01 .word 0x1, 0x2", f"'.word 0x1, 0x2': {RAW}"),
        (".word 0x1", f"'.word 0x1': {RAW}"),
        (".word 1, 2", f"'.word 1, 2': {RAW}"),
        (".align 16", "'.align' is no directive of code; there is .word LOW, HIGH"),
        ("B------:R-:W-:-:S01", f"'B------:R-:W-:-:S01' {CONTROL}"),
        ("B------:R-:W- EXIT", f"'B------:R-:W-' {CONTROL}"),
        ("B------:R-:W-:-:S01/9 EXIT", f"'B------:R-:W-:-:S01/9' {CONTROL}"),
        ("\u00e9: EXIT", "'\u00e9: EXIT': no instruction begins like this; write [@P0] MNEMONIC operands"),
    ],
)
def test_lines_that_are_no_instruction(line: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        sass.assemble(f"NOP\n{line}\n", ARCH, name="k.sass")
    assert str(caught.value) == f"k.sass:2: {message}\n    {line}"


def test_lines_of_any_length_are_refused_at_once() -> None:
    with pytest.raises(InputError) as caught:
        sass.assemble("FADD " + "R1, " * 100_000, ARCH, name="k.sass")
    assert str(caught.value) == (
        "k.sass:1: 'FADD R1, R1, R1, R1, R1, R1, R1, R1, R1,'…: 400,004 characters; an instruction has at most 16,384\n"
        f"    FADD {'R1, ' * 48}R1,…"
    )


def test_raw_words_and_unprinted_bits_in_capitals() -> None:
    assert sass.assemble(".word 0xABC, 0xDEF", ARCH) == sass.assemble(".word 0xabc, 0xdef ;", ARCH)
    assert sass.assemble("NOP ; /*unprinted 0xA000000000*/", ARCH) == sass.encode("NOP", ARCH, unprinted=0xA000000000)
    with pytest.raises(
        InputError, match=r"^unprinted 0xff0000 changes 'MOV R0, R1' to 'MOV RZ, R1'; it holds bits alone that "
    ):
        sass.encode("MOV R0, R1", ARCH, unprinted=0xFF0000)
    with pytest.raises(InputError, match=r"^unprinted is negative$"):
        sass.encode("NOP", ARCH, unprinted=-1)


def test_a_comment_that_reads_like_a_number_is_no_address() -> None:
    done = assemble_lines("/*0010*/ NOP /* added */\nNOP /* added */\n/*dead*/ NOP", ARCH)
    assert done.origins == (0x10, None, None)


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


def test_threads_share_what_a_text_may_stand_for() -> None:
    """An iterator that two threads ask at once would raise, or give each a part of its items."""

    def slowly() -> Iterator[int]:
        for number in range(40):
            sleep(0.0005)
            yield number

    shared = _Lazy(slowly())
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda start: list(shared.after(start)), (0, 0, 3, 17)))
    assert found == [list(range(start, 40)) for start in (0, 0, 3, 17)]


@pytest.mark.parametrize(
    ("arch", "word", "text"),
    [
        ("sm_75", 0x1C0000000000FF047984, "LDS.U.128 R4, [RZ]"),
        ("sm_75", 0x140000181C00FF132984, "@P2 LDS.U.U16 R19, [0x181c]"),
        ("sm_75", 0x81F414600000402FF02098A, "@P0 ATOM.E.ADD.STRONG.GPU PT, R2, [UR6+0x4], R2"),
        ("sm_75", 0x8001205FFFFFFFF04117499, "USHF.R.U64 UR17, UR4, UR5, 0xffffffff"),
        ("sm_80", 0x8001206FFFFFFFF04137499, "USHF.R.U64 UR19, UR4, UR6, 0xffffffff"),
        ("sm_89", 0x8001206FFFFFFFF08137499, "USHF.R.U64 UR19, UR8, UR6, 0xffffffff"),
        ("sm_103", 0x8001205FFFFFFFF04157499, "USHF.R.U64 UR21, UR4, UR5, 0xffffffff"),
        ("sm_120", 0x8010207FFFFFFFF08077499, "USHF.L.U64.HI UR7, UR8, UR7, 0xffffffff"),
    ],
)
def test_words_of_libraries_that_tables_once_lacked(arch: str, word: int, text: str) -> None:
    """The texts are those of nvdisasm 13.5.37."""
    program = sass.decode((word | NO_CONTROL).to_bytes(16, "little"), arch)
    assert program[0].text == text
    again = sass.encode(text, arch, program[0].control, unprinted=program[0].unprinted)
    assert int.from_bytes(again, "little") == word | NO_CONTROL


@pytest.mark.parametrize("arch", ["sm_86", "sm_89", "sm_90a"])
def test_modifiers_that_the_disassembler_refuses_together_are_refused(arch: str) -> None:
    """HFMA2 takes bit 78 (`.F32`) or bit 85 (`.BF16_V2`), not both."""
    word = 0x80000000000000000000A31 | 0x7 << 12 | NO_CONTROL
    one, other = 1 << 78, 1 << 85
    texts = [sass.decode((word | bits).to_bytes(16, "little"), arch)[0].text for bits in (0, one, other, one | other)]
    assert [t.startswith("HFMA2") for t in texts] == [True, True, True, False]
    assert "bits 78, 85 for hfma2__RCxR: modifiers that do not go together" in texts[3]
