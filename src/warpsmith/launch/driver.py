"""The CUDA driver API, as much of it as loading and launching cubins needs (CUDA Driver API manual, chapters 6.10 to 6.20).

Bound with ctypes, so that a machine with nothing but the driver can run a cubin.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import cache
from typing import TYPE_CHECKING

from warpsmith.base.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Driver", "Function", "driver"]

_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_NON_PORTABLE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_NOT_READY = 600  # CUDA_ERROR_NOT_READY
_CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION


class _Attribute(ctypes.Structure):
    _fields_ = [("id", c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16)]


class _Config(ctypes.Structure):
    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", c_uint),
    ]


class Function:
    """A kernel of a loaded cubin."""

    def __init__(self, owner: Driver, handle: c_void_p, name: str) -> None:
        self._owner, self._handle, self.name = owner, handle, name
        self._shared = 0

    def launch(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[bytes],
        *,
        shared: int = 0,
        cluster: Sequence[int] = (1, 1, 1),
        stream: int = 0,
    ) -> None:
        """Launch; `arguments` are the parameters' bytes in order, `shared` the bytes of dynamic shared memory."""
        driver = self._owner
        if shared > self._shared:
            driver.call("cuFuncSetAttribute", self._handle, c_int(_MAX_DYNAMIC_SHARED), c_int(shared))
            self._shared = shared
        # the driver reads 64-byte aligned tensor maps through these pointers, so each argument gets an aligned buffer
        buffers, pointers = [], (c_void_p * max(1, len(arguments)))()
        for i, data in enumerate(arguments):
            raw = ctypes.create_string_buffer(len(data) + 64)
            start = (ctypes.addressof(raw) + 63) // 64 * 64
            ctypes.memmove(start, data, len(data))
            buffers.append(raw)
            pointers[i] = start
        attribute = _Attribute(_CLUSTER_DIMENSION)
        attribute.value[0:3] = list(cluster)
        clustered = tuple(cluster) != (1, 1, 1)
        config = _Config((c_uint * 3)(*grid), (c_uint * 3)(*block), shared, stream, ctypes.pointer(attribute), int(clustered))
        if clustered and cluster[0] * cluster[1] * cluster[2] > 8:
            driver.call("cuFuncSetAttribute", self._handle, c_int(_NON_PORTABLE_CLUSTER), c_int(1))
        driver.call("cuLaunchKernelEx", byref(config), self._handle, pointers, None)


class Driver:
    """The driver with the primary context of device 0 current; every call checks its result."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise ToolError(f"no CUDA driver: {error}; run on a machine with an NVIDIA GPU, or simulate") from None
        self.call("cuInit", c_uint(0))
        device, context = c_int(), c_void_p()
        self.call("cuDeviceGet", byref(device), c_int(0))
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.device = device.value

    def call(self, name: str, *arguments: object) -> None:
        """Call a driver function; raise `ToolError` with the driver's own name and text of the error."""
        self._check(name, getattr(self._library, name)(*arguments))

    def _check(self, name: str, status: int) -> None:
        if status:
            label, text = c_char_p(), c_char_p()
            self._library.cuGetErrorName(status, byref(label))
            self._library.cuGetErrorString(status, byref(text))
            known = (label.value or b"unknown").decode(), (text.value or b"").decode()
            raise ToolError(f"{name} failed: {known[0]} ({status}): {known[1]}")

    def attribute(self, number: int) -> int:
        """Return a CUdevice_attribute."""
        value = c_int()
        self.call("cuDeviceGetAttribute", byref(value), c_int(number), c_int(self.device))
        return value.value

    @property
    def arch(self) -> str:
        """Architecture of the device, e.g. `sm_90`."""
        return f"sm_{self.attribute(75) * 10 + self.attribute(76)}"

    @property
    def name(self) -> str:
        """Name of the device, e.g. `NVIDIA H200`."""
        text = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", text, c_int(128), c_int(self.device))
        return text.value.decode()

    @property
    def version(self) -> str:
        """CUDA version of the driver, e.g. `13.0`."""
        value = c_int()
        self.call("cuDriverGetVersion", byref(value))
        return f"{value.value // 1000}.{value.value % 1000 // 10}"

    def load(self, cubin: bytes, name: str) -> Function:
        """Load a cubin and return one of its kernels."""
        return self.load_kernels(cubin, [name])[0]

    def load_kernels(self, cubin: bytes, names: Sequence[str]) -> list[Function]:
        """Load a cubin once and return several of its kernels."""
        module = c_void_p()
        self.call("cuModuleLoadData", byref(module), cubin)
        found: list[Function] = []
        for name in names:
            handle = c_void_p()
            self.call("cuModuleGetFunction", byref(handle), module, name.encode())
            found.append(Function(self, handle, name))
        return found

    def allocate(self, size: int) -> int:
        """Return the address of `size` fresh bytes of device memory."""
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(max(1, size)))
        return address.value

    def free(self, address: int) -> None:
        """Free what `allocate` returned."""
        self.call("cuMemFree_v2", c_uint64(address))

    def upload(self, address: int, data: bytes) -> None:
        """Copy bytes to the device."""
        self.call("cuMemcpyHtoD_v2", c_uint64(address), data, c_size_t(len(data)))

    def download(self, address: int, size: int) -> bytes:
        """Copy bytes from the device."""
        out = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", out, c_uint64(address), c_size_t(size))
        return out.raw

    def synchronize(self) -> None:
        """Wait for the device; an asynchronous fault surfaces here."""
        self.call("cuCtxSynchronize")

    def busy(self, stream: int = 0) -> bool:
        """Say whether work of a stream has not ended, without waiting; an asynchronous fault surfaces here too."""
        status: int = self._library.cuStreamQuery(c_void_p(stream))
        if status == _NOT_READY:
            return True
        self._check("cuStreamQuery", status)
        return False

    def stream(self) -> int:
        """Return a fresh stream that does not wait for stream 0, nor that for it."""
        handle = c_void_p()
        self.call("cuStreamCreate", byref(handle), c_uint(_NON_BLOCKING))
        return handle.value or 0

    def time(self, action: object, *, repeat: int = 20, warm: int = 3, stream: int = 0) -> list[float]:
        """Return microseconds of each of `repeat` calls of `action`, by events."""
        assert callable(action)
        for _ in range(warm):
            action()
        events = []
        for _ in range(2 * repeat):
            event = c_void_p()
            self.call("cuEventCreate", byref(event), c_uint(0))
            events.append(event)
        for i in range(repeat):
            self.call("cuEventRecord", events[2 * i], c_void_p(stream))
            action()
            self.call("cuEventRecord", events[2 * i + 1], c_void_p(stream))
        self.synchronize()
        out = []
        for i in range(repeat):
            elapsed = ctypes.c_float()
            self.call("cuEventElapsedTime", byref(elapsed), events[2 * i], events[2 * i + 1])
            out.append(elapsed.value * 1000)
        return out


@cache
def driver() -> Driver:
    """Return the process's driver."""
    return Driver()
