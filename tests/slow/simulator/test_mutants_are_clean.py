"""The correct kernels of the mutation tests under twenty random schedules: no findings, and the right result."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "pure" / "simulator" / "mutants" / "test_mutants.py"
SPEC = importlib.util.spec_from_file_location("mutation_tests", PATH)
mutation_tests = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mutation_tests)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kernel", mutation_tests.LAUNCHES)
def test_clean(kernel, seed):
    result, out = mutation_tests.launch(kernel, mutation_tests.text_of(kernel), schedule="random", seed=seed)
    assert [str(f) for f in result.findings] == []
    assert result.completed
    assert np.array_equal(out, mutation_tests.LAUNCHES[kernel].expected)
