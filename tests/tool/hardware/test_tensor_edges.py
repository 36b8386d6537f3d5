"""The capture of tensor copies past the edges, on a recording driver: faults are results, and are compared as such."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recording_driver import RecordingDriver
from warpsmith.base.errors import CapabilityError, WarpsmithError
from warpsmith.hardware import gpu_run, tensor_capture
from warpsmith.hardware.tensor_programs import TensorProgram, tensor_programs

EDGES = {p.name: p for p in tensor_programs() if " edge " in p.name}
NEGATIVE = {name for name in EDGES if "(-" in name or " -" in name}


class Gpu:
    """The recording driver as captures see one. A "cubin" is the name of its program."""

    name, version = "NVIDIA H200", "13.0"

    def __init__(self, driver: RecordingDriver, faults: set[str]) -> None:
        self.driver, self.faults = driver, faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)

    def allocate(self, size: int) -> int:
        return -(-self.driver.allocate(size + 256) // 256) * 256

    def free(self, address: int) -> None:
        assert any(start <= address < start + 256 for start in self.driver.memory)

    def load(self, cubin: bytes, name: str) -> Any:
        assert self.driver.load_module(cubin)
        program, gpu = EDGES[cubin.decode()], self

        class Function:
            @staticmethod
            def launch(grid: Any, block: Any, packed: list[bytes], **options: Any) -> None:
                assert tuple(block) == (program.block, 1, 1)
                assert len(packed[1]) == 128  # a tensor map
                if program.name in gpu.faults:
                    gpu.driver.fail["synchronize"] = 715
                    return
                gpu.driver.fail.clear()
                gpu.driver.upload(int.from_bytes(packed[0], "little"), _result(program).tobytes())

        return Function


def _result(p: TensorProgram) -> Any:
    try:
        return tensor_capture.simulated(p)
    except (CapabilityError, WarpsmithError):
        return np.full_like(p.arguments()[0], 0xEE)


def _capture(monkeypatch: Any, driver: RecordingDriver, folder: Path, names: set[str], faults: set[str]) -> str:
    gpu = Gpu(driver, faults)
    monkeypatch.setattr(gpu_run, "driver", lambda: gpu)
    monkeypatch.setattr(tensor_capture, "driver", lambda: gpu)
    chosen = sorted(names)
    with zipfile.ZipFile(folder / "tensor.zip", "w") as z:
        for i, name in enumerate(chosen):
            z.writestr(f"{i}.cubin", name)
        z.writestr("manifest.json", json.dumps({"arch": "sm_90a", "names": chosen}))
    return tensor_capture.run(folder, folder, each=lambda tasks: [_answer(t) for t in tasks])


def _answer(task: tuple[str, bytes]) -> Any:
    try:
        return tensor_capture.on_gpu(task)
    except WarpsmithError as error:
        return str(error)


@pytest.mark.parametrize("what", ["store edge store (", "store edge add (", "store edge im2col"])
def test_where_the_gpu_stops_the_simulator_does(monkeypatch: Any, driver: RecordingDriver, tmp_path: Path, what: str) -> None:
    names = {n for n in EDGES if n.startswith(what) and " of (" not in n}
    assert names & NEGATIVE
    assert names - NEGATIVE
    report = _capture(monkeypatch, driver, tmp_path, names, NEGATIVE)
    assert report.splitlines()[:2] == [f"{len(names)} programs", f"{len(names)} programs, 0 differ"]
    assert sum("synchronize failed: CUDA_ERROR_715 (715)" in line for line in report.splitlines()) == len(names & NEGATIVE)
    assert tensor_capture.differing(tmp_path / "tensor.npz") == (len(names), {})


def test_a_negative_coordinate_that_the_gpu_takes_differs(monkeypatch: Any, driver: RecordingDriver, tmp_path: Path) -> None:
    names = {"store edge store (0, -8)", "store edge store (-16, 0)", "store edge store (24, 12)"}
    _capture(monkeypatch, driver, tmp_path, names, {"store edge store (-16, 0)"})
    total, found = tensor_capture.differing(tmp_path / "tensor.npz")
    assert (total, list(found)) == (3, ["store edge store (0, -8)"])
    assert "coordinates (0, -8); none may be negative" in found["store edge store (0, -8)"]
    assert found["store edge store (0, -8)"].endswith("; the GPU completed")


def test_a_store_within_that_the_gpu_refuses_differs(monkeypatch: Any, driver: RecordingDriver, tmp_path: Path) -> None:
    _capture(monkeypatch, driver, tmp_path, {"store edge add (36, 20)"}, {"store edge add (36, 20)"})
    _, found = tensor_capture.differing(tmp_path / "tensor.npz")
    assert "the simulator completed; the GPU stopped: synchronize failed" in found["store edge add (36, 20)"]
