"""Operands: what is read, what is written, how wide, in which register file; classes and descriptions."""

from __future__ import annotations

import pytest

from sass_sample import code
from warpsmith import sass
from warpsmith.assembly.sass.columns import group_words
from warpsmith.assembly.sass.operands import model_of
from warpsmith.assembly.sass.program import tools_of
from warpsmith.assembly.sass.table import FOLDER

SM90 = "sm_90a"


def instruction(text: str, arch: str = SM90) -> sass.Instruction:
    return sass.decode(sass.encode(text, arch), arch)[0]


def described(text: str, arch: str = SM90) -> list[str]:
    """Each operand as `text role group width`; what is no register has no width."""
    return [
        f"{o.text or '(not named)'} {o.role} {o.group}{'' if o.width is None else o.width}"
        for o in instruction(text, arch).operands
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("IADD3 R5, R4, R3, R2", ["R5 write R1", "R4 read R1", "R3 read R1", "R2 read R1"]),
        ("@!P3 FFMA R0, -R4.reuse, 2.5, R5", ["!P3 read P1", "R0 write R1", "-R4.reuse read R1", "2.5 read imm", "R5 read R1"]),
        ("DADD R6, R8, |R10|", ["R6 write R2", "R8 read R2", "|R10| read R2"]),
        ("ISETP.GE.AND P0, PT, R0, R3, !P1", ["P0 write P1", "PT write P1", "R0 read R1", "R3 read R1", "!P1 read P1"]),
        (
            "LDG.E.128 R4, desc[UR4][R2.64+0x10]",
            ["R4 write R4", "desc none word", "UR4 read UR2", "R2.64 read R2", "0x10 read imm"],
        ),
        ("STS.64 [R2+UR5+0x8], R6", ["R2 read R1", "UR5 read UR1", "0x8 read imm", "R6 read R2"]),
        ("MOV R4, c[0x0][0x210]", ["R4 write R1", "c[0x0][0x210] read c"]),
        ("S2R R0, SR_TID.X", ["R0 write R1", "SR_TID.X read SR"]),
        ("BSSY B0, 0x100", ["B0 write B1", "0x100 read label"]),
        ("BSYNC B0", ["B0 read B1"]),
        ("R2P PR, R0, 0x7f", ["PR write P7", "R0 read R1", "0x7f read imm"]),
        ("DEPBAR.LE SB0, 0x1", ["SB0 read SB1", "0x1 read imm"]),
        ("HMMA.16816.F32 R4, R8, R12, R4", ["R4 write R4", "R8 read R4", "R12 read R2", "R4 read R4"]),
        ("IMMA.16832.S8.S8 R4, R8.ROW, R12.COL, R4", ["R4 write R4", "R8.ROW read R4", "R12.COL read R2", "R4 read R4"]),
        (
            "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4].tnspB, R24, gsb0",
            ["R24 write R64", "gdesc none word", "UR4 read UR4", ".tnspB none word", "R24 read R64", "gsb0 write GSB1"],
        ),
        ("UTMALDG.3D [UR8], [UR4]", ["UR8 read UR5", "UR4 read UR2"]),
        ("SHFL.IDX PT, R5, R4, R3, 0x1f", ["PT write P1", "R5 write R1", "R4 read R1", "R3 read R1", "0x1f read imm"]),
    ],
)
def test_operands(text: str, wanted: list[str]) -> None:
    assert described(text) == wanted


def test_the_zero_register_and_the_true_predicate_are_not_used() -> None:
    i = instruction("IADD3 RZ, R4, RZ, R2")
    assert i.registers.reads == {("R", 4), ("R", 2)}
    assert i.registers.writes == frozenset()
    assert i.registers.complete
    assert [o.number for o in i.operands] == [None, 4, None, 2]


def test_predicates_that_the_text_leaves_out_are_not_used() -> None:
    assert instruction("IADD3 R5, P2, R4, R3, R2").registers.writes == {("R", 5), ("P", 2)}
    assert instruction("IADD3.X R5, R4, R3, R2, P1, !PT").registers.reads == {("R", 4), ("R", 3), ("R", 2), ("P", 1)}


def test_registers_that_no_operand_shows() -> None:
    assert instruction("R2P PR, R0, 0x7f").registers.writes == {("P", n) for n in range(7)}
    assert instruction("P2R R0, PR, RZ, 0x1").registers.reads == {("P", n) for n in range(7)}


def test_a_call_uses_what_its_target_uses() -> None:
    i = instruction("CALL.REL.NOINC 0x400")
    assert not i.registers.complete
    assert [(o.text, o.role) for o in i.operands] == [("0x400", "read"), ("", "unknown")]


def test_accumulators_in_two_formats() -> None:
    assert described("HGMMA.64x64x16.F16 R24, gdesc[UR4], R24")[0] == "R24 write R16"
    assert described("HMMA.16816.F16 R4, R8, R12, R4")[0] == "R4 write R2"


def test_tensor_memory_of_sm_100() -> None:
    assert described("LDTM.x32 R4, tmem[UR4]", "sm_100a") == ["R4 write R32", "tmem none word", "UR4 read UR1"]


@pytest.mark.parametrize(
    ("text", "kind", "description"),
    [
        ("IMAD R1, R2, R3, R4", "integer", "Multiply and add integers; moves and shifts of the multiplier pipe, too."),
        ("HFMA2 R1, R2, R3, R4", "half", "Multiply and add two pairs of 16-bit floats."),
        ("LDSM.16.M88.4 R4, [R2]", "memory.shared", "Load 8x8 matrices from shared memory, spread over the warp."),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", "barrier", "CTA barrier: arrive, wait, or reduce a predicate over its threads."),
        ("UIADD3 UR4, UR5, UR6, URZ", "uniform", "Add three integers, in the uniform datapath."),
    ],
)
def test_classes(text: str, kind: str, description: str) -> None:
    i = instruction(text)
    assert (i.kind, i.description) == (kind, description)


def test_an_unknown_word_claims_nothing() -> None:
    i = sass.decode((0xFFF).to_bytes(16, "little"), SM90)[0]
    assert (i.operands, i.kind, i.description, i.mnemonic) == ((), "unknown", "", "")
    assert not i.registers.complete


def test_columns_say_what_instructions_say() -> None:
    words = code("sm_80")[: 16 * 1500]
    program = sass.decode(words, "sm_80")
    decoder, _ = tools_of("sm_80", FOLDER)
    model = model_of(decoder.table)
    seen = 0
    for group in group_words(words, decoder):
        reads: list[set[tuple[str, int]]] = [set() for _ in group.indexes]
        for column in model.columns(group):
            zero = (1 << sum(w for _, w in column.bits)) - 1
            for k, (number, outcome) in enumerate(zip(column.numbers, column.outcomes, strict=True)):
                if number != zero and outcome is not None:
                    reads[k] |= {(column.group, int(number) + n) for n in range(outcome.reads)}
        for k, index in enumerate(group.indexes):
            i = program[int(index)]
            if i.known and i.registers.complete and i.mnemonic != "P2R":
                seen += 1
                assert reads[k] == i.registers.reads, i
    assert seen > 1400
