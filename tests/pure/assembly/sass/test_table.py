"""The tables prove themselves, and bad tables are told what is wrong with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warpsmith.assembly.sass.control import NO_CONTROL
from warpsmith.assembly.sass.decode import Decoder
from warpsmith.assembly.sass.encode import Encoder
from warpsmith.assembly.sass.table import load_table, parse_table, table_names
from warpsmith.assembly.sass.table_text import Shared, parse_row, row_text
from warpsmith.base.errors import CapabilityError, DeclarationError

NAMES = table_names()


def test_the_hopper_table_is_there() -> None:
    assert "sm_90a" in NAMES
    assert load_table("sm_90") is not None


@pytest.mark.parametrize("name", NAMES)
def test_rows_print_as_they_were_read(name: str) -> None:
    shared: Shared = {}
    rows = load_table(name).rows
    assert len(rows) > 300
    for row in rows:
        again = parse_row(row_text(row, shared), shared)
        again.notes.update({k: v for k, v in row.notes.items() if k == "issues"})
        assert again == row


@pytest.mark.parametrize("name", NAMES)
def test_every_row_has_provenance(name: str) -> None:
    for row in load_table(name).rows:
        assert {"seed", "probes", "default", "mnemonic"} <= row.notes.keys(), row.name
        assert int(row.notes["probes"]) > 50


@pytest.mark.parametrize("name", NAMES)
def test_encoding_what_a_row_prints_gives_its_word(name: str) -> None:
    table = load_table(name)
    decoder = Decoder(table)
    encoder = Encoder(table, decoder)
    for row in table.rows:
        word = int(row.notes["default"], 0) | NO_CONTROL
        text = decoder.text(word)
        if text is not None and not re.search(r"INVALID|\?\?\?", text):
            assert decoder.text(encoder.word(text)) == text, row.name


GOOD = "nop_\t0+12=0x918 13+92=0x0\t-\t-\t12+1\tNOP<0:0=;1=.X>\t-\tseed=0x918"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nop_\t-", "2 columns instead of 8 (class, key, except, fields, selectors, text, ignored, notes)"),
        (GOOD.replace("13+92=0x0", "12+93=0x0"), "nop_: selector 0 owns bits that have an owner: 0x1000"),
        (GOOD.replace("13+92=0x0", "14+91=0x0"), "nop_: bits without an owner: 0x2000, beyond the text: 0x0"),
        (GOOD.replace("13+92=0x0", "13+93=0x0"), f"nop_: bits without an owner: 0x0, beyond the text: {1 << 105:#x}"),
        (GOOD.replace("12+1\t", "12\t"), "bad bit range '12'; write low+width, e.g. 16+8"),
        (GOOD.replace("<0:", "<3:"), "nop_: a piece names a selector beyond the 1 there are"),
        (GOOD.replace("1=.X", "1=.X{2}"), "nop_: a text names a field beyond the 0 there are"),
        (GOOD.replace("1=.X", "0=.X"), "key (0,) stands twice in 'NOP<0:0=;0=.X>'"),
        (GOOD.replace("0x918 ", "0x10918 "), "0x10918 does not fit into 0+12"),
        (GOOD.replace("<0:0=;1=.X>", "<0:@feed>"), "there is no table @feed"),
        (GOOD.replace("NOP<0:0=;1=.X>", "NOP<0"), "unfinished text 'NOP<0': substring not found"),
        (
            GOOD.replace("\t-\t-\t12+1", "\t-\tQ:12+1\t-"),
            "bad field 'Q:12+1'; write kind:low+width with a kind of R, UR, P, UP, u, s, r, f16, bf16, f32, f64",
        ),
        (GOOD.replace("12+1\t", "12+1?odd:1\t"), "bad predicate 'odd:1'; write eq:0x1 or pow2:0x10000/0x80000000"),
    ],
)  # fmt: skip
def test_a_bad_row_is_refused_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "sm_90a.tsv").write_text(f"# a table\n{line}\n")
    with pytest.raises(DeclarationError, match=f"^{re.escape(f'sm_90a.tsv:2: {message}')}$"):
        parse_table("sm_90a", tmp_path)


def test_inherited_rows_are_replaced_by_class(tmp_path: Path) -> None:
    (tmp_path / "sm_80.tsv").write_text(GOOD + "\n" + GOOD.replace("nop_", "old_").replace("0x918", "0x919") + "\n")
    (tmp_path / "sm_86.tsv").write_text("inherit sm_80\ndrop old_\n" + GOOD.replace(".X", ".Y") + "\n")
    table = parse_table("sm_86", tmp_path)
    assert [(r.name, r.text(0x1918)) for r in table.rows] == [("nop_", "NOP.Y")]
    assert load_table("sm_86", tmp_path).arch == "sm_86"


def test_missing_tables_are_named(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match=f"^there is no SASS table for sm_90a; tables in {tmp_path.name}: none$"):
        load_table("sm_90a", tmp_path)
    (tmp_path / "sm_86.tsv").write_text("inherit sm_80\n")
    with pytest.raises(DeclarationError, match=r"^sm_86\.tsv:1: table sm_86 inherits from sm_80, which is not there$"):
        parse_table("sm_86", tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("inherit \n", "sm_90a.tsv:1: `inherit` takes one name, and here are 0"),
        ("# nothing\ndrop a b\n", "sm_90a.tsv:2: `drop` takes one name, and here are 2"),
    ],
)
def test_lines_without_their_name(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "sm_90a.tsv").write_text(text)
    with pytest.raises(DeclarationError, match=f"^{re.escape(message)}$"):
        load_table("sm_90a", tmp_path)
