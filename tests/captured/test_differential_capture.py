"""Replay of random straight-line programs that ran on an H200: a share here, all of them in tests/slow."""

from pathlib import Path

import pytest

from warpsmith.hardware.differences import differing_forms
from warpsmith.hardware.differential_capture import PROGRAMS, DifferentialCapture, differs

FILE = Path(__file__).parent / "data" / "differential-sm_90a.capture"
CAPTURE = DifferentialCapture.read(FILE)
OPEN = {int(n) for n in differing_forms(FILE) or ()}
"""Programs whose disagreement is not explained yet."""
SHARE = 100
"""One program in so many is replayed, and one in ten of those whose disagreement is known."""
GROUP = 10


def test_enough_programs_were_captured():
    assert len(CAPTURE.programs) == PROGRAMS
    assert len({p.lines for p in CAPTURE.programs}) == PROGRAMS
    assert len(CAPTURE.whole) == PROGRAMS // 25


def wrong(chosen):
    return {i for i in chosen if differs(CAPTURE.programs[i], CAPTURE.hashes[i], CAPTURE.whole.get(i))}


@pytest.mark.parametrize("first", range(0, PROGRAMS, SHARE * GROUP))
def test_programs_agree_bit_for_bit(first):
    chosen = range(first, first + SHARE * GROUP, SHARE)
    assert wrong(chosen) == OPEN & set(chosen)


def test_programs_said_to_disagree_still_do():
    chosen = sorted(OPEN)[::10]
    assert wrong(chosen) == set(chosen)
