"""Replay of what an H200 computed: scalar forms, warp and atomic programs, bit for bit."""

from functools import cache
from pathlib import Path

import pytest

from warpsmith.hardware import program_capture
from warpsmith.hardware.scalar_compare import compare_captured, is_refused
from warpsmith.hardware.scalar_store import Capture

HERE = Path(__file__).parent / "data"


@cache
def captured():
    return Capture.read(HERE / "scalar-sm_90a.capture").items


FEW = {"set": 4, "setp": 8}
"""Opcodes with thousands of forms: how many of the 256 hashes of each are replayed."""
BLOCKS = 32
"""How many are replayed of the others."""

OPCODES = sorted({c.form.mnemonic.split(".")[0] for c in captured()})


def of(opcode):
    return [c for c in captured() if c.form.mnemonic.split(".")[0] == opcode]


def test_the_capture_is_whole():
    assert len(captured()) > 6000
    assert [c.form.key for c in captured() if is_refused(c.form)] == []


@pytest.mark.parametrize("opcode", OPCODES)
def test_forms_agree_bit_for_bit(opcode):
    blocks = FEW.get(opcode, BLOCKS)
    differences = [d for d in (compare_captured(c, blocks) for c in of(opcode)) if d is not None]
    assert not differences, "\n".join(str(d) for d in differences[:10])


def test_programs_agree_bit_for_bit():
    assert program_capture.compare(HERE / "programs-sm_90a.npz") == "105 programs, 0 differ"
