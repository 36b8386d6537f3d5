"""Replay of what an H200's tensor cores gave, form by form: a share of the forms here, all of all of them in tests/slow."""

from collections import Counter
from pathlib import Path

import pytest

from warpsmith.hardware.family_capture import FamilyCapture, difference
from warpsmith.hardware.tensor_families import OUTPUTS

CAPTURE = FamilyCapture.read(Path(__file__).parent / "data" / "families-sm_90a.capture")
SHARE = 48
"""One form in so many is replayed, on its first two CTAs."""
GROUPS = sorted({c.family.row for c in CAPTURE.items})


def test_every_row_has_enough_results():
    total = Counter()
    for c in CAPTURE.items:
        total[c.family.row] += c.family.ctas * c.family.words_out * (2 if c.family.types[0] == "f16" else 1)
    assert min(total.values()) >= OUTPUTS
    assert len(total) > 80


@pytest.mark.parametrize("row", GROUPS)
def test_forms_agree_bit_for_bit(row):
    some = [c for c in CAPTURE.items if c.family.row == row][::SHARE]
    assert [text for c in some if (text := difference(c, 2))] == []
