"""Replay of what an H200's tensor cores and tensor copies gave: layouts of descriptors, types, sparsity, boxes."""

import json
from pathlib import Path

import numpy as np
import pytest

from warpsmith.hardware.tensor_capture import difference
from warpsmith.hardware.tensor_programs import tensor_programs

CAPTURED = dict(np.load(Path(__file__).parent / "data" / "tensor-sm_90a.npz"))
ABOUT = json.loads(str(CAPTURED.pop("about")))
PROGRAMS = {p.name: p for p in tensor_programs()}


def test_most_programs_were_captured():
    assert len(CAPTURED) > 300
    assert ABOUT["device"] == "NVIDIA H200"
    assert set(CAPTURED) <= set(PROGRAMS)


@pytest.mark.parametrize("name", sorted(CAPTURED)[::5])
def test_programs_agree_bit_for_bit(name):
    assert difference(PROGRAMS[name], CAPTURED[name]) == ""
