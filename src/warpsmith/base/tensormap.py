"""Tensor maps: what a `CUtensorMap` says, the driver's rules for it, and its 128 bytes.

Lists run from the innermost dimension outwards, as in `cuTensorMapEncodeTiled`. docs/design/hardware-capture-tensormap.md
says where the bit layout comes from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, final

from warpsmith.base.errors import InputError

__all__ = ["ELEMENTS", "INTERLEAVES", "L2_PROMOTIONS", "PADDED", "SWIZZLES", "Element", "TensorMapFields", "check"]


class Element(NamedTuple):
    """An element type: `bits` in global memory, and whether out-of-bounds NaN fill makes sense."""

    bits: int
    is_float: bool
    code: int
    """Value of the element type field; `tf32` marks the rounding bit."""
    tf32: bool = False


ELEMENTS = {
    "u8": Element(8, False, 0),
    "u16": Element(16, False, 1),
    "u32": Element(32, False, 2),
    "s32": Element(32, False, 3),
    "u64": Element(64, False, 4),
    "s64": Element(64, False, 5),
    "f16": Element(16, True, 6),
    "f32": Element(32, True, 7),
    "f64": Element(64, True, 9),
    "bf16": Element(16, True, 10),
    "f32_ftz": Element(32, True, 8),
    "tf32": Element(32, True, 7, True),
    "tf32_ftz": Element(32, True, 8, True),
    "b4x16": Element(4, False, 11),
    "b4x16_p64": Element(4, False, 12),
    "b6x16_p32": Element(6, False, 13),
}
"""Element types in the order of CUtensorMapDataType (0 … 15)."""

INTERLEAVES = ("none", "16B", "32B")
SWIZZLES = ("none", "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B")
"""In the order of CUtensorMapSwizzle."""
L2_PROMOTIONS = ("none", "64B", "128B", "256B")
SPAN = {"32B": 32, "64B": 64, "128B": 128, "128B_atom_32B": 128, "128B_atom_32B_flip_8B": 128, "128B_atom_64B": 128}
SHARED_LIMIT = 232448
"""Bytes of shared memory a kernel may have on every architecture with tensor copies that the driver was asked on (sm_90)."""
PADDED = ("b4x16_p64", "b6x16_p32")
"""Element types whose groups of sixteen take 16 bytes of shared memory."""
_PADDED_SWIZZLES = ("none", "128B", "128B_atom_32B", "128B_atom_64B")
"""Swizzles that they have (PTX ISA 9.7.10.28.5.1)."""


@final
@dataclass(frozen=True, slots=True)
class TensorMapFields:
    """Everything a tensor map holds."""

    element: str
    address: int
    dims: tuple[int, ...]
    """Elements in each dimension."""
    strides: tuple[int, ...]
    """Bytes between neighbours in dimension 1, 2, …; dimension 0 is dense."""
    box: tuple[int, ...] = ()
    """Elements of the box in each dimension (tiled mode)."""
    element_strides: tuple[int, ...] = ()
    interleave: str = "none"
    swizzle: str = "none"
    l2: str = "none"
    nan_fill: bool = False
    """Out-of-bounds elements read as NaN instead of zero."""
    mode: str = "tiled"
    """`tiled`, `im2col`, `im2col_w` or `im2col_w128`. The bytes tell only the first from the others."""
    lower: tuple[int, ...] = ()
    """im2col: lower corner of the pixel box, W first (then H, D)."""
    upper: tuple[int, ...] = ()
    channels: int = 0
    """im2col: channels per pixel; `pixels`: pixels per column."""
    pixels: int = 0

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dims)

    def at(self, address: int) -> TensorMapFields:
        """Return the same map of an array at another address."""
        return replace(self, address=address)

    @property
    def bits(self) -> int:
        """Bits of an element in global memory."""
        return ELEMENTS[self.element].bits

    @property
    def slice_bytes(self) -> int:
        """Bytes of a slice of channels of an interleaved tensor, 16 or 32; 0 of others."""
        return 0 if self.interleave == "none" else int(self.interleave[:-1])

    @property
    def spatial(self) -> range:
        """The dimensions of im2col that an offset and a corner belong to: behind the channels, or W first where interleaved."""
        first = 0 if self.slice_bytes else 1
        return range(first, first + self.rank - 2)


def check(f: TensorMapFields, capability: int | None = None) -> None:
    """Raise `InputError` naming the first rule of the driver that the fields break, and what would satisfy it.

    `capability` is the number of `sm_NN` when the device is known.
    """
    _check_words(f)
    if capability is not None and capability < 100:
        if ELEMENTS[f.element].bits < 8:
            raise InputError(f"tensor map: element type {f.element} needs sm_100 or later, this device is sm_{capability}")
        if "atom" in f.swizzle:
            raise InputError(f"tensor map: swizzle {f.swizzle} needs sm_100 or later, this device is sm_{capability}")
    im2col = f.mode != "tiled"
    if not (3 if im2col else 1) <= f.rank <= 5:
        raise InputError(f"tensor map: rank {f.rank} is not supported; {'3' if im2col else '1'} to 5 are in {f.mode} mode")
    if f.interleave != "none" and f.rank < 3:
        raise InputError(f"tensor map: interleave {f.interleave} needs rank 3 or more, this is rank {f.rank}")
    _check_global(f)
    if len(f.element_strides) != f.rank or not all(1 <= s <= 8 for s in f.element_strides):
        raise InputError(f"tensor map: element strides {f.element_strides} must be {f.rank} numbers from 1 to 8")
    if im2col:
        _check_pixels(f)
    else:
        _check_box(f)
    if f.nan_fill and not ELEMENTS[f.element].is_float:
        raise InputError(f"tensor map: NaN fill needs a floating-point element type, not {f.element}")


def _check_words(f: TensorMapFields) -> None:
    known = (("element type", f.element, ELEMENTS), ("interleave", f.interleave, INTERLEAVES))
    for what, word, words in (*known, ("swizzle", f.swizzle, SWIZZLES), ("L2 promotion", f.l2, L2_PROMOTIONS)):
        if word not in words:
            raise InputError(f"tensor map: no {what} {word!r}; known: {', '.join(words)}")


def _check_global(f: TensorMapFields) -> None:
    wide = f.interleave == "32B" or f.element in PADDED
    unit = 32 if wide else 16
    if f.address % unit:
        raise InputError(f"tensor map: address {f.address:#x} is not a multiple of {unit}")
    if not 0 <= f.address < 1 << 57:
        raise InputError(f"tensor map: address {f.address:#x} is beyond the 57 bits of the address space")
    for i, d in enumerate(f.dims):
        if not 1 <= d <= 1 << 32:
            raise InputError(f"tensor map: dimension {i} has {d} elements; 1 to 2^32 are possible")
    if len(f.strides) != f.rank - 1:
        raise InputError(f"tensor map: {len(f.strides)} strides for rank {f.rank}; give {f.rank - 1}, without the innermost")
    for i, s in enumerate(f.strides):
        if s % unit or not 0 <= s < 1 << 40:
            raise InputError(
                f"tensor map: stride of dimension {i + 1} is {s} bytes; it must be a multiple of {unit} below 2^40. "
                "Pad the rows of the array"
            )
    if f.element in PADDED and f.dims[0] % 128:
        raise InputError(f"tensor map: {f.element} needs a multiple of 128 elements innermost, not {f.dims[0]}")
    if f.element == "b4x16" and f.dims[0] % 2:
        raise InputError(f"tensor map: b4x16 needs an even number of elements innermost, not {f.dims[0]}")


def _check_inner(f: TensorMapFields, count: int, what: str) -> None:
    inner = count * f.bits // 8
    if f.element in PADDED:
        if f.swizzle not in _PADDED_SWIZZLES:
            raise InputError(f"tensor map: {f.element} has no swizzle {f.swizzle}; it has {', '.join(_PADDED_SWIZZLES)}")
        if f.interleave != "none":
            raise InputError(f"tensor map: {f.element} has no interleave {f.interleave}")
        if count != 128:
            raise InputError(f"tensor map: {f.element} needs {what} of 128 elements, not {count}")
        inner = 128
    if inner % 16 and f.slice_bytes and f.mode == "tiled":
        raise InputError(
            f"tensor map: a box {count} slices wide; the driver takes multiples of {128 // f.bits} (16 bytes of elements), "
            "of interleaved tensors too"
        )
    if inner % 16:
        raise InputError(f"tensor map: {what} has {inner} bytes; it must be a multiple of 16")
    span = SPAN.get(f.swizzle, 0)
    if span and inner > span and f.interleave == "none":
        raise InputError(
            f"tensor map: {what} has {inner} bytes, more than the {span} of swizzle {f.swizzle}; "
            f"use at most {span * 8 // f.bits} elements or another swizzle"
        )


def _check_box(f: TensorMapFields) -> None:
    if len(f.box) != f.rank:
        raise InputError(f"tensor map: the box has {len(f.box)} dimensions, the tensor {f.rank}")
    for i, b in enumerate(f.box):
        if not 1 <= b <= 256:
            raise InputError(f"tensor map: box dimension {i} is {b}; 1 to 256 are possible")
    _check_inner(f, f.box[0], "the box's innermost dimension")
    total = math.prod(b // s for b, s in zip(f.box, f.element_strides, strict=True) if s) * f.bits // 8
    if total > SHARED_LIMIT:
        raise InputError(f"tensor map: the box has {total} bytes, more than the {SHARED_LIMIT} of shared memory")


def _check_pixels(f: TensorMapFields) -> None:
    spatial = f.rank - 2 if f.mode == "im2col" else 1
    if len(f.lower) != spatial or len(f.upper) != spatial:
        raise InputError(f"tensor map: the pixel box needs {spatial} corner offsets at rank {f.rank} in {f.mode} mode")
    bits = {3: 16, 4: 8, 5: 5}[f.rank]
    for corner in (*f.lower, *f.upper):
        if not -(1 << bits - 1) <= corner < 1 << bits - 1:
            raise InputError(f"tensor map: corner offset {corner} does not fit {bits} signed bits (rank {f.rank})")
    for i, low, high in zip(f.spatial, f.lower, f.upper, strict=False):
        if low > f.dims[i] - 1 + high:
            raise InputError(
                f"tensor map: the pixel box is empty in dimension {i}: it runs from {low} to {f.dims[i] - 1 + high}"
            )
    if not 1 <= f.channels <= 256:
        raise InputError(f"tensor map: {f.channels} channels per pixel; 1 to 256 are possible")
    if not 1 <= f.pixels <= 1024:
        raise InputError(f"tensor map: {f.pixels} pixels per column; 1 to 1024 are possible")
    _check_inner(f, f.channels, "channels per pixel")
