"""Replay of everything an H200 did with memory, barriers, copies and matrix moves."""

from pathlib import Path

import pytest

from warpsmith.hardware.machine_capture import MachineCapture, difference

CAPTURE = MachineCapture.read(Path(__file__).parents[1] / "captured" / "data" / "machine-sm_90a.capture")


@pytest.mark.parametrize("captured", CAPTURE.items, ids=lambda c: c.name)
def test_programs_agree_bit_for_bit(captured):
    assert difference(captured) == []
