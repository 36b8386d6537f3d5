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


def test_every_program_was_captured():
    missing = set(PROGRAMS) - set(CAPTURED)
    assert len(missing) < 20  # of forms that were declared since
    assert set(CAPTURED) <= set(PROGRAMS)
    assert ABOUT["device"] == "NVIDIA H200"


def test_names_are_those_of_one_program_each():
    assert len(PROGRAMS) == len(tensor_programs())


@pytest.mark.parametrize("name", sorted(CAPTURED)[::5])
def test_programs_agree_bit_for_bit(name):
    assert difference(PROGRAMS[name], CAPTURED[name]) == ""


def test_interleaved_loads_said_that_their_bytes_came():
    """The last word of what they give; so the programs expect what an H200 counts."""
    loads = [v for name, v in CAPTURED.items() if name.startswith("load interleave ")]
    assert len(loads) > 250
    assert all(v.view(np.uint32)[-1] == 1 for v in loads)
