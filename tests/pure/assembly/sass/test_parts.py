"""Tokens, edits, floats and control bits, for any input."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsmith.assembly.sass.control import Control, parse_control
from warpsmith.assembly.sass.floats import FLOAT_KINDS, format_float
from warpsmith.assembly.sass.probe.diff import apply, edits_of, merge
from warpsmith.assembly.sass.row import Field, gather, scatter
from warpsmith.assembly.sass.token_bits import field_bits, nearest_float
from warpsmith.assembly.sass.tokens import kind_of, tokenize

WORDS = st.lists(st.sampled_from(["R1", "R2", ", ", ".X", ".Y", "[", "]", "+", "0x10", "@", "P0"]), max_size=12).map(tuple)


@given(WORDS, WORDS)
def test_edits_turn_one_text_into_the_other(old: tuple[str, ...], new: tuple[str, ...]) -> None:
    assert apply(old, edits_of(old, new)) == new


def test_edits_start_at_separators() -> None:
    old = tuple(tokenize("IADD3 R5, R5, R6"))
    assert edits_of(old, tuple(tokenize("IADD3 R5, P6, R5, R6"))) == ((3, 3, (", ", "P6")),)


def test_edits_apart_merge_and_edits_of_one_place_do_not() -> None:
    assert merge([(1, 2, ("a",))], [(4, 4, ("b",))]) == (((1, 2, ("a",)), (4, 4, ("b",))), False)
    assert merge([(1, 1, ("a",))], [(1, 1, ("b",))]) == (((1, 1, ("a",)), (1, 1, ("b",))), True)
    assert merge([(1, 3, ("a",))], [(2, 4, ("b",))]) is None


@pytest.mark.parametrize(
    ("token", "kind"),
    [("R12", "R"), ("RZ", "R"), ("URZ", "UR"), ("UP3", "UP"), ("PT", "P"), ("-0x10", "x"),
     ("1.5e+10", "f"), ("-QNAN ", "f"), ("R2P", ""), ("2D", "")],
)  # fmt: skip
def test_kinds_of_tokens(token: str, kind: str) -> None:
    assert tokenize(token) == [token]
    assert kind_of(token) == kind


@given(st.sampled_from(sorted(FLOAT_KINDS)), st.integers(0, (1 << 32) - 1))
def test_floats_read_back(kind: str, bits: int) -> None:
    width = FLOAT_KINDS[kind][0]
    bits &= (1 << width) - 1
    text = format_float(kind, bits)
    sign, number = ("", text) if text[0].isdigit() else (text[0], text[1:].strip())
    if "NAN" not in text:
        assert field_bits(Field(((0, width),), kind), number, sign) == bits
    if "N" not in text:
        assert nearest_float(kind, number) == bits & ~(1 << (width - 1))
    assert tokenize(text) == [text]


def test_floats_print_as_the_disassembler_does() -> None:
    bits = lambda x: int.from_bytes(struct.pack("<f", x), "little")  # noqa: E731
    assert format_float("f32", bits(1.5)) == "1.5"
    assert format_float("f32", bits(0.1)) == "0.10000000149011611938"
    assert format_float("f32", bits(1e10)) == "1.00000000000000000000e+10"
    assert [format_float("f32", b) for b in (0x7F800000, 0xFFC00000, 0x7F800001, 0x80000000)] == [
        "+INF ",
        "-QNAN ",
        "+SNAN ",
        "-0.0 ",
    ]
    assert format_float("f64", 0x3FF80000) == format_float("f16", 0x3E00) == format_float("bf16", 0x3FC0) == "1.5"


@given(st.integers(0, (1 << 20) - 1))
def test_control_bits_read_back(bits: int) -> None:
    control = Control.of(bits << 105)
    assert control.bits() == bits << 105
    text, _, reuse = str(control).partition("/")
    assert parse_control(text, int(reuse or "0", 2)) == control


@given(st.integers(0, (1 << 56) - 1))
def test_split_fields(value: int) -> None:
    bits = ((16, 8), (34, 48))
    assert gather(scatter(value, bits), bits) == value


def test_relative_fields_count_from_the_instruction() -> None:
    f = Field(((16, 8), (34, 48)), "r", 2, 16)
    word = scatter((1 << 56) - 8, f.bits)
    assert f.text(word, 0x100) == "0xf0"
    assert f.text(word, 0) == "-0x10"
    assert field_bits(f, "0xf0", address=0x100) == field_bits(f, "0x10", "-") == (1 << 56) - 8
