"""How ports of well-known kernels are judged: numpy, twenty random schedules, ptxas, and faults put in on purpose."""

import copy
from pathlib import Path

import numpy as np
import pytest

from warpsmith.testing import assert_clean
from warpsmith.toolchain import compile_ptx


@pytest.fixture
def judge():
    """Return a function that asserts that a kernel computes `want` under every schedule, without findings, and assembles."""

    def judge(kernel, arrays, want, tolerance):
        fair = assert_clean(kernel, *arrays, schedules=20)
        assert [str(f) for f in fair.findings] == []
        results = [fair]
        results += [kernel.simulate(*copy.deepcopy(arrays), schedule="random", seed=s, check=False) for s in range(3)]
        for number, result in enumerate(results):
            assert np.abs(result.outputs[0].astype(np.float64) - want).max() <= tolerance, number
        compiled = compile_ptx(kernel.ptx(), kernel.arch)
        assert [str(f) for f in compiled.findings] == []

    return judge


@pytest.fixture
def blame():
    """Return a function that asserts that a broken kernel is reported with a kind, at a line of its source with some words."""

    def blame(kernel, arrays, kind, words):
        result = kernel.simulate(*copy.deepcopy(arrays))
        found = [f for f in result.findings if f.kind == kind]
        assert found, [str(f) for f in result.findings]
        places = [p for f in found for p in (f.where, *(r.where for r in f.related)) if p is not None]
        lines = [Path(p.file).read_text().splitlines()[p.line - 1] for p in places]
        assert any(words in line for line in lines), lines
        assert found[0] is result.findings[0] or kind == "over-arrival"

    return blame
