"""Replay of a fifth of the random programs of many threads that ran on an H200; `replay` runs all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.hardware.differences import differing_forms
from warpsmith.hardware.flow.program import generate
from warpsmith.hardware.flow_capture import differs
from warpsmith.hardware.flow_gpu import PROGRAMS
from warpsmith.hardware.flow_store import FlowCapture

FILE = Path(__file__).parents[1] / "captured" / "data" / "flow-sm_90a.capture"
CAPTURE = FlowCapture.read(FILE)
DISAGREE = {int(n) for n in differing_forms(FILE) or ()}
SHARE = 5
GROUP = 250


@pytest.mark.parametrize("first", range(1, PROGRAMS, GROUP))
def test_programs_agree_bit_for_bit(first: int) -> None:
    some = range(first, min(first + GROUP, PROGRAMS), SHARE)
    found = {CAPTURE.numbers[k] for k in some if differs(generate(CAPTURE.numbers[k]), CAPTURE.left[k], check=False)}
    assert found == DISAGREE & {CAPTURE.numbers[k] for k in some}
