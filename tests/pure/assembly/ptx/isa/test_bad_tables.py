"""Tables that contradict themselves are refused: file, line, column, what is wrong (STYLE: bad tables are test inputs, too)."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.assembly.ptx.isa.loader import Table
from warpsmith.base.errors import DeclarationError

BAD = Path(__file__).parent / "bad"

EXPECTED = {
    "alternative_twice": "alternative_twice.txt:1:18: alternative 'f32' twice",
    "architecture": "architecture.txt:1:25: bad architecture requirement 'hopper'; write e.g. sm_80+ or sm_90a,sm_100f",
    "choice_that_is_no_type": "choice_that_is_no_type.txt:1:21: choice 'rnd' is used as a type, but 'rn' is none",
    "condition_word": "condition_word.txt:1:39: the condition of 'c' names a word that the choice lacks",
    "duplicate_row": "duplicate_row.txt:2:1: the same row as duplicate_row.txt:1",
    "empty_availability": "empty_availability.txt:1:4: '@' of 'ftz' states no availability; write e.g. @7.0/sm_80+",
    "pair_optional": "pair_optional.txt:1:11: only the second part of a pair may be optional: '>p:pred?|>q:pred'",
    "fixed_late": "fixed_late.txt:1:7: only the first words may be fixed with '!', not .mode",
    "key_twice": "key_twice.txt:1:53: key 'refused' twice",
    "literal_need": "literal_need.txt:1:4: the availability of the literal .f32 belongs in the columns ptx and arch",
    "no_opcode": "no_opcode.txt:1:1: a row begins with an opcode",
    "not_a_pattern": "not_a_pattern.txt:1:4: not a pattern: '.{f32}'",
    "not_an_address": "not_an_address.txt:1:13: not an address: '[a+4]'",
    "not_an_alternative": "not_an_alternative.txt:1:14: not an alternative: '?'",
    "not_an_operand": "not_an_operand.txt:1:14: not an operand: 'a b'",
    "nothing_to_continue": "nothing_to_continue.txt:1:1: nothing to continue",
    "pair_of_three": "pair_of_three.txt:1:11: a pair has two parts: '>p:pred|>q:pred|>r:pred'",
    "removal": "removal.txt:1:42: not a PTX version: 'soon'",
    "required_after_optional": "required_after_optional.txt:1:18: required operand 'b' after optional 'a'",
    "section": "section.txt:1:33: not a section of the instruction chapter: '11.2'",
    "set_in_itself": "set_in_itself.txt:2:14: set 'A' contains itself",
    "set_twice": "set_twice.txt:2:5: set A is already defined",
    "too_few_columns": "too_few_columns.txt:1:31: the row ends before its column 'section'",
    "two_choices_alike": "two_choices_alike.txt:1:14: two flags or choices are called 'type'",
    "two_operands_alike": "two_operands_alike.txt:1:17: two operands are called 'a'",
    "unknown_condition": "unknown_condition.txt:1:18: unknown flag or choice 'hint' in a condition",
    "unknown_count_choice": "unknown_count_choice.txt:1:9: unknown choice 'vec' as a count",
    "unknown_count_function": "unknown_count_function.txt:1:10: unknown count function 'many'",
    "late": "late.txt:1:42: late names a PTX version and architectures, not '8.1'; write late=8.1/sm_89",
    "unknown_key": "unknown_key.txt:1:42: not a key: 'color=red'; "
    "write rule=name, refused=reason, removed=6.4/sm_70+ or late=8.1/sm_89",
    "unknown_rule": "unknown_rule.txt:1:42: unknown rule 'golden'",
    "unknown_set": "unknown_set.txt:1:10: unknown set 'NOWHERE'",
    "unknown_space": "unknown_space.txt:1:13: unknown space or choice 'elsewhere'",
    "unknown_type": "unknown_type.txt:1:10: unknown type or choice 'f33'",
    "unknown_type_function": "unknown_type_function.txt:1:16: unknown type function 'wider'",
    "values_of_a_register": "values_of_a_register.txt:1:14: only an immediate has a value list: 'a{0|1}'",
    "version": "version.txt:1:20: not a PTX version: 'one'",
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_bad_table_is_refused_at_its_place(name: str):
    path = BAD / f"{name}.txt"
    with pytest.raises(DeclarationError) as caught:
        Table({path.name: path.read_text("utf-8")}).rows()
    assert str(caught.value) == EXPECTED[name]


def test_every_bad_table_has_its_message():
    assert {p.stem for p in BAD.glob("*.txt")} == set(EXPECTED)


def test_the_line_is_counted_through_comments_and_continuations():
    text = "# a comment\n\nadd.f32  >d, a, b\n    1.0  sm_10+\n    9.7.3.3  rule=golden\n"
    with pytest.raises(DeclarationError, match=r"^t\.txt:5:14: unknown rule 'golden'$"):
        Table({"t.txt": text}).rows()


def test_a_set_shared_by_all_tables_cannot_be_shadowed():
    tables = {"sets.txt": "let RND = rn | rz\n", "z.txt": "let RND = rn\nadd.rnd{$RND}.f32  >d, a, b  1.0  sm_10+  9.7.3.3\n"}
    with pytest.raises(DeclarationError, match=r"^z\.txt:1:5: set RND is already defined$"):
        Table(tables)
