"""Replay of what an H200 computed: scalar forms bit for bit, approximate f64 ones within an ulp, warp and atomic programs."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from warpsmith.hardware import program_capture
from warpsmith.hardware.scalar_compare import compare_captured, is_approximate, is_refused
from warpsmith.hardware.scalar_evaluate import evaluate
from warpsmith.hardware.scalar_store import Capture
from warpsmith.hardware.scalar_values import edge_count, inputs

HERE = Path(__file__).parent / "data"


@cache
def captured():
    return Capture.read(HERE / "scalar-sm_90a.capture").items


FEW = {"set": 8, "setp": 32}
"""Opcodes with thousands of forms: how many of the 256 hashes of each are replayed."""

OPCODES = sorted({c.form.mnemonic.split(".")[0] for c in captured()})


def of(opcode):
    return [c for c in captured() if c.form.mnemonic.split(".")[0] == opcode]


def test_the_capture_is_whole():
    assert len(captured()) > 6000
    assert [c.form.key for c in captured() if is_refused(c.form)] == []


@pytest.mark.parametrize("opcode", OPCODES)
def test_forms_agree_bit_for_bit(opcode):
    exact = [c for c in of(opcode) if not is_approximate(c.form)]
    blocks = FEW.get(opcode)
    differences = [d for d in (compare_captured(c, blocks) for c in exact) if d is not None]
    assert not differences, "\n".join(str(d) for d in differences[:10])


def ulps(bits):
    """Codes as integers in the order of their values."""
    code = bits.view(f"i{bits.dtype.itemsize}")
    return np.where(code < 0, np.iinfo(code.dtype).min - code, code).astype(np.int64)


@pytest.mark.parametrize("captured_form", [c for c in captured() if is_approximate(c.form)], ids=lambda c: c.form.key)
def test_approximate_forms_stay_within_an_ulp(captured_form):
    form = captured_form.form
    n = edge_count(form.reads)
    ours = evaluate(form, [x[:n] for x in inputs(form.reads)])[0]
    assert np.abs(ulps(ours) - ulps(captured_form.edges[0])).max() <= 1


def test_only_functions_of_f64_are_approximate():
    assert {c.form.mnemonic for c in captured() if is_approximate(c.form)} == {
        "rcp.approx.ftz.f64", "rsqrt.approx.f64", "rsqrt.approx.ftz.f64",
    }  # fmt: skip


def test_programs_agree_bit_for_bit():
    assert program_capture.compare(HERE / "programs-sm_90a.npz") == "105 programs, 0 results differ"
