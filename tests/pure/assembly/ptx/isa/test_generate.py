"""Generated instructions cover the declarations: every word, every pair, every shape; and they read back."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.isa import match, rows
from warpsmith.assembly.ptx.isa.cover import pairwise
from warpsmith.assembly.ptx.isa.generate import mnemonics, module, mutate, random_sample, samples
from warpsmith.assembly.ptx.isa.shapes import shapes
from warpsmith.assembly.ptx.print_operands import print_instruction

DOMAINS = st.lists(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=5, unique=True), max_size=5)


@given(DOMAINS)
def test_each_pair_of_values_occurs(domains: list[list[str]]):
    found = pairwise(domains)
    assert all(v in d for c in found for v, d in zip(c, domains, strict=True))
    if len(domains) == 1:
        assert {c[0] for c in found} == set(domains[0])
    for i, j in combinations(range(len(domains)), 2):
        assert {(c[i], c[j]) for c in found} == {(a, b) for a in domains[i] for b in domains[j]}


def test_few_combinations_are_enough():
    assert len(pairwise([["a", "b", "c"]] * 6)) <= 20


@pytest.mark.parametrize("opcode", ["add", "cvt", "ld", "setp", "mma", "tex"])
def test_every_word_of_a_row_is_written(opcode: str):
    for row in rows(opcode):
        written = {w for name in mnemonics(row) for w in name.split(".")[1:]}
        assert written == row.words, row.place


def test_shapes_of_an_instruction():
    (m,) = match("setp.lt.and.f32")
    texts = {s.text for s in samples(m.row) if s.match.mnemonic == "setp.eq.and.f32"}
    assert "setp.eq.and.f32 %p0|%p1, %r0, %r1, %p2;" in texts
    assert "setp.eq.and.f32 _|%p1, %r0, %r1, !%p2;" in texts
    assert "setp.eq.and.f32 %p0, %r0, %r1, %p1;" in texts
    assert "setp.eq.and.f32 %p0|%p1, 0f3F800000, %r0, %p2;" in texts
    assert len(shapes(m)) == 5


def test_a_module_of_samples_is_read_and_printed_again():
    written = [
        s
        for opcode in ("ld", "st", "tex", "vmad", "call", "bra", "brx", "mma", "red")
        for row in rows(opcode)
        for s in samples(row)
    ]
    text, lines = module([s.text for s in written], version="9.5", target="sm_100a")
    assert text.split("\n")[next(iter(lines)) - 1] == written[0].text
    assert str(parse(str(parse(text)))) == str(parse(text))


def test_random_samples_fit_their_row():
    rng = Random(7)
    drawn = [s for _ in range(500) if (s := random_sample(rng))]
    assert len(drawn) > 400
    assert all(s.match.row in [m.row for m in match(s.match.mnemonic)] for s in drawn)


def test_neighbours_differ_and_are_repeatable():
    samples_ = [s for s in (random_sample(Random(n)) for n in range(200)) if s]
    first = [print_instruction(mutate(s, Random(n))) for n, s in enumerate(samples_)]
    assert first == [print_instruction(mutate(s, Random(n))) for n, s in enumerate(samples_)]
    assert sum(a != print_instruction(s.instruction) for a, s in zip(first, samples_, strict=True)) > len(first) * 0.8
