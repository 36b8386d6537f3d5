"""`warpsmith launch` with a recording driver: what it launches, what it writes, what it refuses."""

from __future__ import annotations

import ctypes
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recording_driver import RecordingDriver
from warpsmith.cli.main import main
from warpsmith.launch.binding import use_driver
from warpsmith.launch.context import forget_contexts
from warpsmith.toolchain import compile_ptx

PTX = """.version 8.0
.target {}
.address_size 64
.visible .entry twice(.param .u64 a, .param .f32 s)
.reqntid 32
{{
    ret;
}}
"""
KERNEL = """
from warpsmith import kernel, ptx, Tile
from warpsmith.types import f32
tile = (Tile("N", f32),)
@kernel(arch="sm_90a", in_specs=tile, out_specs=tile, grid=(3,), block=(64,), raw_params=[("u32", "n")])
def copy(a, c):
    ptx.global_ptrs(a, c)
    ptx.ret()
"""


@pytest.fixture
def driver() -> Iterator[RecordingDriver]:
    recording = RecordingDriver()
    use_driver(recording)
    forget_contexts()
    recording.sizes |= {"twice": [8, 4], "copy": [8, 8, 4]}
    recording.kernel = scale
    yield recording
    use_driver(None)
    forget_contexts()


def scale(a: bytes, *rest: bytes) -> None:
    data = np.ctypeslib.as_array((ctypes.c_float * 32).from_address(struct.unpack("<Q", a)[0]))
    data *= 2


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ptx").write_text(PTX.format("sm_90a"))
    (tmp_path / "k.cubin").write_bytes(compile_ptx(PTX.format("sm_90a")).cubin)
    (tmp_path / "old.cubin").write_bytes(compile_ptx(PTX.format("sm_80")).cubin)
    (tmp_path / "new.ptx").write_text(PTX.format("sm_100a").replace("8.0", "8.6"))
    (tmp_path / "copy.py").write_text(KERNEL)
    np.save(tmp_path / "a.npy", np.arange(32, dtype=np.float32))
    return tmp_path


@pytest.mark.parametrize("target", [["k.ptx"], ["k.cubin", "--kernel", "twice", "--block", "32"]])
def test_an_array_goes_to_the_gpu_and_back(driver: RecordingDriver, files: Path, capsys: Any, target: list[str]) -> None:
    assert main(["launch", *target, "--grid", "4,2", "-a", "a.npy,1.5", "-o", "0=out.npy", "--cooperative"]) == 0
    (launch,) = driver.launches
    assert launch["arguments"][1] == struct.pack("<f", 1.5)
    assert (launch["shape"].grid, launch["shape"].block, launch["shape"].cooperative) == ((4, 2, 1), (32, 1, 1), True)
    np.testing.assert_array_equal(np.load(files / "out.npy"), 2 * np.arange(32, dtype=np.float32))
    assert capsys.readouterr().out == "ran on NVIDIA H200 (sm_90)\narray 0 a.npy: float32[32] from 0 to 62, mean 31\n"
    assert driver.memory == {}


def test_a_python_kernel(driver: RecordingDriver, files: Path, capsys: Any) -> None:
    assert main(["launch", "copy.py:copy", "-a", "a.npy", "-p", "n=7", "--json"]) == 0
    (launch,) = driver.launches
    assert launch["arguments"][2] == struct.pack("<I", 7)
    assert (launch["shape"].grid, launch["shape"].block) == ((3, 1, 1), (64, 1, 1))
    assert json.loads(capsys.readouterr().out) == {
        "device": "NVIDIA H200 (sm_90)",
        "arrays": [
            {"name": "a.npy", "dtype": "float32", "shape": [32]},
            {"name": "output 0", "dtype": "float32", "shape": [32]},
        ],
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["old.cubin", "--kernel", "twice", "--block", "32", "-a", "a.npy,1"],
         "old.cubin is compiled for sm_80, and NVIDIA H200 is sm_90; compile the PTX for it (arch='sm_90a', or --arch sm_90a)"),
        (["new.ptx", "-a", "a.npy,1"],
         "PTX for sm_100a cannot be compiled for NVIDIA H200, which is sm_90; write its .target"),
        (["k.cubin", "-a", "a.npy,1"], "k.cubin: a cubin needs --kernel NAME and --block THREADS"),
        (["k.ptx", "-a", "a.npy"], "kernel `twice` takes 2 arguments (a, s); 1 were given"),
        (["k.ptx", "-a", "a.npy,1", "-p", "n=1"], "k.ptx: no parameters to set; -p is for kernels written in Python"),
        (["copy.py:copy", "-a", "a.npy", "--block", "32"], "copy.py:copy: a kernel written in Python states --block itself"),
        (["none.cubin", "--kernel", "k", "--block", "1"], "none.cubin: cannot be read: No such file or directory"),
        (["k.ptx", "-a", "a.npy,1", "--device", "3"], "no CUDA device 3; there are 1, numbered from 0"),
        (["a.npy", "--kernel", "k"], None),
    ],
)  # fmt: skip
def test_bad_input(driver: RecordingDriver, files: Path, capsys: Any, arguments: list[str], message: str | None) -> None:
    assert main(["launch", *arguments]) == 2
    err = capsys.readouterr().err
    if message is not None:
        assert err == f"warpsmith: error: {message}\n"
    assert not driver.launches


def test_a_kernel_the_cubin_does_not_have(driver: RecordingDriver, files: Path, capsys: Any) -> None:
    driver.fail["get_function"] = 500
    assert main(["launch", "k.cubin", "--kernel", "thrice", "--block", "32", "-a", "a.npy,1"]) == 2
    assert capsys.readouterr().err == "warpsmith: error: k.cubin: no kernel is called 'thrice'\n"


def test_a_fault_names_the_simulators_command(driver: RecordingDriver, files: Path, capsys: Any) -> None:
    driver.fail["synchronize"] = 700
    assert main(["launch", "k.ptx", "-a", "a.npy,1.5", "-o", "0=out.npy"]) == 2
    assert "      warpsmith simulate k.ptx -a a.npy,1.5, with the same shape\n" in capsys.readouterr().err
    assert not (files / "out.npy").exists()


def test_simulate_against_the_gpu(driver: RecordingDriver, files: Path, capsys: Any) -> None:
    assert main(["simulate", "k.ptx", "-a", "a.npy,1.5", "--against-gpu"]) == 1
    assert capsys.readouterr().out.endswith(
        "against NVIDIA H200 (sm_90), ptxas --fmad=false: array 0: 31 of 32 elements differ, first [1]: GPU 2.0 (0x40000000), "
        "simulator 1.0 (0x3f800000)\n"
        "  written on the simulator by no instruction: it holds what it held before the launch\n"
        "compiled with -O0 the GPU differs, too\n"
    )
    driver.kernel = None
    assert main(["simulate", "k.ptx", "-a", "a.npy,1.5", "--against-gpu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["comparison"]["same"] is True
