"""The log of a run may be broken off anywhere; what is in it becomes a capture and a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from warpsmith.base.errors import InputError
from warpsmith.hardware.flow.program import arguments, generate
from warpsmith.hardware.flow_capture import main
from warpsmith.hardware.flow_store import OUTCOMES, FlowCapture, Log, digest_of, words_of

if TYPE_CHECKING:
    from pathlib import Path

ABOUT = {"arch": "sm_90a", "device": "a GPU"}
LEFT = np.array([1, 2, 3, 0xFFFFFFFF], np.uint32)


def filled(path: Path) -> Log:
    """Six programs: one of each outcome by default, and one that left nothing with -O0."""
    log = Log.begin(path, ABOUT)
    for n in (0, 3, 2, 5, 4):
        log.add(n, 1, LEFT + np.uint32(n))
    log.add(1, 1, "cuStreamQuery failed:\na fault")
    log.note("-O0 in 5 s")
    log.add(0, 0, LEFT)
    for answer in (LEFT, LEFT + np.uint32(2)):
        log.add(2, 0, answer)
    log.add(3, 0, "it did not end within 4 s")
    log.add(4, 0, "its process died with 9")
    return log


def test_a_log_comes_back(tmp_path: Path) -> None:
    written, read = filled(tmp_path / "flow.log"), Log.read(tmp_path / "flow.log")
    assert read.about == ABOUT
    assert {k: list(map(str, v)) for k, v in read.answers.items()} == {k: list(map(str, v)) for k, v in written.answers.items()}
    assert Log.begin(tmp_path / "flow.log", {}).about == ABOUT


def test_what_a_log_says(tmp_path: Path) -> None:
    log = filled(tmp_path / "flow.log")
    assert [log.outcome(n) for n in (0, 2, 3, 4, 5)] == list(OUTCOMES)
    assert log.report().splitlines() == [
        "6 programs, 4 in both ways; 4 differ between them or left nothing",
        "program 1, -O0: cuStreamQuery failed: a fault",
        "program 2, default: other results: first store, second store, cells, counters and bulk copies; same",
        "program 3, default: did not end: it did not end within 4 s",
        "program 4, default: fault: its process died with 9",
    ]


def test_a_broken_off_log_becomes_a_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = filled(tmp_path / "flow.log")
    with log.path.open("a") as file:
        file.write("7 1 00000001 0000")
    assert main(["gather", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("6 programs, 4 in both ways")
    c = FlowCapture.read(tmp_path / "flow.capture")
    assert c.numbers == [0, 2, 3, 4, 5]
    assert (c.left == np.stack([LEFT + np.uint32(n) for n in c.numbers])).all()
    assert c.optimised.tolist() == [0, 1, 2, 3, 4]
    assert c.texts.tolist() == [digest_of(generate(n).text("sm_90a")) for n in c.numbers]
    assert c.about == {**ABOUT, "words": sum(words_of(generate(n)) for n in c.numbers)}


def test_the_words_a_program_leaves() -> None:
    for n in range(4):
        _, out, cells, counters, bulk, _ = arguments(p := generate(n))
        assert words_of(p) == out.size + cells.size + counters.size + bulk.size


@pytest.mark.parametrize("text", ["", "17 1 0000", "# {}\n17 1 zz\n", "# {}\n17\n"])
def test_what_is_no_log_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(InputError, match=r"^.*x is not a log of random programs of many threads: "):
        Log.read(tmp_path / "x")
