"""Probing against the real disassembler: its traps, learning a form, looking at a word."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from warpsmith import sass
from warpsmith.assembly.sass.control import NO_CONTROL
from warpsmith.assembly.sass.probe.compare import compare_tables
from warpsmith.assembly.sass.probe.explore import explore
from warpsmith.assembly.sass.probe.extend import extend
from warpsmith.assembly.sass.probe.form import Start, learn_form
from warpsmith.assembly.sass.probe.oracle import Oracle
from warpsmith.assembly.sass.probe.publish import publish
from warpsmith.assembly.sass.probe.scan import scan
from warpsmith.assembly.sass.probe.serve import serve
from warpsmith.assembly.sass.table import FOLDER, load_table, parse_table
from warpsmith.base.errors import InputError

NOP = 0x7918 | NO_CONTROL
SHIFT = 0x078E00FF00000002007C7824 | NO_CONTROL  # IMAD.SHL.U32 R124, R0, 0x2, RZ


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle("sm_90a")


def test_illegal_words_do_not_hide_their_neighbours(oracle: Oracle) -> None:
    assert oracle.texts([NOP, 0xFFF | NO_CONTROL, NOP]) == [(0, "NOP"), None, (32, "NOP")]
    assert oracle.texts([]) == []


def test_words_that_are_silently_left_out_are_none(oracle: Oracle) -> None:
    assert oracle.texts([0x218 | NO_CONTROL, NOP])[1] == (16, "NOP")


def test_the_blank_before_the_semicolon_is_no_part_of_a_text(oracle: Oracle) -> None:
    """With stall 0 and yield there is none, but with ERRBAR; that of an infinity is its own."""
    infinity = 0x0000000000000000_7F80000001007421 | NO_CONTROL
    quiet = 7 << 110 | 7 << 113
    issue = 0x1F << 105
    error = 0x79AB | NO_CONTROL
    words = [w for word in (NOP, infinity, error) for w in (word, word & ~issue | quiet)]
    expected = ["NOP", "NOP", "FADD R0, R1, +INF ", "FADD R0, R1, +INF ", "ERRBAR", "ERRBAR"]
    assert [t and t[1] for t in oracle.texts(words)] == expected


def test_the_class_is_told(oracle: Oracle) -> None:
    assert [c and c[0] for c in oracle.classes([NOP, SHIFT, 0xFFF | NO_CONTROL])] == ["nop_", "imad__RsIR_RIR", None]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("imad__RsIR_RIR", "IMAD.SHL.U32 R124, R0, 0x2, RZ"),
        ("bra__CONV_DIV", "@P0 BRA 0x40"),
        ("hfma2_mma__RRI", "HFMA2.MMA R0, -RZ, RZ, 0, 1.5"),
        ("ldg_memdesc__Ra64", "LDG.E.64 R2, desc[UR4][R4.64+0x10]"),
    ],
)
def test_a_form_learned_from_one_word_prints_what_the_disassembler_prints(oracle: Oracle, name: str, text: str) -> None:
    """Aliases by value, split and relative fields, float pairs, descriptors: each row is tried on other words than those
    it learned from."""
    start = Start(name, int.from_bytes(sass.encode(text, "sm_90a"), "little"))
    study = serve(oracle, {0: learn_form(start)})[0]
    assert study.row is not None
    assert (study.wrong, study.log) == (0, [])
    draw = random.Random(7)
    free = [b for b in range(12, 105) if not study.row.mask >> b & 1]
    words: list[int] = []
    for _ in range(600):
        word = start.base
        for b in draw.sample(free, draw.choice((1, 2, 5, 20))):
            word ^= 1 << b
        words.append(word)
    compared = 0
    for word, answer, found in zip(words, oracle.texts(words), oracle.classes(words), strict=True):
        if (
            answer
            and found
            and found[0] == name
            and study.row.covers(word)
            and (mine := study.row.text(word, answer[0])) is not None
        ):
            assert mine == answer[1]
            compared += 1
    assert compared > 300


def test_a_table_is_made_resumed_and_compared(tmp_path: Path) -> None:
    words = b"".join(w.to_bytes(16, "little") for w in (NOP, SHIFT))
    state = tmp_path / "state.jsonl"
    log = publish("sm_90a", [NOP, SHIFT], tmp_path / "a", state, wander=False)
    assert log == []
    first = (tmp_path / "a" / "sm_90a.tsv").read_text()
    lines = state.read_text().splitlines(keepends=True)
    state.write_text("".join(lines[:2]) + lines[2][:40])  # cut in the middle of a form
    publish("sm_90a", [NOP, SHIFT], tmp_path / "b", state, wander=False, resume=True)
    assert (tmp_path / "b" / "sm_90a.tsv").read_text() == first
    table = load_table("sm_90a", tmp_path / "a")
    assert {r.name for r in table.rows} == {"nop_", "imad__RsIR_RIR"}
    assert compare_tables(table, load_table("sm_90a", tmp_path / "b")) == []
    assert sass.decode(words, "sm_90a", tables=tmp_path / "a").texts() == ["NOP", "IMAD.SHL.U32 R124, R0, 0x2, RZ"]
    with pytest.raises(InputError, match=r"state.jsonl is from another run \(.*\); this one is sm_80 nvdisasm "):
        publish("sm_80", [NOP], tmp_path / "c", state, resume=True)


def test_looking_at_a_word(oracle: Oracle) -> None:
    found = explore(oracle, SHIFT)
    assert (found.text, found.name) == ("IMAD.SHL.U32 R124, R0, 0x2, RZ", "imad__RsIR_RIR")
    roles = {f.bits: f for f in found.findings}
    assert roles[tuple(range(16, 24))].meaning == "R R124 (value 0x7c)"
    assert roles[(75,)].role == "modifier"
    with pytest.raises(
        InputError, match=r"^0x000fe200000000000000000000000fff is no instruction of sm_90a: nvdisasm rejects it$"
    ):
        explore(oracle, 0xFFF)


def test_a_table_gains_the_forms_of_unknown_words_and_keeps_its_own(tmp_path: Path) -> None:
    """A class taken out of sm_90a is found again by words of its opcode; sm_80, where it prints otherwise, stays as it was."""
    name, opcode = "f2fp__RRR", 0x23E
    for arch in ("sm_90a", "sm_80"):
        lines = (FOLDER / f"{arch}.tsv").read_text().splitlines()
        kept = [line for line in lines if arch == "sm_80" or line.split("\t")[0] != name]
        (tmp_path / f"{arch}.tsv").write_text("\n".join(kept) + "\n")
    before = (tmp_path / "sm_90a.tsv").read_text()
    heir = parse_table("sm_80", tmp_path)
    ours = next(r for r in load_table("sm_90a").rows if r.name == name)
    word = int(ours.notes["seed"], 0) | NO_CONTROL
    assert word & 0xFFF == opcode
    assert parse_table("sm_90a", tmp_path).row_of(word) is None
    found = extend("sm_90a", [word], tmp_path, tmp_path / "state.jsonl")
    table = parse_table("sm_90a", tmp_path)
    assert set(found.gained) == {name}
    assert not found.log
    after = (tmp_path / "sm_90a.tsv").read_text().splitlines()
    assert [line for line in after if line in before.splitlines()] == before.splitlines()
    row = table.row_of(word)
    assert row is not None
    assert row.text(word) == ours.text(word)
    again = parse_table("sm_80", tmp_path)
    assert [r for r in again.rows if r.name != name] == [r for r in heir.rows if r.name != name]
    assert extend("sm_90a", [word], tmp_path, tmp_path / "state.jsonl").gained == {}


def test_a_scan_finds_words_of_every_class_that_a_table_lacks(oracle: Oracle, tmp_path: Path) -> None:
    lines = (FOLDER / "sm_90a.tsv").read_text().splitlines()
    gone = ("nop_", "imad__RsIR_RIR", "fadd__RRR_RR")
    (tmp_path / "sm_90a.tsv").write_text("".join(f"{line}\n" for line in lines if line.split("\t")[0] not in gone))
    found = scan(oracle, parse_table("sm_90a", tmp_path), 8)
    assert set(gone) <= set(found)
    assert all(oracle.classes([w])[0][0] == name for name in gone for w in found[name])


@pytest.mark.parametrize(
    ("arch", "other", "name"), [("sm_100a", "sm_100a", "f2fp_8b_upconvert__RRR"), ("sm_90a", "sm_89", "f2fp_8b_upconvert__RUR")]
)
def test_a_scan_follows_known_forms_to_other_operands(arch: str, other: str, name: str, tmp_path: Path) -> None:
    """`F2FP.F16.E4M3.UNPACK_B` of a uniform register, whose key no random word here has: from the form with registers, or from
    the other architecture's."""
    lines = (FOLDER / f"{other}.tsv").read_text().splitlines()
    kept = [line for line in lines if line.split("\t")[0] == name or line.startswith(("#", "%", "@"))]
    (tmp_path / f"{other}.tsv").write_text("\n".join(kept) + "\n")
    (tmp_path / "sm_103a.tsv").write_text("# nothing is known\n")
    oracle = Oracle(arch)
    found = scan(oracle, parse_table("sm_103a", tmp_path), 1, kin=[parse_table(other, tmp_path)])
    texts = [t[1] for t in oracle.texts(found["f2fp_8b_upconvert__RUR"]) if t]
    assert any(re.search(r"F2FP\.\S+\.UNPACK_B R(Z|\d+), UR", text) for text in texts), texts
