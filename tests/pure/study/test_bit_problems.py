"""The random problems that are compared with a GPU: their kernels take them, and nothing is found."""

import numpy as np
import pytest

from warpsmith.study.bit_problems import problems

NAMES = ["gemm", "rms_norm", "hopper", "ampere", "hopper, options", "hopper_fp8", "hopper_packed"]


def test_every_kernel_has_as_many_problems():
    assert [p.name for p in problems(6, "sm_90a")] == NAMES * 6


def test_problems_and_inputs_are_the_same_each_time():
    for one, other in zip(problems(4, "sm_90a"), problems(4, "sm_90a"), strict=True):
        assert one.config == other.config
        for a, b in zip(one.inputs(3), other.inputs(3), strict=True):
            np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))


@pytest.mark.parametrize("at", range(14), ids=lambda at: f"{at}-{NAMES[at % 7]}")
def test_the_kernel_takes_it(at):
    problem = problems(2, "sm_90a")[at]
    result = problem.built().simulate(*problem.inputs(at))
    assert result.findings == []
    assert all(np.isfinite(o.astype(np.float32)).any() for o in result.outputs)
