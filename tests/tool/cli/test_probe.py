"""`warpsmith probe`: a word looked at, a table made from seed words, two tables compared."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from command_line import Run
from warpsmith.assembly.sass.control import NO_CONTROL
from warpsmith.assembly.sass.refused import load_refused
from warpsmith.assembly.sass.roles import load_roles
from warpsmith.assembly.sass.table import FOLDER

SHIFT = 0x078E00FF00000002007C7824 | NO_CONTROL  # IMAD.SHL.U32 R124, R0, 0x2, RZ


def test_the_command_shows_a_word(run: Run) -> None:
    done = run("probe", "--arch", "sm_90a", "--word", f"{SHIFT:#x}")
    assert done.status == 0
    assert done.out.startswith(f"{SHIFT:#034x}  IMAD.SHL.U32 R124, R0, 0x2, RZ\nclass imad__RsIR_RIR, ")
    assert "           16-23  field     R R124 (value 0x7c)\n" in done.out
    given = SHIFT & ~NO_CONTROL | 5 << 105  # other control bits: the heading has the word as it was given
    lines = run("probe", "--arch", "sm_90a", "--word", f"{given:#x}").out.splitlines()
    assert lines[0] == f"{given:#034x}  IMAD.SHL.U32 R124, R0, 0x2, RZ"
    assert lines[2] == f"looked at as {SHIFT:#034x}, which waits for nothing"
    old = run("probe", "--arch", "sm_70", "--word", f"{SHIFT:#x}")
    assert old.status == 2
    assert re.fullmatch(r"warpsmith: error: nvdisasm [\d.]+ does not know sm_70; name one that does with --nvdisasm\n", old.err)
    assert run("probe", "--arch", "sm_90a", "--word", "zz").err == "warpsmith: error: --word 'zz' is no hexadecimal number\n"


def test_the_command_makes_a_table_and_compares(run: Run, tmp_path: Path) -> None:
    (tmp_path / "seeds.bin").write_bytes((0x7918 | NO_CONTROL).to_bytes(16, "little"))
    done = run("probe", "seeds.bin", "--arch", "sm_90a", "--out", "a", "--seeds-only")
    assert (done.status, done.out, done.err) == (0, "a/sm_90a.tsv: 1 forms, 0 remarks\n", "")
    assert run("probe", "--arch", "sm_90a", "--diff", "a", "--out", "a").out == "0 differences\n"
    (tmp_path / "odd.bin").write_bytes(bytes(17))
    assert run("probe", "odd.bin", "--arch", "sm_90a").err == "warpsmith: error: odd.bin: 17 bytes are not whole words of 16\n"


def test_the_command_compares_tables(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    lines = (FOLDER / "sm_90a.tsv").read_text().splitlines(keepends=True)
    kept = [line for line in lines if line.startswith(("#", "%", "@", "nop_\t", "exit_\t", "s2r_\t"))]
    (tmp_path / "a/sm_90a.tsv").write_text("".join(kept))
    other = "".join(line for line in kept if not line.startswith("nop_")).replace("exit_\t", "leave_\t")
    (tmp_path / "b/sm_90a.tsv").write_text(other.replace("=SR_TID.X", "=SR_TIDX").replace(".KEEPREFCOUNT;", ";"))
    done = run("probe", "--arch", "sm_90a", "--diff", "a", "--out", "b")
    assert done.status == 0
    *found, total = done.out.splitlines()
    assert total == f"{len(found)} differences"
    short = [line.partition("  0x")[0] + line[line.index("  ", line.index("  0x") + 2) :] for line in found]
    assert short == [
        "changed  leave_  @P0 EXIT.KEEPREFCOUNT P1  ->  @P0 EXIT P1",
        "changed  s2r_  S2R R0, SR_TID.X  ->  S2R R0, SR_TIDX",
        "lost     nop_  @P0 NOP  ->  -  (16 words)",
        "renamed  exit_ -> leave_  @P0 EXIT P0  ->  @P0 EXIT P0  (18 words)",
    ]
    same = run("probe", "--arch", "sm_90a", "--diff", "a", "--out", "a")
    assert same.out == "0 differences\n"


def test_the_command_derives_registers_and_what_is_refused(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (FOLDER / "sm_90a.tsv").read_text().splitlines(keepends=True)
    classes = ("vhmnmx__RRR\t", "bra__U\t", "lds__sImmOffset\t")
    (tmp_path / "few").mkdir()
    (tmp_path / "few/sm_90a.tsv").write_text("".join(x for x in lines if x.startswith(("#", "%", "@", *classes))))
    monkeypatch.setattr("warpsmith.cli.probe.FOLDER", tmp_path / "few")
    done = run("probe", "--arch", "sm_90a", "--derive", "registers", "--out", "roles")
    assert (done.status, done.out) == (0, "roles/sm_90a.tsv: 0 remarks\n")
    packaged = load_roles("sm_90a")
    mine = load_roles("sm_90a", tmp_path / "roles")
    assert len(mine) == 3
    assert all(packaged[k] == v for k, v in mine.items())
    done = run("probe", "--arch", "sm_90a", "--derive", "refused", "--out", "refused", "--json")
    found = json.loads(done.out)
    assert (found["forms"], found["wrong"], found["worst"]) == (1, 0, [])
    assert found["tried"] > 60
    ours = load_refused("sm_90a", tmp_path / "refused")
    assert ours == {k: v for k, v in load_refused("sm_90a").items() if k[0] == "vhmnmx__RRR"}


def test_seeds_are_bare_words(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "elf").write_bytes(b"\x7fELF" + bytes(12))
    (tmp_path / "odd").write_bytes(bytes(17))
    for name, message in (
        ("empty", "no words; leave the file out to begin with those of the package's own table"),
        ("elf", "an ELF file, not bare words of 16 bytes; seeds are code alone, such as a section .text"),
        ("odd", "17 bytes are not whole words of 16"),
    ):
        done = run("probe", "--arch", "sm_90a", name, "--out", "t")
        assert (done.status, done.out, done.err) == (2, "", f"warpsmith: error: {name}: {message}\n")
