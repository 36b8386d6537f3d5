"""Which elements of D = A·B + C of a warp are undefined: those of the rows and columns that an undefined element reaches.

Kernels load tiles that reach over the end of their arrays and mask the columns of the product afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.packing import matrices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes

    Map = tuple[NDArray[np.intp], NDArray[np.intp]]
    Flags = NDArray[np.bool_]

__all__ = ["masks_of", "put_undefined_elements", "undefined_elements"]


def undefined_elements(
    x: Lanes, maps: tuple[Map, Map, Map], warps: Flags, metadata: int | None = None, *, tiles: int = 1,
    factors: tuple[Flags | None, Flags | None] = (None, None),
) -> Flags | None:  # fmt: skip
    """Return which elements of D of the chosen warps are undefined `[warp, m, n]`; None: none.

    Read before D is written. `maps` are the fragments of A, B and C, the operands 1 to 3, of `tiles` products one below the
    other; undefined `metadata` (an operand) of a sparse A leave nothing defined, nor do undefined `factors` of the rows
    `[warp, m]` and of the columns `[warp, n]` of D.
    """
    a, b, c = (_elements(x, i, where, warps) for i, where in enumerate(maps, 1))
    e = None if metadata is None else x.undefined(metadata)
    of_rows, of_columns = factors
    if all(f is None for f in (a, b, c, e, of_rows, of_columns)):
        return None
    rows, columns = int(maps[2][0].max()) + 1, int(maps[2][1].max()) + 1
    out = np.zeros((int(warps.sum()), tiles, rows // tiles, columns), np.bool_)
    if c is not None:
        out |= c.reshape(out.shape)
    if a is not None:
        out |= np.any(a, axis=2).reshape(*out.shape[:3], 1)
    if b is not None:
        out |= np.any(b.reshape(-1, tiles, b.shape[1] // tiles, columns), axis=2, keepdims=True)
    if e is not None:
        out |= np.any(e.reshape(-1, 32)[warps], axis=1)[:, None, None, None]
    if of_rows is not None:
        out |= of_rows[:, None, :, None]
    if of_columns is not None:
        out |= of_columns[:, None, None, :]
    return out.reshape(-1, rows, columns) if out.any() else None


def _elements(x: Lanes, operand: int, where: Map, warps: Flags) -> Flags | None:
    """Return the undefined elements `[warp, rows, columns]` of a fragment; None: none."""
    masks = x.undefined_bytes(operand)
    if masks is None:
        return None
    count = where[0].shape[-1]
    parts = np.moveaxis(masks, -1, 0)[..., None] & masks_of(count)
    shape = int(where[0].max()) + 1, int(where[1].max()) + 1
    return matrices(np.ascontiguousarray(parts != 0), where, shape, warps)


def masks_of(count: int) -> NDArray[np.uint8]:
    """Return the masks of the bytes of `count` elements in a register of 32 bits (one: of any width)."""
    if count == 1:
        return np.array([255], np.uint8)
    bits = 32 // count
    return np.array([sum(1 << b for b in range(bits * i // 8, (bits * (i + 1) - 1) // 8 + 1)) for i in range(count)], np.uint8)


def put_undefined_elements(x: Lanes, dests: Any, elements: Flags | None, where: Map, warps: Flags) -> None:
    """Mark the bytes of the registers of D, just written, that hold undefined elements `[warp, m, n]`."""
    if elements is None:
        return
    each = np.where(elements[:, where[0], where[1]], masks_of(where[0].shape[-1]), np.uint8(0))
    masks = np.moveaxis(np.bitwise_or.reduce(each, axis=-1), 0, 1)
    for dest, mask in zip(dests if hasattr(dests, "__iter__") else [dests], masks, strict=True):
        all_warps = np.zeros((warps.size, 32), np.uint8)
        all_warps[warps] = mask
        x.put_undefined(dest, all_warps.reshape(x.shape))
