"""The CUDA driver through the package cuda-bindings (CUDA Driver API manual, chapters 6.1 to 6.29)."""

# The package is optional, and its types with it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

from typing import Any, final

from cuda.bindings import driver as cu

from warpsmith.base.errors import InputError, ToolError
from warpsmith.base.tensormap import ELEMENTS, INTERLEAVES, L2_PROMOTIONS, SWIZZLES, TensorMapFields
from warpsmith.launch.binding import DriverError, LaunchShape

__all__ = ["CudaDriver", "open_driver"]

_DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_NO_TIMING = 2  # CU_EVENT_DISABLE_TIMING


def open_driver() -> CudaDriver:
    """Return the driver, initialised; raise `ToolError` where there is no driver or no GPU."""
    try:
        code = int(cu.cuInit(0)[0])
    except Exception as error:  # the package has its own exception for a library that is missing
        raise ToolError(f"no CUDA driver: {error} Run on a machine with an NVIDIA GPU, or simulate") from None
    found = CudaDriver()
    if code:
        raise ToolError(f"no CUDA device: {found.failure('cuInit', code)}; run on a machine with an NVIDIA GPU, or simulate")
    return found


def _call(name: str, *arguments: Any) -> Any:
    code, *rest = getattr(cu, name)(*arguments)
    if code:
        raise _failure(name, int(code))
    return rest[0] if len(rest) == 1 else tuple(rest)


def _failure(call: str, code: int) -> DriverError:
    try:
        value = cu.CUresult(code)
        label, text = cu.cuGetErrorName(value)[1], cu.cuGetErrorString(value)[1]
    except (ValueError, RuntimeError):
        label, text = b"unknown", b""
    return DriverError(call, code, (label or b"unknown").decode(), (text or b"").decode())


