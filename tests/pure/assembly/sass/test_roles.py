"""The tables of registers and mnemonics: grammar, coverage, and every word of the samples."""

from __future__ import annotations

import re

import pytest

from sass_sample import ARCHITECTURES, code
from warpsmith import sass
from warpsmith.assembly.sass.mnemonics import CLASSES, mnemonics
from warpsmith.assembly.sass.operands import RegisterModel
from warpsmith.assembly.sass.roles import ROLES_FOLDER, form_text, load_roles, parse_form
from warpsmith.assembly.sass.table import load_table, table_names
from warpsmith.base.errors import DeclarationError

ROW = "ldg_\t0+12=0x981\tP:12+3=r1 R:16+8=[73+3:w1=0-4;w2=5] P:64+3~=r1\t-"


def test_a_row_says_what_it_says() -> None:
    (name, key), roles = parse_form(ROW)
    assert (name, key) == ("ldg_", "0+12=0x981")
    guard, target, inverted = roles.slots
    wide = 5 << 73 | 4 << 16
    assert str(target.outcome(wide)) == "w2"
    assert str(target.outcome(0)) == "w1"
    assert target.outcome(7 << 73) is None
    assert (target.number(wide), guard.zero(7), inverted.number(0), inverted.zero(7)) == (4, True, 7, True)
    assert roles.unnamed(0) == ()
    assert form_text(name, key, roles) == ROW


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a\tb\tc", "3 columns instead of 4 (class, key, slots, implicit)"),
        ("a\tb\tX:16+8=w1\t-", "bad slot 'X:16+8=w1'; write group:low+width=outcome, e.g. R:16+8=w1"),
        ("a\tb\tR:16+8=w\t-", "bad outcome 'w'; write r2, w1, r4w4 or -"),
        ("a\tb\tR:16+8=[73+1:w1=0;w2=0]\t-", "value 0 stands twice in '[73+1:w1=0;w2=0]'"),
        ("a\tb\tR:16x8=w1\t-", "bad slot 'R:16x8=w1'; write group:low+width=outcome, e.g. R:16+8=w1"),
        ("a\tb\t-\tR0", "bad implicit registers 'R0'; write R0w1 or P0r7"),
    ],
)
def test_bad_rows(row: str, message: str) -> None:
    with pytest.raises(DeclarationError, match=f"^{re.escape(message)}$"):
        parse_form(row)


def test_a_bad_file_names_the_line(tmp_path) -> None:
    (tmp_path / "sm_99.tsv").write_text("# a comment\na\tb\tc\n")
    with pytest.raises(DeclarationError, match=r"^sm_99\.tsv:2: 3 columns instead of 4 \(class, key, slots, implicit\)$"):
        load_roles("sm_99", tmp_path)


def test_every_mnemonic_is_described() -> None:
    used = {m for arch in table_names() for row in load_table(arch).rows for m in row.notes["mnemonic"].split("/")}
    assert set(mnemonics()) == used
    assert {m.kind for m in mnemonics().values()} == set(CLASSES)
    assert all(re.fullmatch(r"[A-Zam].*\.", m.description) for m in mnemonics().values())
    assert all(set(m.names) <= {"B", "PR", "UPR", "SB", "GSB"} for m in mnemonics().values())


@pytest.mark.parametrize("arch", table_names())
def test_rows_are_of_forms_and_nearly_all_forms_have_one(arch: str) -> None:
    table = load_table(arch)
    model = RegisterModel(table)
    full = 0
    for row in table.rows:
        roles = model.roles(row)
        if roles is None:
            continue
        full += bool(roles.implicit.table) and all(s.rule.table for s in roles.slots)
        fields = {f.bits: f.kind for f in row.fields}
        assert all(fields.get(s.bits, s.group) == s.group for s in roles.slots), row.name
        assert {b for b, k in fields.items() if k in ("R", "UR", "P", "UP")} <= {s.bits for s in roles.slots}, row.name
    assert full >= 0.95 * len(table.rows)
    assert (ROLES_FOLDER / f"{arch}.tsv").exists()


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_words_of_libraries_have_known_roles(arch: str) -> None:
    unknown = {
        i.mnemonic
        for i in sass.decode(code(arch), arch)
        if i.known and (not i.registers.complete or any(o.role == "unknown" for o in i.operands))
    }
    assert unknown <= {"CALL"} | ALLOWED.get(arch, set())


ALLOWED: dict[str, set[str]] = {}
"""Mnemonics with words in the samples of which the tables do not know all."""
