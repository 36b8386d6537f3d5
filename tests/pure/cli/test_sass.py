"""`warpsmith sass`: the disassembler's format, ours, searches, a word explained, and what bad input gets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from command_line import Run
from containers import container, entry, host_elf
from cubin_corpus import cubins
from elf_sections import code_of
from warpsmith import sass
from warpsmith.cli import sass_search
from warpsmith.cli.sass import _odd_length
from warpsmith.cli.sass_input import Piece

SM80, SM90 = cubins()["ptxas-13.5-sm_80"], cubins()["ptxas-13.5-sm_90a"]
SM70 = cubins()["ptxas-12.8-sm_70"]
PTX = b".version 8.8\n.target sm_90\n"
HOST = host_elf({".nv_fatbin": container(entry(SM80, arch=80), entry(SM90, flags=0x100011), entry(PTX, kind=1))})
LOAD = "0x000ea2000c1e19000000100406047981"


@pytest.fixture
def cubin(tmp_path: Path) -> str:
    (tmp_path / "k.cubin").write_bytes(SM90)
    return "k.cubin"


def test_the_disassemblers_format(run: Run, cubin: str) -> None:
    got = run("sass", cubin, "--function", "shares")
    assert (got.status, got.err) == (0, "")
    lines = got.out.splitlines()
    assert lines[0] == "//--------------------- .text.shares     --------------------------"
    assert lines[1] == "        /*0000*/                   LDC R1, c[0x0][0x28] ;"
    assert lines[-2] == "        /*0570*/                   NOP;"
    assert len(lines) == 88 + 2


def test_our_listing(run: Run, cubin: str) -> None:
    lines = run("sass", cubin, "--function", "branches", "--ours").out.splitlines()
    assert lines[:4] == ["// k.cubin, byte 0x0", ".arch sm_90a", ".function branches", ".registers 15"]
    assert lines[4:7] == [".params 8 8 4 4", ".needs constant bank 2", ".needs constant bank 3"]
    assert lines[7:9] == ["//       wait   read write yield stall/reuse", ".L_0:"]
    assert "/*0000*/ B------:R-:W-:-:S01        LDC R1, c[0x0][0x28] ;" in lines
    assert any(line.startswith(".L_0:") for line in lines)
    assert any("BRA `(.L_" in line for line in lines)


def test_roles_stand_behind_the_line(run: Run, cubin: str) -> None:
    lines = run("sass", cubin, "--ours", "--roles", "--function", "shares").out.splitlines()
    assert next(line for line in lines if "LDC R1" in line).endswith(" // R1 <-")
    assert any(line.endswith(" ?") or "<-" in line for line in lines)


def test_json(run: Run, cubin: str) -> None:
    first, second = map(json.loads, run("sass", cubin, "--json").out.splitlines())
    assert (first["function"], second["function"], first["arch"], first["offset"]) == ("shares", "branches", "sm_90a", 0)
    assert len(first["instructions"]) == 88
    i = first["instructions"][0]
    assert i["text"] == "LDC R1, c[0x0][0x28]"
    assert int(i["raw"], 16).to_bytes(16, "little") == code_of(SM90)[".text.shares"][:16]
    assert i["control"] == {"stall": 1, "yield": False, "write": None, "read": None, "wait": [], "reuse": 0}
    assert (i["class"], i["writes"], i["reads"], i["complete"]) == ("memory.constant", ["R1"], [], True)


def test_a_library_and_its_architectures(run: Run, tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_bytes(HOST)
    both = run("sass", "lib.so", "--search", "^EXIT", "--function", "shares")
    assert [line.split()[1] for line in both.out.splitlines()[:-1]] == ["sm_80", "sm_90a"]
    one = run("sass", "lib.so", "--search", "^EXIT", "--function", "shares", "--arch", "sm_80")
    at = HOST.index(SM80) - 64
    assert one.out.splitlines()[0].startswith(f"lib.so@{at:#x} sm_80 shares: /*")
    assert one.out.splitlines()[-1] == "1 of 88 instructions match"


def test_bits(run: Run, cubin: str) -> None:
    words = [int.from_bytes(c[k : k + 16], "little") for c in code_of(SM90).values() for k in range(0, len(c), 16)]
    wanted = sum(w & 0xFFF == 0x94D for w in words)
    assert run("sass", cubin, "--bits", "0xfff=0x94d").out.splitlines()[-1] == f"{wanted} of {len(words)} instructions match"
    both = run("sass", cubin, "--bits", "0xfff=0x94d", "--bits", "105+4=5", "--json").out.splitlines()
    assert len(both) == sum(w & 0xFFF == 0x94D and w >> 105 & 15 == 5 for w in words) > 0
    assert all(json.loads(line)["mnemonic"] == "EXIT" for line in both)


def test_colours(run: Run, cubin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run("sass", cubin, "--ours").out
    painted = run("sass", cubin, "--ours", "--color", "always").out
    assert "\x1b[36mR1\x1b[0m" in painted
    assert "\x1b[35mB------:R-:W-:-:S01\x1b[0m" in painted


def test_a_word_explained(run: Run) -> None:
    lines = run("sass", "--word", LOAD, "--arch", "sm_90a").out.splitlines()
    assert lines[:3] == [
        LOAD,
        "LDG.E R4, desc[UR4][R6.64+0x10]",
        "form ldg_memdesc__Ra64, class memory.global: Load from global memory.",
    ]
    assert "         24-31           0x6  operand   R6.64: read R6 to R7" in [line[0:] for line in lines]
    assert lines[-1] == "          0x10  imm    read"
    parts = json.loads(run("sass", "--word", LOAD, "--arch", "sm_90a", "--json").out)
    assert parts["form"] == "ldg_memdesc__Ra64"
    assert {"bits": [[24, 8]], "value": "0x6", "kind": "operand", "meaning": "R6.64: read R6 to R7"} in parts["parts"]


def test_raw_code(run: Run, tmp_path: Path) -> None:
    (tmp_path / "code").write_bytes(sass.assemble("MOV R1, R2\nEXIT\n", "sm_90a"))
    got = run("sass", "--raw", "code", "--arch", "sm_90a")
    assert got.out == "        /*0000*/                   MOV R1, R2 ;\n        /*0010*/                   EXIT ;\n"


def test_unknown_words_are_shown_and_counted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "code").write_bytes(sass.assemble("MOV R1, R2\nEXIT\n.word 0xfff, 0x0\n", "sm_90a"))
    got = run("sass", "--raw", "code", "--arch", "sm_90a")
    assert got.status == 0
    assert got.out.splitlines()[2] == (
        "        /*0020*/                   .word 0x0000000000000fff, 0x0000000000000000 // unknown: opcode 0xfff (bits 0-11)"
    )
    assert got.err == (
        "warpsmith: warning: code: 1 of 3 words have no form in the table of sm_90a, the first unknown: opcode 0xfff"
        " (bits 0-11) (byte 0x20 of 'raw code')\n"
    )


def test_architectures_without_a_table_hide_no_others(run: Run, tmp_path: Path) -> None:
    (tmp_path / "many.fatbin").write_bytes(
        container(entry(SM70, arch=70), entry(SM70, arch=70), entry(SM90[:4000], flags=0x100011), entry(SM80, arch=80))
    )
    cut = "warpsmith: error: many.fatbin@0x8cd0: 33 section headers at 0x3f4c end behind the file's end at 0xfa0 (byte 0x28)\n"
    left = "warpsmith: warning: many.fatbin: code for sm_70 is left out: there is no table for it\n"
    got = run("sass", "many.fatbin", "--search", "EXIT")
    assert (got.status, got.err, got.out.splitlines()[-1]) == (2, left + cut, "4 of 368 instructions match")
    got = run("sass", "many.fatbin", "--arch", "sm_80", "--function", "shares")
    assert (got.status, got.err) == (0, "")
    got = run("sass", "many.fatbin", "--arch", "sm_70")
    assert (got.status, got.out, got.err) == (2, "", left)


def test_code_that_is_not_whole_is_told_of() -> None:
    odd = Piece("odd.cubin", 0, "sm_90a", "shares", bytes(1407), None, None)
    assert _odd_length(Piece("odd.cubin", 0, "sm_90a", "shares", bytes(1408), None, None)) is None
    assert str(_odd_length(odd)) == (
        "odd.cubin: 1407 bytes of code are not whole instructions of 16; 15 are left over"
        " (byte 0x570 of section '.text.shares')"
    )


def test_a_pattern_that_does_not_end_is_given_up(run: Run, cubin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sass_search, "_PATIENCE", 0.2)
    got = run("sass", cubin, "--search", "(.*)*x")
    assert (got.status, got.out) == (2, "")
    assert re.fullmatch(
        r"warpsmith: error: --search \(\.\*\)\*x: takes more than 0\.2 s on '[^']+'; do not repeat what is repeated inside,"
        r" as in \(a\*\)\*\n",
        got.err,
    )
    assert run("sass", cubin, "--search", "@P0 EXIT", "--bits", "0xfff=0x94d").out.endswith("2 of 360 instructions match\n")


def test_a_set_in_a_set_is_a_pattern(run: Run, cubin: str, recwarn: pytest.WarningsRecorder) -> None:
    got = run("sass", cubin, "--search", "[[:alpha:]]")
    assert (got.status, got.out, got.err) == (0, "0 of 360 instructions match\n", "")
    assert not recwarn.list


ARM = bytearray(host_elf({".data": bytes(32)}))
ARM[18:20] = (183).to_bytes(2, "little")
OF_SM120 = b"".join(w.to_bytes(16, "little") for w in (0x5EA | 1 << 91, 0x9EA | 1 << 91, 0x000FE400078E00FF0000000000017F19))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to list: name a file, or a word with --word 0x… --arch sm_90a"),
        (("missing.so",), "missing.so: No such file or directory"),
        (
            ("host.so",),
            "host.so: no GPU code found; it is an ELF file for AArch64 (byte 0x12), not for NVIDIA GPUs (190)",
        ),
        (
            ("ptx.fatbin",),
            "ptx.fatbin: only PTX (sm_90 at byte 0x10), no machine code; `warpsmith extract` writes it to a file and"
            " `warpsmith compile` makes a cubin of it",
        ),
        (("k.cubin", "--arch", "sm_80"), "k.cubin: no cubin for sm_80; there are cubins for sm_90a"),
        (("k.cubin", "--arch", "sm_1"), "unknown architecture 'sm_1'; known: "),
        (("k.cubin", "--function", "gemm"), "k.cubin: no function is named gemm; there are branches, shares"),
        (("cut.cubin",), "cut.cubin: 33 section headers at 0x3f4c end behind the file's end at 0x1000 (byte 0x28)"),
        (("--raw", "k.cubin", "--arch", "sm_90a"), "k.cubin: an ELF file, not raw code; leave out --raw"),
        (("--raw", "odd", "--arch", "sm_90a"), "odd: 20 bytes are not whole instructions of 16; 4 are left over (byte 0x10)"),
        (("--raw", "odd"), "odd: raw code does not say what it is for; give one --arch, e.g. --arch sm_90a"),
        (
            ("--raw", "other", "--arch", "sm_80"),
            "other: 3 of 3 words have no form in the table of sm_80, the first unknown: opcode 0x5ea (bits 0-11)"
            " (byte 0x0 of 'raw code'); is it code of another architecture?",
        ),
        (("--word", "zz", "--arch", "sm_90a"), "--word zz: no hexadecimal number"),
        (("--word", "1" * 33, "--arch", "sm_90a"), f"--word {'1' * 33}: a word has 128 bits"),
        (
            ("--word", "0x7918"),
            "--word explains one word: give it alone, with one --arch, e.g. --word 0x7918 --arch sm_90a",
        ),
        (("k.cubin", "--search", "("), "--search (: no regular expression: missing ), unterminated subpattern at position 0"),
        (
            ("k.cubin", "--search", "a{99999999999}"),
            "--search a{99999999999}: no regular expression: the repetition number is too large",
        ),
        (
            ("k.cubin", "--search", "(" * 9000),
            f"--search {'(' * 100}: no regular expression: maximum recursion depth exceeded",
        ),
        (("k.cubin", "--bits", "\u0663+1=1"), "--bits \u0663+1=1: write MASK=VALUE, e.g. 0xfff=0x210, or LOW+WIDTH=VALUE"),
        (("k.cubin", "--bits", "5"), "--bits 5: write MASK=VALUE, e.g. 0xfff=0x210, or LOW+WIDTH=VALUE, e.g. 105+4=0xf"),
        (("k.cubin", "--bits", "0xf=0x10"), "--bits 0xf=0x10: the value has bits outside the mask: 0x10"),
        (
            ("k.cubin", "--bits", "0+9999999999999=0"),
            "--bits 0+9999999999999=0: a word has 128 bits, of which the mask takes at least one",
        ),
        (("k.cubin", "--bits", "120+9=0"), "--bits 120+9=0: a word has 128 bits, of which the mask takes at least one"),
        (
            ("k.cubin", "--bits", "1=1", "--bits", "1=0"),
            "--bits 1=0: contradicts another --bits, so that no word matches",
        ),
        (("k.cubin", "--roles"), "--roles goes with --ours: the disassembler's format has no room for it"),
    ],
)
def test_bad_input(run: Run, cubin: str, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "host.so").write_bytes(ARM)
    (tmp_path / "ptx.fatbin").write_bytes(container(entry(PTX, kind=1)))
    (tmp_path / "cut.cubin").write_bytes(SM90[:4096])
    (tmp_path / "odd").write_bytes(bytes(20))
    (tmp_path / "other").write_bytes(OF_SM120)
    got = run("sass", *arguments)
    assert (got.status, got.out) == (2, "")
    assert got.err.startswith(f"warpsmith: error: {message}")
    assert got.err.count("\n") == 1
    assert not message.endswith(")") or got.err == f"warpsmith: error: {message}\n"
