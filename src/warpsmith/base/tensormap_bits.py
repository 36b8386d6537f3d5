"""The 128 bytes of a `CUtensorMap`: fields by word and bit (docs/design/hardware-capture-tensormap.md)."""

from __future__ import annotations

import math
from typing import NamedTuple

from warpsmith.base.errors import InputError
from warpsmith.base.tensormap import ELEMENTS, INTERLEAVES, L2_PROMOTIONS, TensorMapFields

__all__ = ["SIZE", "decode", "encode"]

SIZE = 128


class Bits(NamedTuple):
    """`width` bits from bit `low` of the little-endian 32-bit word at byte `byte`."""

    byte: int
    low: int
    width: int


RANK = Bits(0x08, 4, 3)
ELEMENT = Bits(0x08, 7, 4)
INTERLEAVE = Bits(0x08, 11, 2)
SWIZZLE = Bits(0x08, 13, 2)
NAN = Bits(0x08, 15, 1)
TF32 = Bits(0x08, 16, 1)
L2 = Bits(0x08, 17, 2)
ATOM = Bits(0x08, 19, 2)
IM2COL = Bits(0x08, 0, 1)
STRIDE_LOW = tuple(Bits(0x0C + 4 * i, 0, 32) for i in range(4))
STRIDE_HIGH = tuple(Bits(0x1C, 4 * i, 4) for i in range(4))
DIM = tuple(Bits(0x20 + 4 * i, 0, 32) for i in range(5))
ELEMENT_STRIDE = tuple(Bits(0x34, 3 * i, 3) for i in range(5))
BOX = (Bits(0x34, 24, 8), *(Bits(0x38, 8 * i, 8) for i in range(4)))
CHANNELS = Bits(0x34, 24, 8)
PIXELS = Bits(0x3C, 0, 10)
SHARED_BYTES = Bits(0x40, 0, 32)
"""Bytes of the box, with box / element stride rounded down: a note of the driver's; copies round up."""
SHARED_ALIGNMENT = Bits(0x48, 0, 32)
CORNER_WIDTH = {3: 16, 4: 8, 5: 5}
"""Bits of a corner offset by rank."""
LOWER = {rank: tuple(Bits(0x38, w * i, w) for i in range(rank - 2)) for rank, w in CORNER_WIDTH.items()}
UPPER = {rank: tuple(Bits(0x38, 16 + w * i, w) for i in range(rank - 2)) for rank, w in CORNER_WIDTH.items()}
ALIGNMENT = {"none": 16, "32B": 256, "64B": 512}
_SWIZZLE_CODES = {"none": (0, 0), "32B": (1, 0), "64B": (2, 0), "128B": (3, 0), "128B_atom_32B": (3, 1)} | {
    "128B_atom_32B_flip_8B": (3, 2),
    "128B_atom_64B": (3, 3),
}


def put(words: bytearray, at: Bits, value: int) -> None:
    """Write a field; `value` is cut to its width."""
    mask = (1 << at.width) - 1
    word = int.from_bytes(words[at.byte : at.byte + 4], "little")
    word = word & ~(mask << at.low) | (value & mask) << at.low
    words[at.byte : at.byte + 4] = word.to_bytes(4, "little")


def get(data: bytes | bytearray, at: Bits) -> int:
    """Read a field."""
    return int.from_bytes(data[at.byte : at.byte + 4], "little") >> at.low & (1 << at.width) - 1


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def encode(f: TensorMapFields) -> bytes:
    """Return the 128 bytes of checked fields."""
    out = bytearray(SIZE)
    out[0:8] = f.address.to_bytes(8, "little")
    element = ELEMENTS[f.element]
    swizzle, atom = _SWIZZLE_CODES[f.swizzle]
    for at, value in (
        (RANK, f.rank - 1), (ELEMENT, element.code), (INTERLEAVE, INTERLEAVES.index(f.interleave)), (SWIZZLE, swizzle),
        (NAN, f.nan_fill), (TF32, element.tf32), (L2, L2_PROMOTIONS.index(f.l2)), (ATOM, atom), (IM2COL, f.mode != "tiled"),
        (SHARED_ALIGNMENT, ALIGNMENT.get(f.swizzle, 1024)), (SHARED_BYTES, _shared_bytes(f)),
    ):  # fmt: skip
        put(out, at, int(value))
    for i, stride in enumerate(f.strides):
        put(out, STRIDE_LOW[i], stride >> 4)
        put(out, STRIDE_HIGH[i], stride >> 36)
    for fields, values in ((DIM, f.dims), (ELEMENT_STRIDE, f.element_strides), (BOX, f.box)):
        for at, value in zip(fields, values, strict=False):
            put(out, at, value - 1)
    if f.mode != "tiled":
        put(out, CHANNELS, f.channels - 1)
        put(out, PIXELS, f.pixels - 1)
        for fields, values in ((LOWER, f.lower), (UPPER, f.upper)):
            for at, value in zip(fields[f.rank], values, strict=False):
                put(out, at, value)
    return bytes(out)


def _shared_bytes(f: TensorMapFields) -> int:
    count = (
        f.channels * f.pixels if f.mode != "tiled" else math.prod(b // s for b, s in zip(f.box, f.element_strides, strict=True))
    )
    return count * f.bits // 8


def decode(data: bytes) -> TensorMapFields:
    """Return the fields of 128 bytes; raise `InputError` for bytes that are no tensor map."""
    codes = {(e.code, e.tf32): name for name, e in ELEMENTS.items()}
    element = codes.get((get(data, ELEMENT), bool(get(data, TF32))))
    swizzle = {v: k for k, v in _SWIZZLE_CODES.items()}.get((get(data, SWIZZLE), get(data, ATOM)))
    rank, interleave, tiled = get(data, RANK) + 1, get(data, INTERLEAVE), not get(data, IM2COL)
    if element is None or swizzle is None or rank > 5 or interleave > 2 or not (tiled or rank >= 3):
        raise InputError(f"no tensor map: word 2 is {int.from_bytes(data[8:12], 'little'):#010x}")
    strides = tuple(get(data, STRIDE_LOW[i]) << 4 | get(data, STRIDE_HIGH[i]) << 36 for i in range(rank - 1))
    width = 0 if tiled else CORNER_WIDTH[rank]
    lower = () if tiled else tuple(_signed(get(data, at), width) for at in LOWER[rank])
    upper = () if tiled else tuple(_signed(get(data, at), width) for at in UPPER[rank])
    return TensorMapFields(
        element, int.from_bytes(data[0:8], "little"), tuple(get(data, DIM[i]) + 1 for i in range(rank)), strides,
        box=tuple(get(data, BOX[i]) + 1 for i in range(rank)) if tiled else (),
        element_strides=tuple(get(data, ELEMENT_STRIDE[i]) + 1 for i in range(rank)),
        interleave=INTERLEAVES[interleave], swizzle=swizzle, l2=L2_PROMOTIONS[get(data, L2)], nan_fill=bool(get(data, NAN)),
        mode="tiled" if tiled else "im2col", lower=lower, upper=upper,
        channels=0 if tiled else get(data, CHANNELS) + 1, pixels=0 if tiled else get(data, PIXELS) + 1,
    )  # fmt: skip
