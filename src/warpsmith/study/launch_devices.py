"""Launches on a machine with several GPUs: the tensors say where, whatever the thread's current device is."""

# The package is optional, and its types with it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from warpsmith.base.errors import InputError, ToolError, WarpsmithError
from warpsmith.kernels.attention import hopper
from warpsmith.launch.context import context
from warpsmith.study.launch_kernels import scaled_add, scaled_copy
from warpsmith.study.launch_torch import require

__all__ = ["CHECKS"]

if torch.cuda.device_count() < 2:
    raise ToolError("one GPU; these checks need two")


def _current() -> tuple[int, int]:
    """Return the thread's current device, as torch sees it, and the context, as the driver does."""
    return torch.cuda.current_device(), context(0).driver.current_context()


def other_device() -> None:
    """Tensors of the second device, while the first is current, which stays so."""
    torch.ones(1, device="cuda:0")
    before = _current()
    for number in (1, 0, 1):
        a = torch.full((1 << 16,), 2.0 + number, device=f"cuda:{number}")
        c = scaled_copy(a, s=3.0)
        require(c.device == a.device, f"the output is on {c.device}")
        require(bool((c == 3 * a).all()), f"wrong values on device {number}")
    require(_current() == before, f"the current device was {before}, is {_current()}")


def by_turns() -> None:
    """Launches on two devices by turns, 2,000 of each, outputs given."""
    pairs = [(torch.ones(4096, device=f"cuda:{n}"), torch.zeros(4096, device=f"cuda:{n}")) for n in (0, 1)]
    for i in range(2000):
        for a, c in pairs:
            scaled_copy(a, c, s=float(i))
    require(all(bool((c == 1999).all()) for _, c in pairs), "wrong values")


def two_threads() -> None:
    """Two threads, each with a device and a stream of its own, 2,000 launches each."""
    wrong: list[str] = []

    def work(number: int) -> None:
        with torch.cuda.device(number), torch.cuda.stream(torch.cuda.Stream(number)):
            a = torch.ones(4096, device="cuda")
            results = [scaled_copy(a, s=10.0 * number + i % 7) for i in range(2000)]
            torch.cuda.current_stream().synchronize()
            wrong.extend(f"{number}: {i}" for i, r in enumerate(results) if not bool((r == 10 * number + i % 7).all()))

    threads = [threading.Thread(target=work, args=(n,)) for n in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    require(not wrong, f"{len(wrong)} wrong: {wrong[:3]}")


def stream_of_its_device() -> None:
    """The current stream of the tensors' device is taken, not that of the current device."""
    a = torch.zeros(1 << 16, device="cuda:1")
    side = torch.cuda.Stream(1)
    torch.cuda.synchronize(1)
    with torch.cuda.device(1), torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        a.fill_(3.0)
        with torch.cuda.device(0):
            c = scaled_copy(a, s=2.0)
    side.synchronize()
    require(bool((c == 6).all()), "ran before the work of its stream")


def foreign_stream() -> str:
    """A stream of another device than the tensors' is refused."""
    a = torch.ones(256, device="cuda:1")
    try:
        scaled_copy(a, s=2.0, stream=torch.cuda.Stream(0))
    except WarpsmithError as error:
        return str(error).splitlines()[0]
    raise AssertionError("it was taken")


def two_in_one() -> str:
    """Tensors of two devices in one launch are refused by name."""
    a, b = torch.ones(256, device="cuda:0"), torch.ones(256, device="cuda:1")
    try:
        scaled_add(a, b, s=1.0)
    except InputError as error:
        return str(error)
    raise AssertionError("they were taken")


def tensor_maps() -> None:
    """Tensor maps and dynamic shared memory: Hopper attention gives the same bits on both devices."""
    k = hopper.build(hopper.Config(2, 300, 64, "f16", False))
    made = [torch.randn((2, 300, 64), generator=torch.Generator().manual_seed(i)).half() for i in range(3)]
    first, second = ([o.cpu().numpy() for o in k(*(t.to(f"cuda:{n}") for t in made))[:2]] for n in (0, 1))
    require(all(np.array_equal(x, y) for x, y in zip(first, second, strict=True)), "other bits")


def graph() -> None:
    """Capture in a CUDA graph of the second device, the first launch of the kernel there included."""
    with torch.cuda.device(1):
        a, c = torch.ones(1 << 12, device="cuda"), torch.zeros(1 << 12, device="cuda")
        g = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(g):
            scaled_copy(a, c, s=5.0)
        require(not c.any().item(), "the capture ran the kernel")
        a.fill_(2.0)
        g.replay()
        torch.cuda.synchronize()
    require(bool((c == 10).all()), "wrong values")


_FAULT = """
import torch
from warpsmith.launch.context import context
from warpsmith.launch.faults import synchronize
from warpsmith.study.launch_kernels import outside, scaled_copy
a, b = torch.ones(256, device="cuda:1"), torch.ones(256, device="cuda:0")
scaled_copy(b, s=2.0)
try:
    outside(a, torch.zeros_like(a))
    synchronize(context(1))
except Exception as error:
    print(type(error).__name__, *(line for line in str(error).splitlines() if "device" in line))
try:
    scaled_copy(a, torch.empty_like(a), s=2.0)
except Exception as error:
    print("device 1 again:", type(error).__name__, str(error).splitlines()[0])
try:
    scaled_copy(b, b, s=2.0)
    synchronize(context(0))
    print("device 0 goes on")
except Exception as error:
    print("device 0:", type(error).__name__, str(error).splitlines()[0])
import os, sys
sys.stdout.flush()
os._exit(0)
"""


def fault() -> str:
    """A fault on the second device names its launch there; every launch after it says what broke the contexts."""
    done = subprocess.run([sys.executable, "-c", _FAULT], capture_output=True, text=True, timeout=60, check=False)
    said = done.stdout.strip()
    require(", on device 1" in said and said.count("is broken by an earlier fault") == 2, said or done.stderr[-800:])
    return said.replace("\n", "; ")


def verb() -> str:
    """`warpsmith launch --device 1`; a device that is not there is refused by its number."""

    def said(device: str, status: int) -> str:
        arguments = ["launch", "k.ptx", "--block", "32", "--device", device]
        run = [sys.executable, "-m", "warpsmith", *arguments]
        done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False, cwd=folder)
        require(done.returncode == status and "Traceback" not in done.stderr, done.stdout + done.stderr)
        return done.stderr.strip()

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "k.ptx").write_text(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n")
        said("1", 0)
        refused = said("9", 2)
    require("no CUDA device 9" in refused, refused)
    return refused


def jax_device() -> Any:
    """JAX: arrays of the second device."""
    jax = import_module("jax")

    a = jax.device_put(np.ones(512, np.float32), jax.devices()[1])
    c = scaled_copy(a, s=2.0)
    require(c.devices() == a.devices() and bool((np.asarray(c) == 2).all()), f"{c.devices()}")
    return next(iter(c.devices()))


def cupy_device() -> None:
    """CuPy: arrays of the second device."""
    cupy = import_module("cupy")

    with cupy.cuda.Device(1):
        a = cupy.ones(512, cupy.float32)
    c = scaled_copy(a, s=2.0)
    require(c.device.id == 1 and bool((c.get() == 2).all()), "wrong device or values")


CHECKS = [
    other_device, by_turns, two_threads, stream_of_its_device, foreign_stream, two_in_one, tensor_maps, graph, fault, verb,
    cupy_device, jax_device,
]  # fmt: skip
