"""Arguments on the GPU are packed as on the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsmith.base.errors import InputError
from warpsmith.hardware import gpu_run
from warpsmith.simulator.arguments import ptr
from warpsmith.simulator.tensormap import TensorMap

FIRST = 0x7F00_0000_0000


class Gpu:
    """A driver whose memory is addresses alone, 4 KiB apart."""

    def __init__(self) -> None:
        self.taken, self.launched = 0, []

    def load(self, cubin: bytes, kernel: str) -> Any:
        del cubin, kernel
        return self

    def launch(self, grid: Any, block: Any, packed: list[bytes], *, shared: int, cluster: Any) -> None:
        del grid, block, shared, cluster
        self.launched = packed

    def allocate(self, size: int) -> int:
        del size
        self.taken += 1
        return FIRST + 4096 * (self.taken - 1)

    def upload(self, address: int, data: bytes) -> None:
        del address, data


def packed(monkeypatch: pytest.MonkeyPatch, *args: object) -> list[bytes]:
    gpu = Gpu()
    monkeypatch.setattr(gpu_run, "driver", lambda: gpu)
    gpu_run.prepare(b"", "k", grid=(1,), block=(32,), args=args).launch()
    return gpu.launched


def test_structures(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.zeros(64, np.float32), np.zeros((8, 64), np.float16)
    tile = TensorMap(b, box=(8, 64))
    first, second = packed(monkeypatch, (np.int32(1), a, b"xyz", (np.int16(2),), ptr(a, 3)), (b"\1" * 8, tile, a))
    address = (FIRST).to_bytes(8, "little")
    assert first == b"\1\0\0\0" + bytes(4) + address + b"xyz\0\2\0" + bytes(2) + (FIRST + 12).to_bytes(8, "little")
    assert second == b"\1" * 8 + bytes(56) + tile.encode(FIRST + 4096) + address + bytes(56)


def test_an_int_in_a_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"^gpu run: an int has no width in a structure; write np.int32\(3\) or bytes$"):
        packed(monkeypatch, (np.int32(1), 2))
