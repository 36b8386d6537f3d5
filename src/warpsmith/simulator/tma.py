"""Tensor copies: which bytes of global memory a box of a tensor map means, and where they lie in shared memory (PTX ISA 5.5).

A copy is a list of rows of `inner` consecutive bytes of global memory (the innermost dimension, or the channels of a
pixel). In shared memory the rows follow each other, dense or, where they are narrower than the swizzle, as far apart as it is
wide; then 16-byte pieces trade places by absolute address. Bytes between narrow rows stay as they were (seen on an H200).

Of an interleaved tensor (5.5.6: W, H, D, slices of 16 or 32 bytes of channels, images) a row is a slice of one pixel. As an
H200 has it, a copy takes one slice of each pixel, whatever the box or the map says of channels, and rows lie dense under
every swizzle. Coordinates and extents count W in pixels and channels in slices.

Elements of b4x16_p64 and b6x16_p32 come in groups of sixteen: 8 or 12 bytes in global memory, and in shared memory 16, the
rest of which a load leaves undefined (5.5.1.1). Stores with the type code of b6x16_p32 mean b6p2x16: 16 bytes of shared memory,
whose low six bits are packed into 12. Barriers count the bytes in global memory ("amount of data copied").
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from warpsmith.base.errors import CapabilityError
from warpsmith.simulator.swizzle import FLIP_8B, MODES, swizzle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.base.tensormap import TensorMapFields

__all__ = [
    "Rows",
    "box_bytes",
    "extent",
    "fill_pattern",
    "inner_bytes",
    "modelled",
    "packed",
    "padding",
    "pieces",
    "row_bytes",
    "rows_gather",
    "rows_im2col",
    "rows_im2col_w",
    "rows_tiled",
]


class Rows(NamedTuple):
    """Rows of a copy: byte offsets from the tensor's address, which exist, and which bytes of each row exist."""

    offsets: NDArray[np.int64]
    valid: NDArray[np.bool_] | None
    """None: all."""
    first: int
    last: int
    """Bytes `first:last` of every row lie inside the tensor."""


_GROUP = {"b4x16_p64": 8, "b6x16_p32": 12}
"""Bytes in global memory of sixteen elements that take 16 bytes of shared memory."""


def modelled(f: TensorMapFields) -> None:
    """Raise `CapabilityError` for tensor maps whose copies are not modelled."""
    if f.swizzle == FLIP_8B:
        raise CapabilityError(f"simulator: tensor copies with swizzle {f.swizzle} are not modelled")
    if f.slice_bytes and (f.rank < 3 or f.element in _GROUP):  # no driver makes such a map, tensormap.replace may
        raise CapabilityError(
            f"simulator: tensor copies with interleave {f.interleave} of {f.element} at rank {f.rank} are not modelled"
        )


def _count(f: TensorMapFields) -> int:
    return f.channels if f.mode != "tiled" else f.box[0]


def row_bytes(f: TensorMapFields) -> int:
    """Return the bytes of one row in global memory."""
    return f.slice_bytes or _count(f) * f.bits // 8


def inner_bytes(f: TensorMapFields) -> int:
    """Return the bytes of one row in shared memory."""
    return _count(f) if f.element in _GROUP else row_bytes(f)


