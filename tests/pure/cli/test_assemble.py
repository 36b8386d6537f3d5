"""`warpsmith assemble`: listings to code and cubins, edits that move code, and what is refused."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from command_line import Run
from cubin_corpus import cubins
from warpsmith import cubin as cubins_module
from warpsmith import sass
from warpsmith.cli import assemble

SM90 = cubins()["ptxas-13.5-sm_90a"]
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a")
ADD = """
.arch sm_90a
.function add
.registers 10
.params 8 8 4
    LDC R1, c[0x0][0x28]
    S2R R0, SR_TID.X
    B0-----:R-:W-:-:S05 @P0 BRA done
    EXIT
done:
    BRA `(done)
"""


@pytest.fixture
def listing(run: Run, tmp_path: Path) -> str:
    (tmp_path / "k.cubin").write_bytes(SM90)
    (tmp_path / "k.sass").write_text(run("sass", "k.cubin", "--ours").out)
    return "k.sass"


def test_the_same_cubin_comes_back(run: Run, listing: str, tmp_path: Path) -> None:
    got = run("assemble", listing, "--into", "k.cubin", "-o", "again.cubin")
    assert (got.status, got.err) == (0, "")
    assert got.out == f"again.cubin: {len(SM90):,} bytes, shares, branches for sm_90a\n"
    assert (tmp_path / "again.cubin").read_bytes() == SM90


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_architecture(run: Run, tmp_path: Path, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sass X.cubin --ours | assemble`; other cubins are in the slow tests."""
    cubin = cubins()[f"ptxas-13.5-{arch}"]
    (tmp_path / "k.cubin").write_bytes(cubin)
    text = run("sass", "k.cubin", "--ours", "--function", "shares").out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    got = run("assemble", "-o", "code", "--function", "shares")
    assert (got.status, got.err) == (0, "")
    assert (tmp_path / "code").read_bytes() == cubins_module.open(cubin).functions["shares"].code


def test_an_instruction_put_in_moves_the_rest(run: Run, listing: str, tmp_path: Path) -> None:
    path = tmp_path / listing
    lines = path.read_text().splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("/*0020*/"))
    path.write_text("\n".join([*lines[: at + 1], "    B------:R-:W-:-:S01 NOP", *lines[at + 1 :]]))
    got = run("assemble", listing, "--function", "shares", "--into", "k.cubin", "-o", "new.cubin")
    assert (got.status, got.err) == (0, "")
    old, new = (cubins_module.open(data).functions["shares"] for data in (SM90, (tmp_path / "new.cubin").read_bytes()))
    before, after = (sass.decode(f.code, "sm_90a") for f in (old, new))
    assert len(after) == len(before) + 1
    assert after[3].text == "NOP"
    assert [i.mnemonic for i in after[4:]] == [i.mnemonic for i in before[3:]]
    exits = [f.info.get("EXIT_INSTR_OFFSETS").words() for f in (old, new)]
    assert [after[e // 16].mnemonic for e in exits[1]] == ["EXIT"] * len(exits[0])


def test_a_cubin_from_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "add.sass").write_text(ADD)
    got = run("assemble", "add.sass", "-o", "add.cubin", "--json")
    assert got.status == 0
    assert json.loads(got.out)["functions"] == [{"name": "add", "bytes": 80, "instructions": 5}]
    built = cubins_module.open(tmp_path / "add.cubin")
    function = built.functions["add"]
    assert (built.arch, function.registers, [p.size for p in function.params]) == ("sm_90a", 10, [8, 8, 4])
    assert [i.text for i in sass.decode(function.code, "sm_90a")][:5] == [
        "LDC R1, c[0x0][0x28]", "S2R R0, SR_TID.X", "@P0 BRA 0x40", "EXIT", "BRA 0x40",
    ]  # fmt: skip


def test_bare_code(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.sass").write_text("MOV R1, R2\nEXIT\n")
    assert run("assemble", "a.sass", "--arch", "sm_80", "-o", "code").out == "code: 32 bytes, bare code for sm_80\n"
    assert (tmp_path / "code").read_bytes() == sass.assemble("MOV R1, R2\nEXIT\n", "sm_80")


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("\ufeffEXIT\n", ("-o", "x"), "a.sass: for which architecture? write .arch sm_90a above it, or give --arch"),
        ("EXIT\n", ("-o", "x"), "a.sass: for which architecture? write .arch sm_90a above it, or give --arch"),
        ("// nothing\n", ("-o", "x"), "a.sass: the listing has no instructions"),
        (
            ".arch sm_90a\n.function a\nEXIT\n.function b\nEXIT\n", ("-o", "x"),
            "a.sass: 2 functions (a, b…); choose one with --function, or write a cubin: --into X.cubin, or -o NAME.cubin",
        ),
        (
            ".arch sm_90a\n.function a\nEXIT\n", ("-o", "x", "--function", "b"),
            "a.sass: there is no .function b; there are a",
        ),
        (
            ".arch sm_90a\n.function a\nEXIT\n", ("-o", "x.cubin"),
            "a.sass: a: a cubin built from nothing wants .registers N, and .params of what it takes",
        ),
        (".arch sm_90a\nEXIT\n", ("-o", "x.cubin"), "a.sass: a cubin built from nothing wants a .function NAME above the code"),
        (
            ".arch sm_90a\n.function a\n.registers 8\n.needs constant bank 4\nEXIT\n", ("-o", "x.cubin"),
            "a.sass: a needs constant bank 4, which a listing does not hold; replace its code in its cubin with --into",
        ),
        (
            ".arch sm_80\n.function a\nEXIT\n", ("-o", "x", "--into", "k.cubin"),
            "k.cubin: the cubin is for sm_90a, the listing for sm_80",
        ),
        (
            ".arch sm_90a\n.function a\nEXIT\n", ("-o", "x", "--into", "k.cubin"),
            "a.sass: k.cubin has no function a; it has shares, branches",
        ),
        (
            ".arch sm_90a\n.function shares\nEXIT\n", ("-o", "x", "--into", "k.cubin"),
            "a.sass: shares had 1408 bytes and gets 16, and no line says with `/*0010*/` where its instruction stood; begin"
            " with `warpsmith sass --ours`",
        ),
        (
            ".arch sm_90a\n.function shares\n/*0000*/ EXIT\n/*0000*/ EXIT\n", ("-o", "x", "--into", "k.cubin"),
            "a.sass: shares: the address /*0000*/ stands twice",
        ),
        (
            ".arch sm_90a\n.function shares\n/*9990*/ EXIT\n", ("-o", "x", "--into", "k.cubin"),
            "a.sass: shares: the address /*9990*/ lies outside the old code of 1408 bytes",
        ),
        (
            ".arch sm_90a\n.function a\n\n  BRA `(.L_7)\n", ("-o", "x"),
            "a.sass:4: there is no label '.L_7'\n    BRA `(.L_7)",
        ),
        (".registers 5\n", ("-o", "x"), "a.sass:1: .registers belongs behind a .function\n    .registers 5"),
        (".arch sm_90a\n.arch sm_80\n", ("-o", "x"), "a.sass:2: the listing is for sm_90a already\n    .arch sm_80"),
        (
            ".function a\n.registers many\n", ("-o", "x"),
            "a.sass:2: 'many' is no number\n    .registers many",
        ),
        (".function a\n.stack 12345678901\n", ("-o", "x"), "a.sass:2: 1234567890… is too large\n    .stack 12345678901"),
        (
            f".arch sm_90a\nNOP ; /*unprinted 0x1{'0' * 32}*/\n", ("-o", "x"),
            f"a.sass:2: the unprinted bits are wider than a word of 128 bits\n    NOP ; /*unprinted 0x1{'0' * 32}*/",
        ),
        (".function a\n.function a\n", ("-o", "x"), "a.sass:2: the function 'a' stands twice\n    .function a"),
        (
            ".arch sm_90a\n.word 0x1ffffffffffffffff, 0x0\n", ("-o", "x"),
            "a.sass:2: a half of the word is wider than 64 bits\n    .word 0x1ffffffffffffffff, 0x0",
        ),
        ("\xff", ("-o", "x"), "a.sass: no text (byte 0x0); a listing is UTF-8"),
    ],
)  # fmt: skip
def test_refusals(run: Run, tmp_path: Path, text: str, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "k.cubin").write_bytes(SM90)
    (tmp_path / "a.sass").write_bytes(text.encode("latin-1") if text == "\xff" else text.encode())
    got = run("assemble", "a.sass", *arguments)
    assert (got.status, got.out, got.err) == (2, "", f"warpsmith: error: {message}\n")
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != ".cache") == ["a.sass", "k.cubin"]


def test_listings_come_from_files_that_end(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b.sass").write_bytes(b"\xef\xbb\xbf.arch sm_90a\r\nEXIT\r\n")
    assert run("assemble", "b.sass", "-o", "x").out == "x: 16 bytes, bare code for sm_90a\n"
    monkeypatch.setattr(assemble, "_LARGEST", 1000)
    for path, message in (
        ("/dev/zero", "/dev/zero: more than 1,000 bytes, the most that is read into memory here"),
        ("", "the path is empty; name a file"),
        (".", ".: Is a directory"),
    ):
        got = run("assemble", path, "-o", "y")
        assert (got.status, got.out, got.err) == (2, "", f"warpsmith: error: {message}\n")


def test_moving_code_under_a_computed_return_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "k.cubin").write_bytes(SM90)
    text = run("sass", "k.cubin", "--ours", "--function", "branches").out
    head, mark, rest = text.partition("/*0010*/")
    (tmp_path / "b.sass").write_text(f"{head}NOP\n{mark}{rest}")
    got = run("assemble", "b.sass", "--into", "k.cubin", "-o", "x.cubin")
    first = next(
        i for i in sass.decode(cubins_module.open(SM90).functions["branches"].code, "sm_90a") if i.mnemonic in ("RET", "BRX")
    )
    assert (got.status, got.err) == (
        2,
        f"warpsmith: error: branches: {first.text} at {first.address:#x} goes to an address that the code computes, and moving"
        " code under it is not modelled; keep every instruction at its place\n",
    )


def test_instructions_without_control_bits_beside_others_are_noted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "k.lst").write_text(".arch sm_90a\nB------:R-:W-:-:S05 NOP ;\n NOP ;\nB------:R-:W-:-:S05 EXIT ;\n NOP ;\n")
    outcome = run("assemble", "k.lst", "-o", "k.bin")
    assert outcome.status == 0
    assert outcome.err == (
        "warpsmith: note: k.lst:3: 2 instructions state no control bits, beside others that do: B------:R-:W-:-:S01, which "
        "waits for nothing\n"
    )
    (tmp_path / "k.lst").write_text(".arch sm_90a\n NOP ;\n EXIT ;\n")
    assert run("assemble", "k.lst", "-o", "k.bin").err == ""