@final
class CudaDriver:
    """`binding.Driver` over cuda-bindings."""

    failure = staticmethod(_failure)

    def device_count(self) -> int:
        """Return the number of devices."""
        return int(_call("cuDeviceGetCount"))

    def driver_version(self) -> int:
        """Return e.g. 13000."""
        return int(_call("cuDriverGetVersion"))

    def device_attribute(self, device: int, attribute: int) -> int:
        """Return a CUdevice_attribute."""
        return int(_call("cuDeviceGetAttribute", cu.CUdevice_attribute(attribute), _call("cuDeviceGet", device)))

    def device_name(self, device: int) -> str:
        """Return the device's name."""
        return _call("cuDeviceGetName", 128, _call("cuDeviceGet", device)).split(b"\0")[0].decode()

    def device_of(self, address: int) -> int:
        """Return the device that holds an address."""
        return int(_call("cuPointerGetAttribute", cu.CUpointer_attribute(_DEVICE_ORDINAL), address))

    def retain_primary(self, device: int) -> int:
        """Return the primary context."""
        return int(_call("cuDevicePrimaryCtxRetain", _call("cuDeviceGet", device)))

    def current_context(self) -> int:
        """Return the calling thread's context."""
        return int(cu.cuCtxGetCurrent()[1])

    def set_context(self, context: int) -> None:
        """Set the calling thread's context."""
        _call("cuCtxSetCurrent", cu.CUcontext(context))

    def load_module(self, image: bytes) -> int:
        """Load a cubin. Loading is no work of a stream, so a capture in global mode need not forbid it."""
        before = _call("cuThreadExchangeStreamCaptureMode", cu.CUstreamCaptureMode(_RELAXED))
        try:
            return int(_call("cuModuleLoadData", image))
        finally:
            _call("cuThreadExchangeStreamCaptureMode", before)

    def get_function(self, module: int, name: str) -> int:
        """Return a kernel."""
        return int(_call("cuModuleGetFunction", cu.CUmodule(module), name.encode()))

    def get_global(self, module: int, name: str) -> tuple[int, int]:
        """Return address and bytes of a variable."""
        address, size = _call("cuModuleGetGlobal", cu.CUmodule(module), name.encode())
        return int(address), int(size)

    def function_attribute(self, function: int, attribute: int) -> int:
        """Return an attribute of a kernel."""
        return int(_call("cuFuncGetAttribute", cu.CUfunction_attribute(attribute), cu.CUfunction(function)))

    def set_function_attribute(self, function: int, attribute: int, value: int) -> None:
        """Set an attribute of a kernel."""
        _call("cuFuncSetAttribute", cu.CUfunction(function), cu.CUfunction_attribute(attribute), value)

    def parameter(self, function: int, index: int) -> tuple[int, int] | None:
        """Return (offset, bytes) of a parameter; past the last the driver says 'invalid value'."""
        code, *rest = cu.cuFuncGetParamInfo(cu.CUfunction(function), index)
        if int(code) == 1:
            return None
        if code:
            raise _failure("cuFuncGetParamInfo", int(code))
        return int(rest[0]), int(rest[1])

    def encode_tensor_map(self, fields: TensorMapFields) -> bytes:
        """Encode by the driver's own function for the mode."""
        f = fields
        common: tuple[Any, ...] = (
            cu.CUtensorMapDataType(list(ELEMENTS).index(f.element)), f.rank, f.address,
            [cu.cuuint64_t(d) for d in f.dims], [cu.cuuint64_t(s) for s in f.strides],
        )  # fmt: skip
        strides = [cu.cuuint32_t(s) for s in f.element_strides]
        interleave = cu.CUtensorMapInterleave(INTERLEAVES.index(f.interleave))
        tail: tuple[Any, ...] = (
            cu.CUtensorMapSwizzle(SWIZZLES.index(f.swizzle)), cu.CUtensorMapL2promotion(L2_PROMOTIONS.index(f.l2)),
            cu.CUtensorMapFloatOOBfill(int(f.nan_fill)),
        )  # fmt: skip
        if f.mode == "tiled":
            made = _call("cuTensorMapEncodeTiled", *common, [cu.cuuint32_t(b) for b in f.box], strides, interleave, *tail)
        elif f.mode == "im2col":
            corners = list(f.lower), list(f.upper)
            made = _call("cuTensorMapEncodeIm2col", *common, *corners, f.channels, f.pixels, strides, interleave, *tail)
        elif f.mode in ("im2col_w", "im2col_w128"):
            mode = cu.CUtensorMapIm2ColWideMode(int(f.mode == "im2col_w128"))
            made = _call(
                "cuTensorMapEncodeIm2colWide", *common, f.lower[0], f.upper[0], f.channels, f.pixels, strides, interleave, mode,
                *tail,
            )  # fmt: skip
        else:
            raise InputError(f"tensor map: no mode {f.mode!r}")
        return b"".join(int(word).to_bytes(8, "little") for word in made.opaque)

    def config(self, shape: LaunchShape) -> Any:
        """Return a CUlaunchConfig."""
        config = cu.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = shape.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = shape.block
        config.sharedMemBytes = shape.dynamic_shared
        attributes = list(_attributes(shape))
        config.attrs = attributes
        config.numAttrs = len(attributes)
        config.hStream = 0
        return config

    def set_stream(self, config: Any, stream: int) -> None:
        """Set the stream."""
        config.hStream = stream

    def launchable(self, function: int) -> Any:
        """Return the object that spares cuda-bindings a conversion."""
        return cu.CUfunction(function)

    launch = staticmethod(cu.cuLaunchKernelEx)

    def allocate(self, size: int) -> int:
        """Allocate device memory."""
        return int(_call("cuMemAlloc", max(1, size)))

    def free(self, address: int) -> None:
        """Free device memory."""
        _call("cuMemFree", address)

    def upload(self, address: int, data: bytes) -> None:
        """Copy to the device."""
        if data:
            _call("cuMemcpyHtoD", address, data, len(data))

    def download(self, address: int, size: int) -> bytes:
        """Copy from the device."""
        out = bytearray(size)
        if size:
            _call("cuMemcpyDtoH", out, address, size)
        return bytes(out)

    def synchronize(self) -> None:
        """Wait for the current context."""
        _call("cuCtxSynchronize")

    def wait_for_stream(self, waiting: int, other: int) -> None:
        """Record an event in `other`, wait for it in `waiting`."""
        event = _call("cuEventCreate", _NO_TIMING)
        try:
            _call("cuEventRecord", event, other)
            _call("cuStreamWaitEvent", waiting, event, 0)
        finally:
            _call("cuEventDestroy", event)


def _attributes(shape: LaunchShape) -> list[Any]:
    out: list[Any] = []

    def add(name: str) -> Any:
        attribute = cu.CUlaunchAttribute()
        attribute.id = getattr(cu.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
        out.append(attribute)
        return attribute

    if shape.cluster != (1, 1, 1):
        a = add("CLUSTER_DIMENSION")
        a.value.clusterDim.x, a.value.clusterDim.y, a.value.clusterDim.z = shape.cluster
    if shape.cooperative:
        add("COOPERATIVE").value.cooperative = 1
    if shape.programmatic:
        add("PROGRAMMATIC_STREAM_SERIALIZATION").value.programmaticStreamSerializationAllowed = 1
    return out
