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
        ([SCALE, "--kernel", "grow"], f"warpsmith: error: {SCALE} has no kernel 'grow'; it has: scale\n"),
        ([SCALE, "--name", "grow"], f"warpsmith: error: {SCALE} has no kernel 'grow'; it has: scale\n"),
        ([SCALE, "-o", "none/k.py"], "warpsmith: error: none/k.py: No such file or directory\n"),
    ],
)
def test_what_cannot_be_written(run: Run, words: list[str | Path], said: str) -> None:
    outcome = run("transpile", *words)
    assert (outcome.status, outcome.out, outcome.err) == (2, "", said)


def test_the_python_runs_with_the_same_arguments(run: Run) -> None:
    run("transpile", SCALE, "-o", "scaled_again.py")
    launch = ("--block", "32", "--args", "f32[32]=range,f32[32]")
    outcome = run("simulate", "scaled_again.py:scale", *launch)
    assert outcome.out.splitlines()[1] == "array 1 f32[32]: float32[32] from 0 to 62, mean 31"
    assert outcome.out == run("simulate", SCALE, *launch).out
    checked = run("check", "scaled_again.py", *launch, "--schedules", "1", "--jobs", "1")
    assert checked.out == "scaled_again.py: 10 instructions, no problems, 2 schedules, no findings\n"
    short = run("check", "scaled_again.py", "--block", "32", "-a", "f32[32],f32[16]", "--schedules", "1", "--jobs", "1")
    assert (short.status, "error[out-of-bounds]" in short.out) == (1, True)
    assert run("simulate", "scaled_again.py", "-a", "f32[32],f32[32]").err == (
        "warpsmith: error: scaled_again.py: scale does not state its block (.reqntid); write --block, e.g. --block 128\n"
    )
