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

__all__ = ["put_undefined_elements", "undefined_elements"]


def undefined_elements(x: Lanes, maps: tuple[Map, Map, Map], warps: Flags, metadata: int | None = None) -> Flags | None:
    """Return which elements of D of the chosen warps are undefined `[warp, m, n]`; None: none.

    Read before D is written. `maps` are the fragments of A, B and C, the operands 1 to 3; undefined `metadata` (an operand)
    of a sparse A leave nothing defined.
    """
    a, b, c = (_elements(x, i, where, warps) for i, where in enumerate(maps, 1))
    e = None if metadata is None else x.undefined(metadata)
    if a is None and b is None and c is None and e is None:
        return None
    rows, columns = int(maps[2][0].max()) + 1, int(maps[2][1].max()) + 1
    out = np.zeros((int(warps.sum()), rows, columns), np.bool_) if c is None else c
    if a is not None:
        out = out | np.any(a, axis=2, keepdims=True)
    if b is not None:
        out = out | np.any(b, axis=1, keepdims=True)
    if e is not None:
        out = out | np.any(e.reshape(-1, 32, 1)[warps], axis=1, keepdims=True)
    return out if out.any() else None


def _elements(x: Lanes, operand: int, where: Map, warps: Flags) -> Flags | None:
    """Return the undefined elements `[warp, rows, columns]` of a fragment; None: none."""
    items = x.undefined_items(operand)
    if items is None:
        return None
    parts = np.moveaxis(items, -1, 0)[..., None].repeat(where[0].shape[-1], axis=-1)
    shape = int(where[0].max()) + 1, int(where[1].max()) + 1
    return matrices(np.ascontiguousarray(parts), where, shape, warps)


def put_undefined_elements(x: Lanes, dests: Any, elements: Flags | None, where: Map, warps: Flags) -> None:
    """Mark the registers of D, just written, that hold undefined elements `[warp, m, n]`."""
    if elements is None:
        return
    lanes = np.moveaxis(np.logical_or.reduce(elements[:, where[0], where[1]], axis=-1), 0, 1)
    for dest, flags in zip(dests if hasattr(dests, "__iter__") else [dests], lanes, strict=True):
        whole = np.zeros((warps.size, 32), np.bool_)
        whole[warps] = flags
        x.put_undefined(dest, whole.reshape(x.shape))
