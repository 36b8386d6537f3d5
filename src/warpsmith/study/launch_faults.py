"""Kernels that are broken, on the GPU and on the simulator: what each says. Every launch is in a child process."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np

from warpsmith.study import launch_kernels

__all__ = ["CHECKS"]

_CHILD = """
import sys, torch
from warpsmith.launch.context import context
from warpsmith.launch.faults import synchronize
from warpsmith.study import launch_kernels
a = torch.ones({size}, device="cuda")
buffer = torch.full((1024,), -1.0, device="cuda")
c = buffer[:{size}]
k = launch_kernels.{name}
try:
    k(a, c)
    if {wait}:
        synchronize(context(0))
        print("the driver reports nothing; written:", int((buffer != -1).sum()), "elements of", {size})
    for _ in range(2):
        k(a, c)
        synchronize(context(0))
except Exception as error:
    print(type(error).__name__, error)
    try:
        k(a, c)
    except Exception as second:
        print("-- the next launch:", type(second).__name__, str(second).splitlines()[0])
sys.stdout.flush()
import os
os._exit(0)
"""


def _on_gpu(name: str, size: int, seconds: float = 60) -> str:
    code = _CHILD.format(name=name, size=size, wait=True)
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer after {seconds:g} s; the process was ended"
    return done.stdout.strip() or done.stderr.strip()[-800:]


def _on_simulator(name: str, size: int) -> str:
    kernel: Any = getattr(launch_kernels, name)
    result = kernel.simulate(np.ones(size, np.float32))
    return "\n".join(str(f) for f in result.findings[:1])


def _both(name: str, size: int, words: str, seconds: float = 60) -> str:
    gpu, simulator = _on_gpu(name, size, seconds), _on_simulator(name, size)
    shown = f"\n     simulator: {simulator}\n     GPU: {gpu}".replace("\n", "\n     ")
    assert simulator, "the simulator found nothing"
    assert words in gpu, shown
    return shown


def outside() -> str:
    """A store far outside every allocation."""
    return _both("outside", 256, "(700)")


def misaligned() -> str:
    """A store at an odd address."""
    return _both("misaligned", 256, "(716)")


def unguarded() -> str:
    """A missing bounds check: the GPU overwrites the neighbour and says nothing."""
    return _both("unguarded", 200, "the driver reports nothing; written: 256")


def hang() -> str:
    """A barrier that expects one arrival too many."""
    return _both("hang", 128, "no answer", 12)


CHECKS = [outside, misaligned, unguarded, hang]