def padding(f: TensorMapFields, rows: NDArray[np.uint8], fill: int) -> NDArray[np.uint8]:
    """Return rows of global memory `[row, byte]` as they lie in shared memory; what is added has the value `fill`."""
    if f.element not in _GROUP:
        return rows
    group = _GROUP[f.element]
    out = np.full((len(rows), rows.shape[1] // group, 16), fill, np.uint8)
    out[..., :group] = rows.reshape(len(rows), -1, group)
    return out.reshape(len(rows), -1)


def packed(f: TensorMapFields, rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return rows of shared memory `[row, byte]` as a store puts them into global memory."""
    if f.element not in _GROUP:
        return rows
    bits = np.unpackbits(rows[..., None], axis=-1, bitorder="little")[..., : f.bits]
    return np.packbits(bits.reshape(len(rows), -1), axis=-1, bitorder="little")


def extent(f: TensorMapFields) -> int:
    """Return the bytes from the tensor's address to the end of its last element."""
    row = f.dims[0] * (8 * f.slice_bytes or f.bits) // 8
    return row + sum((d - 1) * s for d, s in zip(f.dims[1:], f.strides, strict=True))


class _Axis(NamedTuple):
    """A dimension along which a box has several rows."""

    extent: int
    box: int
    step: int
    stride: int

    @property
    def rows(self) -> int:
        """Rows that a box takes along it."""
        return -(-self.box // self.step)


def _axes_of(f: TensorMapFields) -> list[_Axis]:
    """Return the axes of a box, that whose rows follow each other in shared memory first."""
    axes = [_Axis(*a) for a in zip(f.dims[1:], f.box[1:], f.element_strides[1:], f.strides, strict=True)]
    if not f.slice_bytes:
        return axes
    axes[-2] = axes[-2]._replace(box=1, step=1)
    return [_Axis(f.dims[0], f.box[0], f.element_strides[0], f.slice_bytes), *axes]


@lru_cache(maxsize=64)
def _lattice(f: TensorMapFields) -> tuple[list[_Axis], NDArray[np.int64], tuple[NDArray[np.int64], ...]]:
    """Return the axes of the box, the offset of each of its rows, and their index along each axis; the first runs fastest."""
    axes = _axes_of(f)
    grids = np.meshgrid(*(np.arange(a.rows, dtype=np.int64) for a in reversed(axes)), indexing="ij")
    indices = tuple(g.reshape(-1) * a.step for g, a in zip(reversed(grids), axes, strict=True))
    offsets = np.zeros(math.prod(a.rows for a in axes), np.int64)
    for index, axis in zip(indices, axes, strict=True):
        offsets += index * axis.stride
    return axes, offsets, indices


def rows_tiled(f: TensorMapFields, coordinates: list[int]) -> Rows:
    """Return the rows of the box at `coordinates` (innermost first)."""
    axes, lattice, indices = _lattice(f)
    outer = coordinates[f.rank - len(axes) :]
    offsets = lattice + sum(c * a.stride for c, a in zip(outer, axes, strict=True))
    valid: NDArray[np.bool_] | None = None
    for c, axis, index in zip(outer, axes, indices, strict=True):
        if c < 0 or c + axis.box > axis.extent:
            ok = (index + c >= 0) & (index + c < axis.extent)
            valid = ok if valid is None else valid & ok
    if f.slice_bytes:
        return Rows(offsets, valid, 0, f.slice_bytes)
    return Rows(offsets + coordinates[0] * f.bits // 8, valid, *_inside(f, coordinates[0], f.box[0]))


def rows_gather(f: TensorMapFields, coordinates: list[int]) -> Rows:
    """Return the four rows of gather4 and scatter4: one column, four row numbers."""
    rows = np.array(coordinates[1:], np.int64)
    valid = (rows >= 0) & (rows < f.dims[1])
    offsets = rows * f.strides[0] + coordinates[0] * f.bits // 8
    return Rows(offsets, None if valid.all() else valid, *_inside(f, coordinates[0], f.box[0]))


def rows_im2col(f: TensorMapFields, coordinates: list[int], offsets: list[int]) -> Rows:
    """Return the pixels of an im2col copy: they walk the pixel box, W fastest, then H, D, and the images.

    `offsets` (W first) are added to each position; only then a pixel may lie outside the tensor.
    """
    where: dict[int, NDArray[np.int64]] = {}
    turns = np.arange(f.pixels, dtype=np.int64)
    for i, axis in enumerate(f.spatial):
        high = f.dims[axis] - 1 + f.upper[i]
        where[axis], turns = _walked(coordinates[axis], f.lower[i], high, f.element_strides[axis], turns)
        if offsets:
            where[axis] += offsets[i]
    return _rows_of_pixels(f, coordinates, where | {f.rank - 1: coordinates[-1] + turns})


def rows_im2col_w(f: TensorMapFields, coordinates: list[int], halo: int, offset: int, pixels: int) -> Rows:
    """Return `pixels` pixels of an im2col::w copy: along W, then the next image; the rest of the position stays (5.5.5).

    `offset` (wOffset) moves the first pixel and both corners. Where the pixels of a halo (wHalo) come from and lie is
    told by pictures only: raise `CapabilityError`.
    """
    if halo:
        raise CapabilityError(f"simulator: tensor copies in im2col::w mode with a halo (wHalo = {halo}) are not modelled")
    low, high = f.lower[0] + offset, f.dims[1] - 1 + f.upper[0] + offset
    if offset > 31:
        raise CapabilityError(
            f"simulator: a tensor copy in im2col::w mode with wOffset = {offset} is not modelled; use 0 to 31"
        )
    if coordinates[1] + offset > high:
        raise CapabilityError(
            "simulator: a tensor copy in im2col::w mode that starts right of its bounding box is not modelled"
        )
    w, turns = _walked(coordinates[1] + offset, low, high, f.element_strides[1], np.arange(pixels, dtype=np.int64))
    still = {axis: np.full(pixels, coordinates[axis], np.int64) for axis in range(2, f.rank - 1)}
    return _rows_of_pixels(f, coordinates, {1: w, **still, f.rank - 1: coordinates[-1] + turns})


def _walked(
    start: int, low: int, high: int, step: int, turns: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where an axis stands after so many steps along it, and how often it began anew by then, which steps the next axis.

    It runs to `high`, from `start` the first time and from `low` later.
    """
    first, later = (max((high - begin) // step + 1, 1) for begin in (start, low))
    again = turns - first
    position = np.where(again < 0, start + turns * step, low + again % later * step)
    return position, np.where(again < 0, 0, again // later + 1)


def _rows_of_pixels(f: TensorMapFields, coordinates: list[int], where: dict[int, NDArray[np.int64]]) -> Rows:
    """Return the rows of pixels: of each its position in some dimensions, the channels from the coordinates."""
    strides = (f.slice_bytes, *f.strides)
    offsets, valid = np.zeros_like(where[f.rank - 1]), np.ones_like(where[f.rank - 1], np.bool_)
    for axis, position in where.items():
        offsets += position * strides[axis]
        valid &= (position >= 0) & (position < f.dims[axis])
    if f.slice_bytes:
        offsets += coordinates[-2] * f.strides[-2]
        valid &= 0 <= coordinates[-2] < f.dims[-2]
        span = (0, f.slice_bytes)
    else:
        offsets += coordinates[0] * f.bits // 8
        span = _inside(f, coordinates[0], f.channels)
    return Rows(offsets, None if valid.all() else valid, *span)


def _inside(f: TensorMapFields, column: int, count: int) -> tuple[int, int]:
    first = min(max(-column, 0), count) * f.bits // 8
    last = max(min(f.dims[0] - column, count), 0) * f.bits // 8
    return first, max(first, last)


@lru_cache(maxsize=256)
def _piece_offsets(mode: str, phase: int, count: int, inner: int, pitch: int) -> NDArray[np.int64]:
    at = (np.arange(count, dtype=np.int64)[:, None] * pitch + np.arange(0, inner, 16) + phase).reshape(-1)
    return (swizzle(mode, at) - phase) >> 4


def pieces(f: TensorMapFields, address: int, count: int) -> NDArray[np.int64]:
    """Return where each 16-byte piece of a box of `count` rows at `address` lies, in pieces from `address` on."""
    return _piece_offsets(f.swizzle, address % MODES[f.swizzle].period, count, inner_bytes(f), _pitch(f))


def _pitch(f: TensorMapFields) -> int:
    """Return the bytes from a row to the next in shared memory."""
    return f.slice_bytes or max(inner_bytes(f), MODES[f.swizzle].span)


def box_bytes(f: TensorMapFields, address: int, count: int) -> int:
    """Return the bytes of shared memory from `address` to the end of the last piece of a box of `count` rows."""
    inner = inner_bytes(f)
    return count * inner if inner == _pitch(f) else 16 * (int(pieces(f, address, count).max()) + 1)


def fill_pattern(f: TensorMapFields) -> NDArray[np.uint8]:
    """Return the two bytes that fill what lies outside the tensor: zeros, or the code that `fma.oob` takes for out of bounds.

    An H200 repeats 0x7ff7 through elements of every width; it is a NaN of each floating type.
    """
    return np.array([0x7FF7 if f.nan_fill else 0], np.uint16).view(np.uint8)
