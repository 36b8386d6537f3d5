"""tests/data/cuda/devices.cu: kernels of cub's device-wide algorithms, launched as cub's host functions do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from programs.program import Collection, Judge, Launch
from ptx_corpus import sample

program = Collection("nvcc", "devices", ("sm_80", "sm_90", "sm_120"))
PROGRAMS = program.programs
EMPTY = b"\0"  # a function object without members


def _kernel(arch: str, part: str) -> str:
    """The first entry whose mangled name has this part."""
    return next(f.name for f in sample(f"nvcc/devices.{arch}").functions() if f.kind == "entry" and part in f.name)


def _for(arch: str, block: int, tile: int) -> None:
    """Programs of one architecture: cub tunes threads of a block and items of a tile for each."""

    @program(f"DeviceReduce.{arch}", archs=(arch,))
    def reduce_all(rng: np.random.Generator) -> Judge:
        x, out = rng.integers(-1000, 1000, 5000).astype(np.int32), np.zeros(1, np.int32)
        kernel = _kernel(arch, "DeviceReduceSingleTileKernel")
        yield Launch([x, out, 5000, EMPTY, 100, EMPTY], kernel, block=256)
        assert out[0] == x.sum() + 100

    @program(f"DeviceScan.{arch}", archs=(arch,), slow=True)
    def scan(rng: np.random.Generator) -> Judge:
        tiles = 3
        n = tile * tiles - 123
        x, out, state = rng.integers(-1000, 1000, n).astype(np.int32), np.zeros(n, np.int32), np.zeros(32 + tiles, np.uint64)
        yield Launch([(state,), tiles], _kernel(arch, "DeviceScanInitKernel"), block=128)
        initial = (np.uint8(0), np.int64(7))
        yield Launch([x, out, (state,), 0, EMPTY, initial, n], _kernel(arch, "DeviceScanKernel"), grid=tiles, block=block)
        assert np.array_equal(out, np.cumsum(x) - x + 7)

    reduce_all.__doc__ = "cub::DeviceReduce::Sum by one block"
    scan.__doc__ = "cub::DeviceScan::ExclusiveSum: tiles that look back at the sums of those before"
    PROGRAMS[-2:] = [replace(PROGRAMS[-2], body=reduce_all), replace(PROGRAMS[-1], body=scan)]


_for("sm_80", 320, 3840)
_for("sm_90", 128, 3072)
_for("sm_120", 384, 8448)
