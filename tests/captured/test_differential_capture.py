"""Replay of random straight-line programs that ran on an H200: a share here, all of them in tests/slow."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from warpsmith.hardware.differences import differing_forms
from warpsmith.hardware.differential_capture import PROGRAMS, DifferentialCapture, differs

FILE = Path(__file__).parent / "data" / "differential-sm_90a.capture"
CAPTURE = DifferentialCapture.read(FILE)
DISAGREE = {int(n) for n in differing_forms(FILE) or ()}
"""Programs that disagree, each by what ptxas makes of a line (`differential-causes.txt`)."""
SHARE = 250
"""One program in so many is replayed, and one in ten of those whose disagreement is known."""
GROUP = 8


def test_enough_programs_were_captured():
    assert len(CAPTURE.programs) == PROGRAMS
    assert len({p.lines for p in CAPTURE.programs}) == PROGRAMS
    assert len(CAPTURE.whole) == PROGRAMS // 25


def wrong(chosen):
    return {i for i in chosen if differs(CAPTURE.programs[i], CAPTURE.hashes[i], CAPTURE.whole.get(i))}


@pytest.mark.parametrize("first", range(0, PROGRAMS, SHARE * GROUP))
def test_programs_agree_bit_for_bit(first):
    chosen = range(first, first + SHARE * GROUP, SHARE)
    assert wrong(chosen) == DISAGREE & set(chosen)


def test_programs_said_to_disagree_still_do():
    chosen = sorted(DISAGREE)[::20]
    assert wrong(chosen) == set(chosen)


def causes():
    """Program -> the lines that stand for what ptxas makes of them."""
    lines = (FILE.parent / "differential-causes.txt").read_text(encoding="utf-8").splitlines()
    found = defaultdict(dict)
    for number, line, _, text in (x.split(" | ") for x in lines if not x.startswith("#")):
        found[int(number)][int(line)] = text
    return found


def test_every_program_that_disagrees_has_a_cause():
    assert set(causes()) == DISAGREE


@pytest.mark.parametrize("number", sorted(causes())[::9])
def test_with_the_lines_that_ptxas_makes_they_agree(number):
    program = CAPTURE.programs[number]
    lines = tuple(causes()[number].get(k, line) for k, line in enumerate(program.lines))
    assert not differs(replace(program, lines=lines), CAPTURE.hashes[number], CAPTURE.whole.get(number))
