"""Kernel arguments: arrays placed in global memory, numbers and bytes packed into the parameter block (PTX ISA 4.1, 7)."""

from __future__ import annotations

import operator
import struct
from typing import TYPE_CHECKING, Any, final

import numpy as np
from ml_dtypes import bfloat16

from warpsmith.base.errors import InputError
from warpsmith.base.ptx_types import TYPES
from warpsmith.simulator.layout import parameter_offsets, size_of
from warpsmith.simulator.memory import GLOBAL_BASE, UNDEFINED
from warpsmith.simulator.tensormap import TensorMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from warpsmith.assembly.ptx.tree import Function, Parameter
    from warpsmith.simulator.memory import GlobalMemory

__all__ = ["Arguments", "DeviceArray", "Pointer", "as_elements", "as_numpy", "pack_value", "ptr"]

_NATIVE = 'array.astype(array.dtype.newbyteorder("="))'
_FLOATS: dict[str, Any] = {"f16": np.float16, "bf16": bfloat16, "f32": np.float32, "f64": np.float64}


@final
class Pointer:
    """An argument that points into an array: `ws.ptr(array, offset)`."""

    __slots__ = ("array", "offset")

    def __init__(self, array: Any, offset: int) -> None:
        self.array = array
        self.offset = offset
        """Bytes from the array's first element."""


