"""Programs are made smaller while what a fake GPU says of them stays the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from warpsmith.assembly.ptx.parser import parse
from warpsmith.hardware import flow_reduce
from warpsmith.hardware.flow.program import FlowProgram, generate

if TYPE_CHECKING:
    from pathlib import Path


def kernel(p: FlowProgram) -> str:
    return p.text("sm_90a").split(".visible")[1]


NUMBER = next(n for n in range(50) if "brx.idx" in kernel(generate(n)))
SAME = (np.zeros(3, np.uint64), np.zeros(3, np.uint64))
OTHER = (np.array([0, 7, 0], np.uint64), np.zeros(3, np.uint64))
HANGS = "it did not end within 2 s, nor by a fault beside it"


class FakeCrowd:
    """Processes that find what they are told of in programs with a `brx.idx` in the kernel."""

    bad: Any = None
    good: Any = None

    def __init__(self, action: Any, workers: int, opening: Any) -> None:
        del action, workers, opening

    def each(self, tasks: list[Any], patience: float) -> list[Any]:
        assert patience > 2
        programs = [t[0] if isinstance(t, tuple) else t for t in tasks]
        return [self.bad if "brx.idx" in kernel(p) else self.good for p in programs]

    def end(self) -> None:
        pass


def reduced(monkeypatch: pytest.MonkeyPatch, out: Path, bad: Any, good: Any, *options: str) -> None:
    monkeypatch.setattr(FakeCrowd, "bad", bad)
    monkeypatch.setattr(FakeCrowd, "good", good)
    monkeypatch.setattr(flow_reduce, "Crowd", FakeCrowd)
    assert flow_reduce.main(["--out", str(out), "--seconds", "20", *options, str(NUMBER)]) == 0


def is_small(out: Path) -> bool:
    text = (out / f"{NUMBER}.ptx").read_text()
    parse(text)
    return "brx.idx" in text and len(text) < 0.6 * len(generate(NUMBER).text("sm_90a"))


@pytest.mark.parametrize(
    ("bad", "shown"), [(OTHER, "1 results differ; word 0 of thread 1\n1: hardware 7, simulator 0"), (HANGS, HANGS)]
)
def test_what_differs_or_does_not_end_is_made_small(
    bad: Any, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reduced(monkeypatch, tmp_path, bad, SAME)
    assert is_small(tmp_path)
    assert (tmp_path / f"{NUMBER}.txt").read_text() == shown + "\n"
    assert capsys.readouterr().out.startswith(f"program {NUMBER}: ")


def test_the_default_against_no_optimisation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reduced(monkeypatch, tmp_path, "other results", "same", "--apart")
    assert is_small(tmp_path)
    assert capsys.readouterr().out.endswith(" left: other results\n")


def test_a_program_that_does_not_differ_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reduced(monkeypatch, tmp_path, "same", "same", "--apart")
    assert (tmp_path / f"{NUMBER}.ptx").read_text() == generate(NUMBER).text("sm_90a")
