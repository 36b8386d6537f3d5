"""Run a kernel on the GPU with the arguments the simulator takes: numpy arrays in place, numbers, tensor maps."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.launch.driver import Driver, driver
from warpsmith.simulator.arguments import Pointer
from warpsmith.simulator.tensormap import TensorMap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Prepared", "prepare"]


@final
@dataclass(slots=True)
class Prepared:
    """A kernel loaded with its arrays on the device."""

    driver: Driver
    launch: Callable[[], None]
    arrays: list[tuple[Any, int]]
    """(host array, device address)"""

    def run(self, wait: Callable[[], None] | None = None) -> None:
        """Launch once, wait (with `wait`, which returns when the GPU is done), and copy every array back in place."""
        self.launch()
        (wait or self.driver.synchronize)()
        for array, address in self.arrays:
            data = self.driver.download(address, array.nbytes)
            array[...] = np.frombuffer(data, array.dtype).reshape(array.shape)

    def free(self) -> None:
        """Free the device memory."""
        for _, address in self.arrays:
            self.driver.free(address)


def prepare(
    cubin: bytes,
    kernel: str,
    *,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence[object],
    cluster: Sequence[int] = (1, 1, 1),
    dynamic_shared: int = 0,
) -> Prepared:
    """Load the cubin and put every argument where the kernel expects it.

    `args` are numpy arrays (each copied to the device once, however often it occurs), `ptr(array, offset)`, Python ints (64
    bits), numpy scalars (of their own width), bytes, `TensorMap`s, and tuples of these but ints: structures laid out as C's.
    """
    gpu = driver()
    function = gpu.load(cubin, kernel)
    arrays = _Arrays(gpu)
    packed = [_packed(value, arrays) for value in args]

    def launch() -> None:
        function.launch(grid, block, packed, shared=dynamic_shared, cluster=cluster)

    return Prepared(gpu, launch, arrays.placed)


@final
class _Arrays:
    """The arrays among the arguments, each copied to the device once."""

    def __init__(self, gpu: Driver) -> None:
        self.gpu = gpu
        self.placed: list[tuple[Any, int]] = []

    def address(self, array: Any) -> int:
        """Return where `array` lies on the device."""
        for known, address in self.placed:
            if known.ctypes.data == array.ctypes.data:
                return address
        address = self.gpu.allocate(array.nbytes)
        self.gpu.upload(address, array.tobytes())
        self.placed.append((array, address))
        return address


def _packed(value: object, arrays: _Arrays) -> bytes:
    """Return an argument as the kernel reads it."""
    if isinstance(value, tuple):
        return _member(cast("tuple[object, ...]", value), arrays)[0]
    if isinstance(value, TensorMap):
        return value.encode(arrays.address(value.memory))
    if isinstance(value, Pointer):
        return struct.pack("<Q", arrays.address(value.array) + value.offset)
    if isinstance(value, np.ndarray):
        return struct.pack("<Q", arrays.address(value))
    if isinstance(value, np.generic):
        return value.tobytes()
    if isinstance(value, bytes):
        return value
    if isinstance(value, int):
        return struct.pack("<q" if value < 0 else "<Q", value)
    raise InputError(f"gpu run: an argument of type {type(value).__name__}; give numpy arrays, numbers, bytes or TensorMap")


def _member(value: object, arrays: _Arrays) -> tuple[bytes, int]:
    """Return a member of a structure, or a structure, and its alignment."""
    if isinstance(value, tuple):
        data, largest = b"", 1
        for one in cast("tuple[object, ...]", value):
            piece, align = _member(one, arrays)
            data = data.ljust(-(-len(data) // align) * align, b"\0") + piece
            largest = max(largest, align)
        return data.ljust(-(-len(data) // largest) * largest, b"\0"), largest
    if isinstance(value, int):
        raise InputError("gpu run: an int has no width in a structure; write np.int32(3) or bytes")
    align = 64 if isinstance(value, TensorMap) else 1 if isinstance(value, bytes) else 8
    return _packed(value, arrays), value.dtype.alignment if isinstance(value, np.generic) else align
