"""Replay of everything an H200's tensor cores gave: every form of mma and wgmma, all results."""

from pathlib import Path

import pytest

from warpsmith.hardware.family_capture import FamilyCapture, difference

CAPTURE = FamilyCapture.read(Path(__file__).parents[1] / "captured" / "data" / "families-sm_90a.capture")


@pytest.mark.parametrize("row", sorted({c.family.row for c in CAPTURE.items}))
def test_forms_agree_bit_for_bit(row):
    mine = [c for c in CAPTURE.items if c.family.row == row]
    assert [text for c in mine if (text := difference(c))] == []
