"""A CUDA driver that records what it is asked, for tests of the launch path without a GPU; and arrays "on" its GPU."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from warpsmith.base.tensormap import TensorMapFields
from warpsmith.base.tensormap_bits import encode
from warpsmith.launch.binding import DriverError, LaunchShape

ATTRIBUTES = {75: 9, 76: 0, 97: 232448, 16: 132}
FUNCTION = {0: 1024, 1: 0, 3: 0, 4: 32}


class Config:
    def __init__(self, shape: LaunchShape) -> None:
        self.shape, self.stream = shape, 0


class RecordingDriver:
    """`sizes`: bytes of each parameter, by kernel name; `status`: what launches return; `fail`: call -> CUresult."""

    def __init__(self, devices: int = 1) -> None:
        self.devices = devices
        self.calls: list[tuple[Any, ...]] = []
        self.launches: list[dict[str, Any]] = []
        self.sizes: dict[str, list[int]] = {}
        self.status: list[int] = []
        self.fail: dict[str, int] = {}
        self.context = 0
        self.holder = 0
        """The device that holds every address."""
        self.functions: dict[int, str] = {}
        self.attributes = dict(ATTRIBUTES)
        self.function_attributes = dict(FUNCTION)
        self.memory: dict[int, Any] = {}
        self.kernel: Any = None
        """Called with the launch's arguments: what the kernel does on this GPU, whose memory is the host's."""

    def _note(self, *call: Any) -> None:
        self.calls.append(call)
        if call[0] in self.fail:
            raise self.failure(call[0], self.fail[call[0]])

    def device_count(self) -> int:
        return self.devices

    def driver_version(self) -> int:
        return 13000

    def device_attribute(self, device: int, attribute: int) -> int:
        return self.attributes[attribute]

    def device_name(self, device: int) -> str:
        return "NVIDIA H200"

    def device_of(self, address: int) -> int:
        return self.holder

    def retain_primary(self, device: int) -> int:
        return 1000 + device

    def current_context(self) -> int:
        return self.context

    def set_context(self, context: int) -> None:
        self._note("set_context", context)
        self.context = context

    def load_module(self, image: bytes) -> int:
        self._note("load_module", len(image), self.context)
        return 7 + len(self.calls)

    def get_function(self, module: int, name: str) -> int:
        self._note("get_function", name)
        handle = 5000 + len(self.functions)
        self.functions[handle] = name
        return handle

    def get_global(self, module: int, name: str) -> tuple[int, int]:
        raise self.failure("get_global", 500)

    def function_attribute(self, function: int, attribute: int) -> int:
        return self.function_attributes[attribute]

    def set_function_attribute(self, function: int, attribute: int, value: int) -> None:
        self._note("set_function_attribute", attribute, value)

    def parameter(self, function: int, index: int) -> tuple[int, int] | None:
        sizes = self.sizes[self.functions[function]]
        return (8 * index, sizes[index]) if index < len(sizes) else None

    def encode_tensor_map(self, fields: TensorMapFields) -> bytes:
        self._note("encode_tensor_map", fields)
        return encode(fields)

    def config(self, shape: LaunchShape) -> Config:
        self._note("config", shape)
        return Config(shape)

    def set_stream(self, config: Config, stream: int) -> None:
        config.stream = stream

    def launchable(self, function: int) -> int:
        return function

    def launch(self, config: Config, function: int, parameters: int, extra: int) -> tuple[int]:
        return (self._launch(config, function, parameters),)

    def _launch(self, config: Config, function: int, parameters: int) -> int:
        if self.context == 0:
            return 201
        name = self.functions[function]
        sizes = self.sizes[name]
        table = (ctypes.c_void_p * max(1, len(sizes))).from_address(parameters)
        arguments = [ctypes.string_at(table[i] or 0, n) for i, n in enumerate(sizes)]
        if status := (self.status.pop(0) if self.status else 0):
            return status
        self.launches.append(
            {"name": name, "shape": config.shape, "stream": config.stream, "context": self.context, "arguments": arguments,
             "aligned": all((table[i] or 0) % 64 == 0 for i, n in enumerate(sizes) if n == 128)}
        )  # fmt: skip
        if self.kernel is not None:
            self.kernel(*arguments)
        return 0

    def failure(self, call: str, code: int) -> DriverError:
        return DriverError(call, code, f"CUDA_ERROR_{code}", f"text of {code}")

    def allocate(self, size: int) -> int:
        self._note("allocate", size)
        block = ctypes.create_string_buffer(max(1, size))
        self.memory[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    def free(self, address: int) -> None:
        del self.memory[address]

    def upload(self, address: int, data: bytes) -> None:
        ctypes.memmove(address, data, len(data))

    def download(self, address: int, size: int) -> bytes:
        return ctypes.string_at(address, size)

    def synchronize(self) -> None:
        self._note("synchronize")

    def wait_for_stream(self, waiting: int, other: int) -> None:
        self._note("wait_for_stream", waiting, other)


class GpuArray:
    """An array that says it is on a GPU, by `__cuda_array_interface__`."""

    def __init__(self, array: Any, *, stream: int | None = None, address: int | None = None, device: int = 0) -> None:
        self.array, self.stream, self.device = array, stream, device
        self.address = array.ctypes.data if address is None else address

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        a = self.array
        out = {"shape": a.shape, "typestr": a.dtype.str, "data": (self.address, False), "version": 3}
        out["strides"] = None if a.flags.c_contiguous else a.strides
        return out if self.stream is None else out | {"stream": self.stream}

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device


def gpu(shape: tuple[int, ...], dtype: Any = np.float32, **options: Any) -> GpuArray:
    return GpuArray(np.zeros(shape, dtype), **options)


def cubin_header(number: int = 90) -> bytes:
    """Return the header of a cubin for `sm_<number>`: all that the launch path reads of one."""
    data = bytearray(64)
    data[:5], data[7] = b"\x7fELF\x02", 0x41
    data[18] = 190
    data[49] = number
    return bytes(data)
