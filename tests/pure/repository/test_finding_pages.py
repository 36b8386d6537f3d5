"""docs/findings/: a page for each kind. The broken kernel shows it, the repaired one is clean. `--regenerate` writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from finding_pages import CHOSEN, PAGES, mutation_tests, pages
from warpsmith.findings import KINDS

TESTS = mutation_tests()


def test_the_pages_are_of_now(pytestconfig: pytest.Config) -> None:
    now = pages()
    if pytestconfig.getoption("--regenerate"):
        PAGES.mkdir(exist_ok=True)
        for path, text in now.items():
            path.write_text(text)
    found: dict[Path, str] = {p: p.read_text() for p in PAGES.glob("*.md")}
    assert found.keys() == now.keys()
    assert found == now


def test_every_kind_of_the_simulator_has_an_example() -> None:
    toolchain = ("ptxas-error", "ptxas-note", "ptxas-miscompiles", "register-spill", "setmaxnreg-ignored", "cache")
    assert {k for k in KINDS if k not in toolchain and not k.startswith("wgmma-")} == CHOSEN.keys()


@pytest.mark.parametrize("kernel", sorted({m.kernel for m in TESTS.MUTANTS if CHOSEN.get(m.kind) == m.what}))
def test_the_repaired_kernels_are_clean(kernel: str) -> None:
    for order in ({}, {"schedule": "adversarial", "seed": 1}, {"schedule": "random", "seed": 1}):
        result, out = TESTS.launch(kernel, TESTS.text_of(kernel), **order)
        assert [str(f) for f in result.findings] == []
        assert (out == TESTS.LAUNCHES[kernel].expected).all()
