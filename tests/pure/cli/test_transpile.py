from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Run

SCALE = Path(__file__).parents[3] / "docs/guide/scale.ptx"


def test_python_that_can_be_checked_and_compiled_again(run: Run, tmp_path: Path) -> None:
    outcome = run("transpile", SCALE, "-o", "scaled_kernel.py")
    text = (tmp_path / "scaled_kernel.py").read_text()
    assert (outcome.status, outcome.out) == (0, f"scaled_kernel.py: {len(text.splitlines())} lines\n")
    assert run("check", "scaled_kernel.py", "--static").out == "scaled_kernel.py: 10 instructions, no problems\n"
    assert run("transpile", SCALE).out == text
    assert json.loads(run("transpile", SCALE, "--json").out) == {"output": None, "source": text}


def test_sugar(run: Run) -> None:
    assert "ptx.add(u64, " in run("transpile", SCALE, "--sugar").out
    assert "ptx.add(u64, " not in run("transpile", SCALE).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.ptx"], "warpsmith: error: none.ptx: cannot be read: No such file or directory\n"),
        ([SCALE, "--name", "grow"], f"warpsmith: error: {SCALE} has no kernel 'grow'; it has: scale\n"),
        ([SCALE, "-o", "none/k.py"], "warpsmith: error: none/k.py: No such file or directory\n"),
    ],
)
def test_what_cannot_be_written(run: Run, words: list[str | Path], said: str) -> None:
    outcome = run("transpile", *words)
    assert (outcome.status, outcome.out, outcome.err) == (2, "", said)
