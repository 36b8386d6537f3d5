"""What XLA gives a foreign function: the call frame of its C interface (xla/ffi/api/c_api.h, version 0.1 and later).

The layouts below have only grown at their ends since version 0.1; `read_frame` refuses a frame that is smaller.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_int, c_int64, c_size_t, c_uint32, c_void_p
from typing import NamedTuple, final

from warpsmith.base.errors import CapabilityError

__all__ = ["Buffer", "Frame", "answer_metadata", "make_error", "read_frame"]

_ERROR_CREATE, _STREAM_GET, _DEVICE_ORDINAL_GET = 0, 4, 17
"""Places of functions in XLA_FFI_Api."""
_METADATA, _SCALAR = 1, 3
_NAMES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64", 10: "float16",
    11: "float32", 12: "float64", 16: "bfloat16", 19: "float8_e5m2", 20: "float8_e4m3fn", 33: "float8_e8m0fnu",
}  # fmt: skip
"""XLA_FFI_DataType -> numpy's or ml_dtypes' name."""


class _Buffer(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("extension", c_void_p), ("dtype", c_int), ("data", c_void_p), ("rank", c_int64),
        ("dims", POINTER(c_int64)),
    ]  # fmt: skip


class _List(ctypes.Structure):
    """XLA_FFI_Args and XLA_FFI_Rets."""

    _fields_ = [
        ("struct_size", c_size_t), ("extension", c_void_p), ("size", c_int64), ("types", POINTER(c_int)),
        ("items", POINTER(c_void_p)),
    ]  # fmt: skip


class _Span(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class _Scalar(ctypes.Structure):
    _fields_ = [("dtype", c_int), ("value", c_void_p)]


class _Attributes(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("extension", c_void_p), ("size", c_int64), ("types", POINTER(c_int)),
        ("names", POINTER(POINTER(_Span))), ("items", POINTER(c_void_p)),
    ]  # fmt: skip


class _CallFrame(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("extension", c_void_p), ("api", c_void_p), ("context", c_void_p), ("stage", c_int),
        ("arguments", _List), ("results", _List), ("attributes", _Attributes),
    ]  # fmt: skip


class _Version(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("extension", c_void_p), ("major", c_int), ("minor", c_int)]


class _Api(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t), ("extension", c_void_p), ("version", _Version), ("internal", c_void_p),
        ("functions", c_void_p * 18),
    ]  # fmt: skip


class _Extension(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", c_void_p)]


class _Metadata(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("version", _Version), ("traits", c_uint32)]


class _ErrorArguments(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("extension", c_void_p), ("message", ctypes.c_char_p), ("code", c_int)]


class _ContextArguments(ctypes.Structure):
    """Arguments of XLA_FFI_Stream_Get and XLA_FFI_DeviceOrdinal_Get: the result stands last."""

    _fields_ = [("struct_size", c_size_t), ("extension", c_void_p), ("context", c_void_p), ("result", c_int64)]


_FUNCTION = ctypes.CFUNCTYPE(c_void_p, c_void_p)
_INTERNAL = 13  # XLA_FFI_Error_Code_INTERNAL


@final
class Buffer(NamedTuple):
    """An argument or a result."""

    address: int
    dtype: str
    shape: tuple[int, ...]


@final
class Frame(NamedTuple):
    """A call: arguments, results, the integer attributes, stream and device (0 where the platform has none)."""

    arguments: list[Buffer]
    results: list[Buffer]
    attributes: dict[str, int]
    stream: int
    device: int


def answer_metadata(address: int) -> bool:
    """Answer XLA's question which version a handler speaks; False if this frame is a call."""
    frame = _CallFrame.from_address(address)
    if not frame.extension:
        return False
    extension = _Extension.from_address(frame.extension)
    if extension.type != _METADATA:
        return False
    metadata = _Metadata.from_address(extension.metadata)
    version = _Api.from_address(frame.api).version if frame.api else None
    metadata.version.major = version.major if version else 0
    metadata.version.minor = version.minor if version else 1
    metadata.traits = 0
    return True


def _buffers(items: _List) -> list[Buffer]:
    out: list[Buffer] = []
    for i in range(items.size):
        b = _Buffer.from_address(items.items[i])
        if b.dtype not in _NAMES:
            raise CapabilityError(f"an array of XLA's element type {b.dtype}; kernels take {', '.join(_NAMES.values())}")
        out.append(Buffer(b.data or 0, _NAMES[b.dtype], tuple(b.dims[: b.rank])))
    return out


def _ask(api: _Api, place: int, context: int) -> int:
    if api.struct_size < _Api.functions.offset + 8 * (place + 1) or not api.functions[place]:
        return 0
    asked = _ContextArguments(ctypes.sizeof(_ContextArguments), None, context, 0)
    if _FUNCTION(api.functions[place])(ctypes.addressof(asked)):
        raise CapabilityError("XLA gives no stream to a foreign function on this platform")
    return asked.result


def read_frame(address: int, *, gpu: bool) -> Frame:
    """Read a call frame; raise `CapabilityError` for one of an older layout."""
    frame = _CallFrame.from_address(address)
    if frame.struct_size < ctypes.sizeof(_CallFrame):
        raise CapabilityError(
            f"XLA's call frame has {frame.struct_size} bytes, fewer than version 0.1 has; install a newer jax"
        )
    attributes: dict[str, int] = {}
    for i in range(frame.attributes.size):
        span = frame.attributes.names[i].contents
        if frame.attributes.types[i] == _SCALAR:
            scalar = _Scalar.from_address(frame.attributes.items[i])
            attributes[ctypes.string_at(span.data, span.size).decode()] = c_int64.from_address(scalar.value).value
    stream = device = 0
    if gpu:
        api = _Api.from_address(frame.api)
        stream = _ask(api, _STREAM_GET, frame.context)
        device = _ask(api, _DEVICE_ORDINAL_GET, frame.context) & 0xFFFFFFFF
    return Frame(_buffers(frame.arguments), _buffers(frame.results), attributes, stream, device)


def make_error(address: int, message: str) -> int:
    """Return an XLA_FFI_Error with this message."""
    api = _Api.from_address(_CallFrame.from_address(address).api)
    data = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, message.encode(), _INTERNAL)
    return _FUNCTION(api.functions[_ERROR_CREATE])(ctypes.addressof(data)) or 0
