"""Cubins, PTX and numpy arrays on the GPU: `warpsmith launch`, `against_gpu`, arguments that are kept for a fault."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from warpsmith.dsl.call import bind
from warpsmith.hardware.against_gpu import simulate
from warpsmith.kernels import gemm, rms_norm
from warpsmith.kernels.attention import hopper
from warpsmith.study import launch_kernels

__all__ = ["CHECKS"]


def _run(arguments: list[str], folder: str, status: int, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "warpsmith", *arguments], capture_output=True, text=True, cwd=folder, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == status, f"status {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def verb() -> str:
    """`warpsmith launch` of PTX and of a cubin; a cubin for sm_80 is refused."""
    with tempfile.TemporaryDirectory() as folder:
        k = launch_kernels.scaled_copy
        Path(folder, "k.ptx").write_text(k.ptx(loc=False))
        Path(folder, "k.cubin").write_bytes(k.cubin())
        a = np.arange(1024, dtype=np.float32)
        np.save(Path(folder, "a.npy"), a)
        for file in (["k.ptx"], ["k.cubin", "--kernel", "scaled_copy", "--block", "128"]):
            said = _run(["launch", *file, "--grid", "8", "-a", "a.npy,c:f32[1024],2.5f", "-o", "c=out.npy"], folder, 0)
            np.testing.assert_array_equal(np.load(Path(folder, "out.npy")), a * np.float32(2.5))
        Path(folder, "old.ptx").write_text(".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n")
        _run(["compile", "old.ptx", "-o", "old.cubin"], folder, 0)
        refused = _run(["launch", "old.cubin", "--kernel", "k", "--block", "1"], folder, 2)
        assert "old.cubin is compiled for sm_80" in refused
    return said.splitlines()[0]


def same() -> str:
    """`against_gpu`: GEMM, RMS norm and Hopper attention, every bit."""
    rng = np.random.default_rng(5)
    problems: list[tuple[Any, list[tuple[int, ...]]]] = [
        (gemm.build(gemm.Config(72, 96, 136, "f16", "nt")), [(72, 136), (96, 136)]),
        (rms_norm.build(rms_norm.Config(3, 1000, "f16", arch="sm_90a")), [(3, 1000), (1000,)]),
        (hopper.build(hopper.Config(1, 150, 64, "f16", True)), [(1, 150, 64)] * 3),
    ]
    said: list[str] = []
    for kernel, shapes in problems:
        result = kernel.simulate(*(rng.standard_normal(s).astype(np.float16) for s in shapes), against_gpu=True)
        said.append(f"{kernel.__name__}: {str(result.comparison).splitlines()[0].rpartition(': ')[2]}")
        assert not result.comparison.failed, str(result.comparison)
    return "; ".join(said)


def different() -> str:
    """`against_gpu` on PTX text; a kernel that reads the clock is named."""
    bound = bind(launch_kernels.scaled_add, [np.ones(256, np.float32)] * 2, {"s": 1.5})
    text = bound.built.text().replace("fma.rn.f32", "fma.rz.f32")
    values = np.full(256, np.float32(1 / 3))
    args = [values, values.copy(), np.zeros(256, np.float32), np.float32(1.1), 256]
    result = simulate(text, grid=2, block=128, args=args, against_gpu=True)
    assert result.comparison.same, str(result.comparison)
    clock = text.replace("    ret;", "    mov.u32 %clk, %clock;\n    ret;").replace("{", "{\n    .reg .b32 %clk;", 1)
    result = simulate(clock, grid=2, block=128, args=args, against_gpu=True)
    return str(result.comparison).replace("\n", " | ")


def dumped() -> str:
    """WARPSMITH_DUMP keeps the inputs of a launch that faults, and the simulator runs on them."""
    code = (
        "import torch\nfrom warpsmith.study import launch_kernels as k\nfrom warpsmith.launch.context import context\n"
        "from warpsmith.launch.faults import synchronize\na = torch.arange(256.0, device='cuda')\n"
        "k.outside(a)\ntry:\n    synchronize(context(0))\nexcept Exception as e:\n    print(e)\nimport os\nos._exit(0)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "WARPSMITH_DUMP": folder}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
        (file,) = Path(folder).glob("*.npz")
        assert f"its inputs: {file}" in done.stdout, done.stdout + done.stderr
        said = _run(["simulate", f"{launch_kernels.__file__}:outside", "-a", str(file)], folder, 1)
        assert "out-of-bounds" in said
        assert "from 0 to 255" in said
    return file.name


CHECKS = [verb, same, different, dumped]
