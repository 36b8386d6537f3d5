"""A kernel that does not end is ended by a fault beside it; one that ends is waited for."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from warpsmith.assembly.ptx.check import check
from warpsmith.assembly.ptx.parser import parse
from warpsmith.base.errors import ToolError
from warpsmith.hardware.gpu_watch import STOP, DidNotEndError, Watch


class Gpu:
    """A driver whose kernel in stream 0 ends after so many questions, or never; the fault reaches it, or not."""

    def __init__(self, questions: int, *, faults: bool = True) -> None:
        self.questions, self.faults, self.launched = questions, faults, []

    def load(self, cubin: bytes, name: str) -> Any:
        assert (cubin, name) == (b"cubin", "stop")
        return self

    def stream(self) -> int:
        return 7

    def launch(self, grid: Any, block: Any, arguments: list[bytes], *, stream: int) -> None:
        assert (grid, block, stream) == ((1, 1, 1), (1, 1, 1), 7)
        self.launched += [struct.unpack("<I", arguments[0])[0]]

    def synchronize(self) -> None:
        pass

    def busy(self) -> bool:
        if self.launched[-1] and self.faults:
            raise ToolError("launch failed")
        self.questions -= 1
        return self.questions > 0


def test_what_ends_is_waited_for() -> None:
    gpu = Gpu(5)
    Watch(gpu, b"cubin").wait(10)  # pyright: ignore[reportArgumentType]
    assert (gpu.questions, gpu.launched) == (0, [0])


def test_what_does_not_end_is_ended_by_a_fault() -> None:
    gpu = Gpu(1 << 60)
    with pytest.raises(DidNotEndError, match=r"^it did not end within 0\.01 s$"):
        Watch(gpu, b"cubin").wait(0.01)  # pyright: ignore[reportArgumentType]
    assert gpu.launched == [0, 1]


def test_what_a_fault_does_not_end_either_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpsmith.hardware.gpu_watch._FAULT", 0.01)
    with pytest.raises(DidNotEndError, match=r"^it did not end within 0\.01 s, nor by a fault beside it$"):
        Watch(Gpu(1 << 60, faults=False), b"cubin").wait(0.01)  # pyright: ignore[reportArgumentType]


def test_the_kernel_that_faults_is_one() -> None:
    assert check(parse(STOP.format(arch="sm_90a"))) == []
