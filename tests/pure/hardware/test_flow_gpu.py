"""A run: first without optimisation, then with it, then once more what went otherwise; nothing twice that the log has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from warpsmith.base.errors import InputError, WarpsmithError
from warpsmith.hardware import flow_gpu
from warpsmith.hardware.flow_store import FlowCapture, Log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

LEFT = np.array([1, 2, 3, 4], np.uint32)
HANGS = "it did not end within 4 s"
ANSWERS = {(0, 1): LEFT, (0, 0): LEFT, (1, 1): LEFT, (1, 0): LEFT + np.uint32(1), (2, 1): LEFT, (2, 0): HANGS}
"""(program, way) -> what it leaves"""


class FakeCrowd:
    """Processes that answer from a table, and what they were asked."""

    asked: ClassVar[list[tuple[int, int]]] = []

    def __init__(self, action: Any, workers: int, opening: Any) -> None:
        del action, workers, opening

    def each(self, tasks: list[Any], patience: float, *, tell: Callable[[int, Any], None], more: Callable[[], bool]) -> None:
        assert patience > 4
        for k, (_, number, way) in enumerate(tasks):
            if more():
                self.asked.append((number, way))
                tell(k, ANSWERS[number, way])

    def end(self) -> None:
        pass


class FakePool:
    """A pool in this very process."""

    def __enter__(self) -> FakePool:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def imap(self, action: Callable[[Any], Any], tasks: Iterable[Any], chunksize: int = 1) -> Iterator[Any]:
        del chunksize
        return map(action, tasks)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of three programs for the fake processes."""

    def compiled(text: str, *_: Any, **__: Any) -> Any:
        if text.startswith("// program 3:"):
            raise WarpsmithError("ptxas: no")
        return SimpleNamespace(cubin=b"")

    monkeypatch.setattr(flow_gpu, "driver", lambda: SimpleNamespace(name="GPU", version="1.0"))
    monkeypatch.setattr(flow_gpu, "compile_ptx", compiled)
    monkeypatch.setattr(flow_gpu, "pool", FakePool)
    monkeypatch.setattr(flow_gpu, "Crowd", FakeCrowd)
    monkeypatch.setattr(FakeCrowd, "asked", [])
    report = flow_gpu.build("sm_90a", tmp_path, 0, 4)
    assert report.splitlines() == ["3 programs", "program 3: ptxas: no", "program 3: ptxas: no"]
    return tmp_path


def test_what_a_run_reports(built: Path) -> None:
    report = flow_gpu.run(built, built / "out").splitlines()
    assert report == [
        "3 programs, 3 in both ways; 2 differ between them or left nothing",
        "program 1, default: other results: " + "; ".join(["first store, second store, cells, counters and bulk copies"] * 4),
        "program 2, default: did not end: " + "; ".join([HANGS] * 4),
    ]
    assert (built / "out" / "flow.txt").read_text().splitlines() == report
    assert FakeCrowd.asked == [(0, 1), (1, 1), (2, 1), (0, 0), (1, 0), (2, 0), *3 * [(1, 0), (2, 0)]]
    assert FlowCapture.read(built / "out" / "flow.capture").optimised.tolist() == [0, 1, 2]


def test_a_run_goes_on_where_one_was_broken_off(built: Path) -> None:
    log = Log.begin(built / "flow.log", {"arch": "sm_90a"})
    log.add(0, 1, LEFT)
    log.add(1, 1, LEFT)
    flow_gpu.run(built, built)
    assert FakeCrowd.asked[:4] == [(2, 1), (0, 0), (1, 0), (2, 0)]


def test_a_run_without_time_keeps_what_there_is(built: Path) -> None:
    assert flow_gpu.run(built, built / "out", 0) == "0 programs, 0 in both ways; 0 differ between them or left nothing"
    assert FlowCapture.read(built / "out" / "flow.capture").numbers == []


def test_a_run_without_a_build_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^.*flow\.zip cannot be read: .*; make it with `flow_capture build`$"):
        flow_gpu.run(tmp_path, tmp_path)
