"""Modifiers that do not go together: the file's grammar, and what decoder and encoder make of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warpsmith import sass
from warpsmith.assembly.sass.refused import load_refused, refused_text
from warpsmith.assembly.sass.table import load_table
from warpsmith.base.errors import DeclarationError, InputError

TABLE = (
    "nop_x\t0+12=0x918 91+1=0x0\t-\t-\t72+1 75+2\tNOP<0:0=;1=.A><1:0=;1=.B;2=.C;3=.D>\t12+60 73+2 77+14 92+13\t"
    "default=0x918 mnemonic=NOP\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sm_90a.tsv").write_text(TABLE)
    (tmp_path / "refused").mkdir()
    (tmp_path / "refused/sm_90a.tsv").write_text("# a comment\nnop_x\t0+12=0x918 91+1=0x0\t72+1=0x1 75+2=0x2\n")
    return tmp_path


def test_the_decoder_prints_no_such_word(folder: Path) -> None:
    word = lambda a, b: (0x918 | a << 72 | b << 75 | 1 << 105 | 1 << 109).to_bytes(16, "little")  # noqa: E731
    texts = [sass.decode(word(a, b), "sm_90a", tables=folder)[0].text for a, b in ((1, 1), (0, 2), (1, 2))]
    assert texts[:2] == ["NOP.A.B", "NOP.C"]
    assert texts[2].endswith("// unknown: bits 72, 75-76 for nop_x: modifiers that do not go together")


def test_the_encoder_makes_no_such_word(folder: Path) -> None:
    assert sass.encode("NOP.A.B", "sm_90a", tables=folder)
    with pytest.raises(InputError, match=r"^'NOP\.A\.C': "):
        sass.encode("NOP.A.C", "sm_90a", tables=folder)


def test_a_combination_of_a_form_that_has_changed_does_not_count(folder: Path) -> None:
    (folder / "refused/sm_80.tsv").write_text("nop_x\t0+12=0x918 91+1=0x0\t72+1=0x1 80+2=0x2\n")
    (folder / "sm_80.tsv").write_text(TABLE)
    assert load_table("sm_80", folder).rows[0].refused == ()


def test_rows_are_written_as_they_are_read(folder: Path) -> None:
    known = load_refused("sm_90a", folder / "refused")
    ((name, key), combinations) = next(iter(known.items()))
    assert refused_text(name, key, combinations) == "nop_x\t0+12=0x918 91+1=0x0\t72+1=0x1 75+2=0x2"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a\tb", "sm_90a.tsv:1: 2 columns instead of 3 (class, key, combinations)"),
        ("a\tb\t72+1=0x2", "sm_90a.tsv:1: 0x2 does not fit into 72+1"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "sm_90a.tsv").write_text(line)
    with pytest.raises(DeclarationError, match=f"^{re.escape(message)}$"):
        load_refused("sm_90a", tmp_path)