@final
class DeviceArray:
    """An array in the memory of a `Device`; as an argument it is its address."""

    __slots__ = ("dtype", "memory", "shape", "start")

    def __init__(self, memory: GlobalMemory, start: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.memory, self.start, self.shape, self.dtype = memory, start, shape, np.dtype(dtype)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def address(self) -> int:
        """Generic address of the first element."""
        return GLOBAL_BASE + self.start

    def numpy(self) -> Any:
        """Return a copy of what the memory holds now."""
        return self.memory.data[self.start : self.start + self.nbytes].view(self.dtype).reshape(self.shape).copy()

    def set(self, value: Any) -> None:
        """Copy an array of the same shape to the memory."""
        data = as_elements(value, self.dtype, f"device array of shape {self.shape}")
        if data.shape != self.shape:
            raise InputError(f"device array of shape {self.shape}: an array of shape {data.shape} was given")
        self.memory.data[self.start : self.start + self.nbytes] = data.reshape(-1).view(np.uint8)


def ptr(array: Any, offset: int = 0) -> Pointer:
    """Return a pointer argument: the address of `array` plus `offset` elements."""
    numpy_array = as_numpy(array, "ptr")
    try:
        elements = operator.index(offset)
    except TypeError:
        raise InputError(f"ptr: offset={offset!r}: give the offset as an int, in elements") from None
    if abs(elements) >= 1 << 40:
        raise InputError(f"ptr: offset={offset!r}: no array has so many elements")
    return Pointer(numpy_array, elements * numpy_array.itemsize)


def as_numpy(value: Any, what: str) -> Any:
    """Return a numpy view of an array: numpy itself, or a CPU tensor of torch or JAX; raise `InputError` otherwise."""
    if isinstance(value, np.ndarray):
        return value
    try:
        if hasattr(value, "detach"):
            value = value.detach()
        return np.from_dlpack(value)
    except Exception as e:  # an object's own methods were called: they may raise anything
        kind = type(value).__name__
        raise InputError(f"{what}: {kind} is no numpy array and no CPU tensor that can be viewed as one ({e})") from None


def as_elements(value: Any, dtype: Any, what: str) -> Any:
    """Return a contiguous array of `dtype` (None: its own) with the elements of `value`; `InputError` for what no GPU holds."""
    try:
        data = np.ascontiguousarray(value, dtype)
    except (TypeError, ValueError, OverflowError) as e:
        raise InputError(f"{what}: {type(value).__name__} cannot be made an array of {dtype}: {e}") from None
    if data.dtype.hasobject:
        raise InputError(f"{what}: an array of Python objects cannot be passed; convert it to a numeric dtype")
    if not data.dtype.isnative:
        raise InputError(f"{what}: the array has the byte order of another machine ({data.dtype.str}); pass {_NATIVE}")
    return data


@final
class Arguments:
    """The arguments of a launch, bound to a kernel's parameters."""

    def __init__(
        self, entry: Function, args: Sequence[Any], memory: GlobalMemory, base: int = GLOBAL_BASE, undefined: Sequence[Any] = ()
    ) -> None:
        """`base` is the address of the arena's first byte; `undefined` arrays hold nothing until the kernel writes them."""
        if not isinstance(undefined, list | tuple):
            raise InputError(f"undefined={undefined!r:.60}: give a list of arrays that are among args")
        self._undefined = {id(a) for a in undefined}
        self.entry, self.memory, self.base = entry, memory, base
        self.arrays: list[tuple[Any, int]] = []
        """(array, byte index in the arena) of every array, each once."""
        self.placed: dict[tuple[int, int], int] = {}
        self._fresh: list[tuple[str, int, int]] = []
        """(name, byte index, bytes) of the arrays that hold nothing at first."""
        parameters = parameter_offsets(entry)
        if not isinstance(args, list | tuple):
            raise InputError(f"args={args!r:.60}: give a list of arguments, e.g. args=[array, 128]")
        if len(args) != len(parameters):
            names = ", ".join(p.name for p, _ in parameters) or "none"
            raise InputError(f"kernel `{entry.name}` takes {len(parameters)} arguments ({names}); {len(args)} were given")
        arrays = [a for a in map(_array_of, _flat(args)) if a is not None]
        self.owners = sorted((a for a in arrays if a.nbytes), key=lambda a: -a.nbytes)
        """Arrays, the largest first: a view of another argument lives where that one does."""
        memory.reserve(sum(a.nbytes + 1024 for a in arrays))
        size = max((o + size_of(p) for p, o in parameters), default=0)
        block = bytearray(size)
        for i, ((p, offset), value) in enumerate(zip(parameters, args, strict=True)):
            data = self._pack(i, p, value)
            block[offset : offset + len(data)] = data
        self.block = bytes(block)

    def _pack(self, index: int, p: Parameter, value: Any) -> bytes:
        what = f"kernel `{self.entry.name}`, argument {index} (`{p.name}`)"
        size = size_of(p)
        if isinstance(value, TensorMap):
            if size != 128:
                raise InputError(f"{what}: a TensorMap fills 128 bytes, and the parameter has {size}")
            return value.encode(self._place(value.memory, f"the array of argument {index} (`{p.name}`)", what))
        if isinstance(value, bytes | bytearray | memoryview):
            return pack_value(value, p, what)
        if isinstance(value, tuple):
            return self._structure(value, size, what, f"argument {index} (`{p.name}`)")
        if isinstance(value, DeviceArray):
            if size != 8:
                raise InputError(f"{what}: a device array is a pointer of 8 bytes, and the parameter has {size}")
            if value.memory is not self.memory:
                raise InputError(f"{what}: the device array belongs to another device; copy it with .numpy()")
            return struct.pack("<Q", value.address)
        array = _array_of(value)
        if array is None and (hasattr(value, "__dlpack__") or hasattr(value, "detach")):
            array = as_numpy(value, what)
        if array is not None and not (isinstance(value, np.ndarray) and value.ndim == 0):
            if size != 8:
                hint = "pass a number" if size < 8 else "pass bytes of that size, or a tuple of its members"
                raise InputError(f"{what}: an array is a pointer of 8 bytes, and the parameter has {size}; {hint}")
            return self._pointer(value, array, f"argument {index} (`{p.name}`)", what)
        return pack_value(value, p, what)

    def _pointer(self, value: Any, array: Any, name: str, what: str) -> bytes:
        offset = value.offset if isinstance(value, Pointer) else 0
        return struct.pack("<Q", (self._place(array, name, what) + offset) & 0xFFFFFFFFFFFFFFFF)

    def _structure(self, members: tuple[Any, ...], size: int, what: str, name: str) -> bytes:
        """Lay the members of a structure out as C does: each aligned to its size, the whole to the largest."""
        data, align = self._members(members, what, name)
        data = data.ljust(-(-len(data) // align) * align, b"\0")
        if len(data) != size:
            raise InputError(
                f"{what}: the members of the tuple make a structure of {len(data)} bytes, the parameter has {size}"
            )
        return data

    def _members(self, members: tuple[Any, ...], what: str, name: str) -> tuple[bytes, int]:
        data, largest = b"", 1
        for i, member in enumerate(members):
            one, align = self._member(member, f"{what}, member {i}", name)
            data = data.ljust(-(-len(data) // align) * align, b"\0") + one
            largest = max(largest, align)
        return data, largest

    def _member(self, value: Any, what: str, name: str) -> tuple[bytes, int]:
        """Return the bytes of one member and their alignment."""
        if isinstance(value, tuple):
            data, align = self._members(value, what, name)
            return data.ljust(-(-len(data) // align) * align, b"\0"), align
        if isinstance(value, TensorMap):
            return value.encode(self._place(value.memory, name, what)), 64
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value), 1
        if isinstance(value, DeviceArray):
            return struct.pack("<Q", value.address), 8
        if isinstance(value, np.generic):
            return value.tobytes(), value.dtype.alignment
        array = _array_of(value)
        if array is None and (hasattr(value, "__dlpack__") or hasattr(value, "detach")):
            array = as_numpy(value, what)
        if array is not None:
            return self._pointer(value, array, name, what), 8
        raise InputError(
            f"{what}: {type(value).__name__} has no width in a structure; write np.int32(3), np.float32(1.5), an array or bytes"
        )

    def _place(self, array: Any, name: str, what: str) -> int:
        """Copy an array to global memory (once) and return its address."""
        if isinstance(array, np.ma.MaskedArray):
            raise InputError(f"{what}: a masked array has no place for its mask; pass array.filled(value), or array.data")
        if array.dtype.hasobject:
            raise InputError(f"{what}: an array of Python objects cannot be passed; convert it to a numeric dtype")
        if not array.dtype.isnative:
            raise InputError(f"{what}: the array has the byte order of another machine ({array.dtype.str}); pass {_NATIVE}")
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise InputError(f"{what}: the array is not contiguous; pass np.ascontiguousarray(array), and copy the result back")
        first, end = _range(array)
        for owner in self.owners if first < end else ():
            start, stop = _range(owner)
            if (start, stop) != (first, end) and start <= first and end <= stop:
                return self._place(owner, name, what) + first - start
            if first < start < end < stop or start < first < stop < end:
                raise InputError(f"{what}: the array overlaps another argument in part; pass views of one array with ws.ptr")
            if (start, stop) == (first, end):
                break
        key = (first, end)
        if key not in self.placed:
            fresh = id(array) in self._undefined
            start = self.memory.allocate(name, array.nbytes, defined=not fresh)
            if fresh and array.nbytes:
                self._fresh.append((name, start, array.nbytes))
            self.memory.data[start : start + array.nbytes] = _bytes_of(array)
            self.placed[key] = start
            self.arrays.append((array, start))
        return self.placed[key] + self.base

    def unwritten(self) -> list[str]:
        """Return the names of the arrays that held nothing and of which the kernel wrote no byte."""
        return [name for name, start, size in self._fresh if (self.memory.shadow[start : start + size] & UNDEFINED).all()]

    def copy_back(self) -> None:
        """Write global memory back to the arrays that changed."""
        for array, start in self.arrays:
            new = self.memory.data[start : start + array.nbytes]
            old = _bytes_of(array)
            if not np.array_equal(new, old):
                if not array.flags.writeable:
                    raise InputError("the kernel wrote to an array that is read-only; pass a copy of it")
                old[...] = new


def _range(array: Any) -> tuple[int, int]:
    first = array.__array_interface__["data"][0]
    return first, first + array.nbytes


def _bytes_of(array: Any) -> Any:
    flat = array.reshape(-1, order="F") if not array.flags.c_contiguous else array.reshape(-1)
    return flat.view(np.uint8)


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    """Yield arguments, the members of structures in place of them."""
    for value in values:
        if isinstance(value, tuple):
            yield from _flat(value)
        else:
            yield value


def _array_of(value: Any) -> Any:
    if isinstance(value, Pointer):
        return value.array
    if isinstance(value, np.ndarray) and value.ndim:
        return value
    return value.memory if isinstance(value, TensorMap) else None


def _float(value: Any, dtype: Any, what: str, p: Parameter) -> bytes:
    """Round a number to a float type; refuse a finite one that becomes infinite."""
    try:
        with np.errstate(over="ignore"):
            rounded = np.float64(value).astype(dtype)
    except OverflowError:
        rounded = None
    if rounded is None or (np.isinf(rounded) and not np.isinf(np.float64(value))):
        raise InputError(f"{what}: {value!r:.60} is too large for .{p.type}; pass float('inf') for infinity")
    return rounded.tobytes()


def pack_value(value: Any, p: Parameter, what: str) -> bytes:
    """Return the bytes of a number, or of bytes, for a parameter; raise `InputError` for what it cannot hold."""
    if isinstance(value, bytes | bytearray | memoryview):
        if len(data := bytes(value)) != size_of(p):
            raise InputError(f"{what}: {len(data)} bytes given for a parameter of {size_of(p)}")
        return data
    return _number(value, p, what)


def _number(value: Any, p: Parameter, what: str) -> bytes:
    size = size_of(p)
    if p.shape:
        raise InputError(f"{what}: the parameter is {size} bytes; pass bytes, or a TensorMap for 128")
    t = TYPES[p.type]
    if isinstance(value, np.generic | np.ndarray) and value.dtype.itemsize == size and value.dtype.kind not in "iub":
        return value.tobytes()
    if isinstance(value, bool | np.bool_):
        value = int(value)
    if t.kind == "float":
        if not isinstance(value, int | float | np.integer | np.floating):
            raise InputError(f"{what}: {type(value).__name__} given for a parameter of type .{p.type}; pass a number")
        if p.type not in _FLOATS:
            raise InputError(f"{what}: a parameter of type .{p.type} takes no single number; pass its {size} bytes")
        return _float(value, _FLOATS[p.type], what, p)
    if isinstance(value, float | np.floating):
        if size in (4, 8) and t.kind == "bits":
            return _float(value, np.float32 if size == 4 else np.float64, what, p)
        raise InputError(
            f"{what}: a float given for a parameter of type .{p.type}; pass an int, or a numpy scalar of {size} bytes"
        )
    if isinstance(value, np.ndarray):
        raise InputError(
            f"{what}: an array without dimensions; pass array.reshape(1) for a pointer, array.item() for its number"
        )
    if not isinstance(value, int | np.integer):
        raise InputError(
            f"{what}: {type(value).__name__} given for a parameter of type .{p.type}; pass an array, a number or bytes"
        )
    value = int(value)
    low, high = (-(1 << 8 * size - 1), (1 << 8 * size) - 1)
    if not low <= value <= high:
        raise InputError(f"{what}: {value} does not fit .{p.type}")
    return (value & high).to_bytes(size, "little")
