"""`TensorMap`: an argument that describes an array to the tensor copy unit, encoded as the driver does."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.base.errors import InputError
from warpsmith.base.tensormap import ELEMENTS, TensorMapFields, check
from warpsmith.base.tensormap_bits import decode, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["TensorMap", "decoded"]

_ELEMENT_OF_DTYPE = {
    "uint8": "u8", "int8": "u8", "bool": "u8", "uint16": "u16", "int16": "u16", "uint32": "u32", "int32": "s32",
    "uint64": "u64", "int64": "s64", "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16",
    "float8_e4m3fn": "u8", "float8_e5m2": "u8", "float8_e8m0fnu": "u8", "float4_e2m1fn": "u8",
}  # fmt: skip
_SLICES = {"16B": 16, "32B": 32}


@final
class TensorMap:
    """A tensor map of a numpy array, as a kernel argument.

    `box`, `element_strides`, `lower` and `upper` follow the order of `array.shape` (outermost first); a kernel's
    coordinates run the other way, innermost first. Of elements of four or six bits the array holds the packed bytes, and
    `box` counts elements. Raise `InputError` where the driver would refuse.

    With `interleave` the last dimension of the array is a slice of channels of 16 or 32 bytes and none of the map: images,
    slices, (depth,) (height,) width, slice. Coordinates count slices, and a copy takes one slice of each pixel, whatever
    `box` has in the second place and `channels` says.

    >>> b = np.zeros((2, 8, 20, 30, 8), np.float16)  # NC/8HWC8
    >>> TensorMap(b, box=(1, 8, 4, 16), interleave="16B").fields(address=0x1000).dims
    (30, 20, 8, 2)

    >>> a = np.zeros((128, 256), np.float16)
    >>> TensorMap(a, box=(64, 64), swizzle="128B").fields(address=0x1000).dims
    (256, 128)
    """

    __slots__ = ("array", "memory", "options")

    def __init__(
        self,
        array: Any,
        *,
        box: Sequence[int] = (),
        swizzle: str = "none",
        element: str | None = None,
        element_strides: Sequence[int] = (),
        interleave: str = "none",
        l2: str = "none",
        fill: str = "zero",
        lower: Sequence[int] = (),
        upper: Sequence[int] = (),
        channels: int = 0,
        pixels: int = 0,
        mode: str | None = None,
        memory: Any = None,
    ) -> None:
        """`memory` is the contiguous array that `array` is a view of from its first element on, by default `array` itself."""
        self.array = array if isinstance(array, np.ndarray) else np.asarray(array)
        if fill not in ("zero", "nan"):
            raise InputError(f"tensor map: no fill {fill!r}; zero or nan")
        for what, numbers in (("box", box), ("element_strides", element_strides), ("lower", lower), ("upper", upper)):
            if not isinstance(numbers, tuple | list) or not all(isinstance(n, int | np.integer) for n in numbers):
                raise InputError(f"tensor map: {what}={numbers!r}: give ints, one for each dimension, e.g. {what}=(64, 64)")
        a = self.array
        self.memory: Any = a if memory is None else memory
        name = element or _ELEMENT_OF_DTYPE.get(a.dtype.name)
        if name is None:
            raise InputError(f"tensor map: no element type for dtype {a.dtype}; give element=, one of {', '.join(ELEMENTS)}")
        if a.ndim and a.strides[-1] != a.itemsize and a.shape[-1] > 1:
            raise InputError("tensor map: the last dimension of the array must be contiguous")
        dims, strides = (_dims(a, name), a.strides[:-1]) if interleave not in _SLICES else _sliced(a, interleave)
        self.options: dict[str, Any] = {
            "element": name,
            "dims": dims,
            "strides": tuple(reversed(strides)),
            "box": tuple(map(int, reversed(box))),
            "element_strides": tuple(reversed(element_strides)) or (1,) * len(dims),
            "interleave": interleave, "swizzle": swizzle, "l2": l2, "nan_fill": fill == "nan",
            "mode": mode or ("im2col" if channels else "tiled"),
            "lower": tuple(reversed(lower)), "upper": tuple(reversed(upper)), "channels": channels, "pixels": pixels,
        }  # fmt: skip
        self.fields(0)

    def fields(self, address: int) -> TensorMapFields:
        """Return the fields with the array at a device address; checked."""
        fields = TensorMapFields(address=address, **self.options)
        check(fields)
        return fields

    def encode(self, address: int) -> bytes:
        """Return the 128 bytes with the array at a device address."""
        return encode(self.fields(address))


def _dims(a: Any, element: str) -> tuple[int, ...]:
    """Return the elements in each dimension, innermost first; elements of less than a byte lie packed in the array's rows."""
    known = ELEMENTS.get(element)
    if known is None or known.bits >= 8 or not a.ndim:
        return tuple(reversed(a.shape))
    return (a.shape[-1] * a.itemsize * 8 // known.bits, *reversed(a.shape[:-1]))


def _sliced(a: Any, interleave: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the dimensions of an interleaved tensor, W first, and the byte strides of all but W, outermost first."""
    size = _SLICES[interleave]
    if a.ndim < 2 or a.shape[-1] * a.itemsize != size or (a.strides[-2] != size and a.shape[-2] > 1):
        raise InputError(
            f"tensor map: with interleave {interleave} the last dimension of the array is a slice of {size} bytes, "
            f"{size // a.itemsize} of {a.dtype}, and slices lie behind each other; this array has shape {a.shape}"
        )
    return tuple(reversed(a.shape[:-1])), a.strides[:-2]


@lru_cache(maxsize=256)
def decoded(data: bytes) -> TensorMapFields:
    """Return the fields of a descriptor read from memory."""
    return decode(data)
