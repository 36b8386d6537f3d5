"""GPU arrays of any library that offers `__cuda_array_interface__` (version 2 or 3) or DLPack, read without the library.

Their stream is the one the interface names (version 3); with DLPack the exporter is asked to make the data ready on the
legacy default stream. Neither makes the host wait.
"""

from __future__ import annotations

import ctypes
import re
from typing import TYPE_CHECKING, Any, final

from warpsmith.base.errors import InputError
from warpsmith.launch.arrays import ArrayFacts
from warpsmith.launch.binding import driver
from warpsmith.launch.context import context

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

__all__ = ["ARRAYS", "InterfaceArrays", "facts_of_interface"]

_CUDA, _CUDA_MANAGED = 2, 13  # kDLCUDA, kDLCUDAManaged
_KINDS = {"f": "float", "i": "int", "u": "uint"}
_DLPACK = {
    (0, 8): "int8",
    (1, 8): "uint8",
    (6, 8): "bool",
    (4, 16): "bfloat16",
    (10, 8): "float8_e4m3fn",
    (12, 8): "float8_e5m2",
}
"""(DLDataTypeCode, bits) -> name; the other integers and floats follow their bits."""
_DLPACK_KINDS = {0: "int", 1: "uint", 2: "float"}


class _Tensor(ctypes.Structure):
    """DLTensor (dlpack.h)."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _dense(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    out: list[int] = []
    step = itemsize
    for extent in reversed(shape):
        out.append(step)
        step *= extent
    return tuple(reversed(out))


def _name_of_typestr(text: str) -> tuple[str, int]:
    m = re.fullmatch(r"[<|=]([fiubV])(\d+)", text)
    if not m or m[1] == "V":
        raise InputError(f"an array whose __cuda_array_interface__ says typestr {text!r}; numbers in this machine's byte order")
    size = int(m[2])
    return ("bool" if m[1] == "b" else f"{_KINDS[m[1]]}{8 * size}"), size


def facts_of_interface(interface: dict[str, Any], device: int) -> ArrayFacts:
    """Describe an array by its `__cuda_array_interface__`; `device` is where its address lies."""
    if interface.get("mask") is not None:
        raise InputError("an array with a mask; pass the data alone")
    name, size = _name_of_typestr(interface["typestr"])
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    return ArrayFacts(
        name, size, shape, _dense(shape, size) if strides is None else tuple(strides), interface["data"][0], device
    )


def _facts_of_dlpack(value: Any) -> ArrayFacts:
    capsule = value.__dlpack__(stream=1)
    t = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
    name = _DLPACK.get((t.code, t.bits)) or f"{_DLPACK_KINDS.get(t.code, '?')}{t.bits}"
    if t.lanes != 1 or name[0] == "?" or t.bits % 8:
        raise InputError(f"a DLPack tensor of type code {t.code}, {t.bits} bits, {t.lanes} lanes; kernels take plain numbers")
    size = t.bits // 8
    shape = tuple(t.shape[: t.ndim])
    strides = tuple(s * size for s in t.strides[: t.ndim]) if t.strides else _dense(shape, size)
    return ArrayFacts(name, size, shape, strides, (t.data or 0) + t.byte_offset, t.device_id)


@final
class InterfaceArrays:
    """`Arrays` of libraries that have no adapter of their own."""

    name = "__cuda_array_interface__ or DLPack"

    functional = False

    def on_gpu(self, value: Any) -> bool:
        """Say whether the array is in a GPU's memory."""
        if hasattr(value, "__cuda_array_interface__"):
            return True
        return int(value.__dlpack_device__()[0]) in (_CUDA, _CUDA_MANAGED)

    def abstract(self, arrays: Sequence[Any]) -> bool:
        """Every array has data."""
        return False

    def recording(self, arrays: Sequence[Any]) -> bool:
        """There is no automatic differentiation."""
        return False

    def guard(self, arrays: Sequence[Any]) -> None:
        """There is no check but the key."""

    def facts(self, value: Any) -> ArrayFacts:
        """Describe one array."""
        if hasattr(value, "__cuda_array_interface__"):
            interface = value.__cuda_array_interface__
            known = hasattr(value, "__dlpack_device__")
            device = int(value.__dlpack_device__()[1]) if known else driver().device_of(interface["data"][0])
            return facts_of_interface(interface, device)
        return _facts_of_dlpack(value)

    def probe(self, arrays: Sequence[Any]) -> tuple[Hashable, list[int]]:
        """Return key and addresses."""
        facts = [self.facts(a) for a in arrays]
        return tuple((*f[:4], f.device, f.address & 15) for f in facts), [f.address for f in facts]

    def allocator(self, shape: tuple[int, ...], dtype: str, device: int, column_major: bool) -> Callable[[], Any]:
        """Refuse: there is no library to allocate with."""
        raise InputError(
            f"an output of shape {shape}: arrays known only by {self.name} cannot be allocated; pass the outputs too"
        )

    def address(self, value: Any) -> int:
        """Return an array's address."""
        return self.facts(value).address

    def stream(self, device: int, arrays: Sequence[Any]) -> int:
        """Return the stream that the arrays name, the legacy default stream (0) when they name none."""
        named = self._streams(arrays)
        if len(named) > 1:
            raise InputError(
                f"the arrays belong to different streams ({sorted(named)}); say with stream= which one to launch in"
            )
        return named.pop() if named else 0

    def wait(self, device: int, stream: int, arrays: Sequence[Any]) -> None:
        """Let `stream` wait for the streams that the arrays name, as the interface demands of a consumer."""
        others = self._streams(arrays) - {stream}
        if others:
            before = context(device).enter()
            for other in others:
                driver().wait_for_stream(stream, other)
            context(device).leave(before)

    @staticmethod
    def _streams(arrays: Sequence[Any]) -> set[int]:
        interfaces = [getattr(a, "__cuda_array_interface__", None) or {} for a in arrays]
        named: set[Any] = {i.get("stream") for i in interfaces} - {None}
        if 0 in named:
            raise InputError("an array whose __cuda_array_interface__ names stream 0, which its specification forbids")
        return {0 if s == 1 else int(s) for s in named}

    def to_numpy(self, value: Any) -> Any:
        """Return a numpy view of an array in the host's memory; loaded by `as_numpy` of the simulator."""
        raise InputError(f"{type(value).__name__}: no numpy array and no CPU tensor that can be viewed as one")

    def from_numpy(self, value: Any) -> Any:
        """Return the numpy array: there is no library whose array it could be."""
        return value


ARRAYS = InterfaceArrays()
