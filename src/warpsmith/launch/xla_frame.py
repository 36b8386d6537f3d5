"""What XLA gives a foreign function: the call frame of its C interface (xla/ffi/api/c_api.h, version 0.1 and later).

The structures have only grown at their ends since version 0.1; `read_frame` refuses a frame that is smaller. Offsets in bytes:

    XLA_FFI_CallFrame   0 struct_size   8 extension   16 api   24 context   32 stage
                        40 arguments: +16 count, +32 pointers   80 results: +16 count, +32 pointers   120 attributes
    XLA_FFI_Buffer      16 element type   24 data   32 rank   40 extents
    XLA_FFI_Api         16 version: +16 major, +20 minor   40 internal   48 functions, in the order of the header
"""

from __future__ import annotations

import ctypes
from ctypes import c_int, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache
from typing import Any, final

from warpsmith.base.errors import CapabilityError

__all__ = ["COMMAND_BUFFER", "Frame", "make_error", "read_frame"]

COMMAND_BUFFER = 1
"""XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE: XLA may record what the handler does in a stream, and replay it."""

_WORDS: Any = (c_uint64 * (1 << 57)).from_address(0)
"""All of memory by words: the quickest way to read one, a third of the time that `from_address` takes."""
_SMALLEST = 160
_DATA = 24
_FUNCTIONS = 48
_ERROR_CREATE, _STREAM_GET, _DEVICE_ORDINAL_GET = 0, 4, 17
"""Places of functions in XLA_FFI_Api."""
_METADATA = 1  # XLA_FFI_Extension_Metadata
_INTERNAL = 13  # XLA_FFI_Error_Code_INTERNAL
_FUNCTION = ctypes.PYFUNCTYPE(c_void_p, c_void_p)
"""The functions called do not wait, so they are called without releasing the interpreter."""


class _Version(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("extension", c_void_p), ("major", c_int), ("minor", c_int)]


class _Extension(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", c_void_p)]


class _Metadata(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("version", _Version), ("traits", c_uint32)]


class _ErrorArguments(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("extension", c_void_p), ("message", ctypes.c_char_p), ("code", c_int)]


_asked: list[tuple[Any, int]] = []
"""Arguments of XLA_FFI_Stream_Get and XLA_FFI_DeviceOrdinal_Get that no call uses: size, extension, context, result."""


def _arguments() -> tuple[Any, int]:
    words = (c_uint64 * 4)(32)
    return words, ctypes.addressof(words)


@cache
def _function(api: int, place: int) -> Any:
    """Return a function of XLA's interface, None where this version has none."""
    end = _FUNCTIONS + 8 * (place + 1)
    if c_size_t.from_address(api).value < end or not (found := c_void_p.from_address(api + end - 8).value):
        return None
    return _FUNCTION(found)


@final
class Frame:
    """A call: the addresses of its arguments and results, and where it runs."""

    __slots__ = ("_api", "_context", "addresses")

    def __init__(self, api: int, context: int, addresses: list[int]) -> None:
        self._api, self._context, self.addresses = api, context, addresses

    def _ask(self, place: int) -> int:
        function = _function(self._api, place)
        try:
            words, address = _asked.pop()
        except IndexError:
            words, address = _arguments()
        words[2], words[3] = self._context, 0
        if function is None or function(address):
            raise CapabilityError("XLA tells a foreign function no stream or device here; install a newer jax")
        result: int = words[3]
        _asked.append((words, address))
        return result

    def stream(self) -> int:
        """Return the stream to launch in."""
        return self._ask(_STREAM_GET)

    def device(self) -> int:
        """Return the number of the device."""
        return self._ask(_DEVICE_ORDINAL_GET) & 0xFFFFFFFF


def read_frame(address: int, traits: int = 0) -> Frame | None:
    """Read a call frame; None for XLA's question which version a handler speaks and its traits, which is answered."""
    at = address >> 3
    if _WORDS[at] < _SMALLEST:
        raise CapabilityError(f"XLA's call frame has {_WORDS[at]} bytes, fewer than version 0.1 has; install a newer jax")
    extension, api, context = _WORDS[at + 1], _WORDS[at + 2], _WORDS[at + 3]
    if extension and _answer(extension, api, traits):
        return None
    buffers: list[int] = []
    for count, pointers in ((_WORDS[at + 7], _WORDS[at + 9] >> 3), (_WORDS[at + 12], _WORDS[at + 14] >> 3)):
        buffers += _WORDS[pointers : pointers + count]
    return Frame(api, context, [_WORDS[(b + _DATA) >> 3] for b in buffers if b])


def _answer(address: int, api: int, traits: int) -> bool:
    """Answer the metadata question: our version is XLA's own."""
    extension = _Extension.from_address(address)
    if extension.type != _METADATA:
        return False
    metadata = _Metadata.from_address(extension.metadata)
    version = _Version.from_address(api + 16) if api else None
    metadata.version.major = version.major if version else 0
    metadata.version.minor = version.minor if version else 1
    metadata.traits = traits
    return True


def make_error(address: int, message: str) -> int:
    """Return an XLA_FFI_Error with this message."""
    api = c_size_t.from_address(address + 16).value
    data = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, message.encode(), _INTERNAL)
    return _function(api, _ERROR_CREATE)(ctypes.addressof(data)) or 0
