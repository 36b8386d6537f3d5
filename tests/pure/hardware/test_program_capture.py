"""Comparing captured programs with the simulator."""

import numpy as np
import pytest

from warpsmith.base.errors import InputError
from warpsmith.hardware import program_capture

NAMES = ("sub.cc addc", "shfl.sync.up.b32", "redux.sync.add.u32", "atom.shared.add.f32")


@pytest.fixture
def some(monkeypatch):
    chosen = [p for p in program_capture.programs() if p.name in NAMES]
    monkeypatch.setattr(program_capture, "programs", lambda: chosen)
    return chosen


def test_names_are_unique():
    names = [p.name for p in program_capture.programs()]
    assert len(names) == len(set(names)) > 80


def test_agreement_and_a_planted_difference(some, tmp_path, capsys):
    results = {f"{p.name}/{k}": out for p in some for k, out in enumerate(program_capture.simulated(p))}
    path = tmp_path / "programs.npz"
    np.savez(path, **results)
    assert program_capture.main(["compare", str(path)]) == 0
    assert capsys.readouterr().out == f"{len(NAMES)} programs, 0 differ\n"
    wrong = results["sub.cc addc/1"].copy()
    wrong[9] += 1
    np.savez(path, **{**results, "sub.cc addc/1": wrong})
    assert program_capture.main(["compare", str(path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{len(NAMES)} programs, 1 differ\nsub.cc addc result 1: 1 of ")


def test_a_missing_file_is_refused(tmp_path, capsys):
    assert program_capture.main(["compare", str(tmp_path / "none.npz")]) == 2
    assert "is not a program capture" in capsys.readouterr().err
    with pytest.raises(InputError, match="make it with `program_capture build`"):
        program_capture.open_build(tmp_path / "programs.zip", "program_capture")
