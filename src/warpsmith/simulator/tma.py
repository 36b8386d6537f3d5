"""Tensor copies: which bytes of global memory a box of a tensor map means, and where they lie in shared memory (PTX ISA 5.5).

A copy is a list of rows of `inner` consecutive bytes of global memory (the innermost dimension, or the channels of a
pixel). In shared memory the rows follow each other, dense or, where they are narrower than the swizzle, as far apart as it is
wide; then 16-byte pieces trade places by absolute address. Bytes between narrow rows stay as they were (seen on an H200).

Elements of b4x16_p64 and b6x16_p32 come in groups of sixteen: 8 or 12 bytes in global memory, and in shared memory 16, the
rest of which a load leaves undefined (5.5.1.1). Stores with the type code of b6x16_p32 mean b6p2x16: 16 bytes of shared memory,
whose low six bits are packed into 12. Barriers count the bytes in global memory ("amount of data copied").
"""

from __future__ import annotations

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
    """Raise `CapabilityError` for tensor maps whose copies are not modelled.

    Of interleaved tensors an H200 shows that the innermost coordinate, extent and box count slices of 16 or 32 bytes (not
    elements), each at that multiple of the tensor's address; where rows of slices come in shared memory is not known yet.
    """
    if f.interleave != "none":
        raise CapabilityError(f"simulator: tensor copies with interleave {f.interleave} are not modelled")
    if f.swizzle == FLIP_8B:
        raise CapabilityError(f"simulator: tensor copies with swizzle {f.swizzle} are not modelled")


def _count(f: TensorMapFields) -> int:
    return f.channels if f.mode != "tiled" else f.box[0]


def row_bytes(f: TensorMapFields) -> int:
    """Return the bytes of one row in global memory."""
    return _count(f) * f.bits // 8


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
    return f.dims[0] * f.bits // 8 + sum((d - 1) * s for d, s in zip(f.dims[1:], f.strides, strict=True))


def _counts(f: TensorMapFields) -> tuple[int, ...]:
    return tuple(-(-b // s) for b, s in zip(f.box[1:], f.element_strides[1:], strict=True))


@lru_cache(maxsize=64)
def _lattice(f: TensorMapFields) -> tuple[NDArray[np.int64], tuple[NDArray[np.int64], ...]]:
    """Return the offset of each row of the box, and its index in each outer dimension; dimension 1 runs fastest."""
    counts = _counts(f)
    grids = np.meshgrid(*(np.arange(n, dtype=np.int64) for n in reversed(counts)), indexing="ij")
    indices = tuple(g.reshape(-1) * s for g, s in zip(reversed(grids), f.element_strides[1:], strict=True))
    offsets = np.zeros(int(np.prod(counts, dtype=np.int64)), np.int64)
    for index, stride in zip(indices, f.strides, strict=True):
        offsets += index * stride
    return offsets, indices


def rows_tiled(f: TensorMapFields, coordinates: list[int]) -> Rows:
    """Return the rows of the box at `coordinates` (innermost first)."""
    lattice, indices = _lattice(f)
    offsets = lattice + _start(f, coordinates)
    valid: NDArray[np.bool_] | None = None
    for c, dim, box, index in zip(coordinates[1:], f.dims[1:], f.box[1:], indices, strict=True):
        if c < 0 or c + box > dim:
            ok = (index + c >= 0) & (index + c < dim)
            valid = ok if valid is None else valid & ok
    return Rows(offsets, valid, *_inside(f, coordinates[0], f.box[0]))


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
    spatial = len(f.dims) - 2
    position = list(coordinates[1:])
    high = [f.dims[1 + i] - 1 + f.upper[i] for i in range(spatial)]
    shift = [*offsets, *[0] * spatial][:spatial]
    out = np.zeros(f.pixels, np.int64)
    valid = np.ones(f.pixels, np.bool_)
    for i in range(f.pixels):
        where = [p + s for p, s in zip(position, [*shift, 0], strict=True)]
        valid[i] = all(0 <= w < d for w, d in zip(where, f.dims[1:], strict=True))
        out[i] = sum(w * s for w, s in zip(where, f.strides, strict=True))
        _advance(position, f.lower, high, f.element_strides[1 : 1 + spatial])
    out += coordinates[0] * f.bits // 8
    return Rows(out, None if valid.all() else valid, *_inside(f, coordinates[0], f.channels))


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
    position = [coordinates[1] + offset, *coordinates[2:]]
    out = np.zeros(pixels, np.int64)
    valid = np.ones(pixels, np.bool_)
    for i in range(pixels):
        valid[i] = all(0 <= p < d for p, d in zip(position, f.dims[1:], strict=True))
        out[i] = sum(p * s for p, s in zip(position, f.strides, strict=True))
        position[0] += f.element_strides[1]
        if position[0] > high:
            position[0] = low
            position[-1] += 1
    out += coordinates[0] * f.bits // 8
    return Rows(out, None if valid.all() else valid, *_inside(f, coordinates[0], f.channels))


def _advance(position: list[int], low: tuple[int, ...], high: list[int], steps: tuple[int, ...]) -> None:
    """Step to the next pixel of the box, in place."""
    for i, step in enumerate(steps):
        position[i] += step
        if position[i] <= high[i]:
            return
        position[i] = low[i]
    position[-1] += 1


def _start(f: TensorMapFields, coordinates: list[int]) -> int:
    return coordinates[0] * f.bits // 8 + sum(c * s for c, s in zip(coordinates[1:], f.strides, strict=True))


def _inside(f: TensorMapFields, column: int, count: int) -> tuple[int, int]:
    first = min(max(-column, 0), count) * f.bits // 8
    last = max(min(f.dims[0] - column, count), 0) * f.bits // 8
    return first, max(first, last)


@lru_cache(maxsize=256)
def _piece_offsets(mode: str, phase: int, count: int, inner: int) -> NDArray[np.int64]:
    pitch = max(inner, MODES[mode].span)
    at = (np.arange(count, dtype=np.int64)[:, None] * pitch + np.arange(0, inner, 16) + phase).reshape(-1)
    return (swizzle(mode, at) - phase) >> 4


def pieces(f: TensorMapFields, address: int, count: int) -> NDArray[np.int64]:
    """Return where each 16-byte piece of a box of `count` rows at `address` lies, in pieces from `address` on."""
    return _piece_offsets(f.swizzle, address % MODES[f.swizzle].period, count, inner_bytes(f))


def box_bytes(f: TensorMapFields, address: int, count: int) -> int:
    """Return the bytes of shared memory from `address` to the end of the last piece of a box of `count` rows."""
    inner = inner_bytes(f)
    return count * inner if inner >= MODES[f.swizzle].span else 16 * (int(pieces(f, address, count).max()) + 1)


def fill_pattern(f: TensorMapFields) -> NDArray[np.uint8]:
    """Return the two bytes that fill what lies outside the tensor: zeros, or the code that `fma.oob` takes for out of bounds.

    An H200 repeats 0x7ff7 through elements of every width; it is a NaN of each floating type.
    """
    return np.array([0x7FF7 if f.nan_fill else 0], np.uint16).view(np.uint8)
