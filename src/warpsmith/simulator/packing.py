"""Registers of a warp to elements and back: packed parts, fragment maps, masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes

    Map = tuple[NDArray[np.intp], NDArray[np.intp]]

__all__ = ["elements", "matrices", "packed", "registers", "write_registers"]


def registers(x: Lanes, operand: Any) -> NDArray[Any]:
    """Return a vector operand as unsigned bits `[n, C, T]`."""
    if isinstance(operand, np.ndarray) and operand.ndim == 3:
        array = operand
    else:
        items = operand if isinstance(operand, list | tuple) else [operand]
        array = np.stack([np.broadcast_to(np.asarray(r), x.shape) for r in items])
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def elements(bits: NDArray[Any], width: int) -> NDArray[Any]:
    """Split registers `[…]` into elements of `width` bits `[…, parts]`, lowest first."""
    last = np.ascontiguousarray(bits)[..., None]
    if width >= 8:
        return last.view(f"u{width // 8}") if width < 8 * bits.dtype.itemsize else last
    data = last.view(np.uint8)
    if width == 1:
        return np.unpackbits(data, axis=-1, bitorder="little")
    out = np.empty((*data.shape[:-1], data.shape[-1] * 2), np.uint8)
    out[..., 0::2], out[..., 1::2] = data & 15, data >> 4
    return out


_inverses: dict[int, tuple[Map, NDArray[np.intp]]] = {}
"""Fragment map (by identity; the maps are cached where they are made) -> where each element stands among the registers."""


def _inverse(where: Map, shape: tuple[int, int]) -> NDArray[np.intp]:
    found = _inverses.get(id(where))
    if found is None:
        inverse = np.zeros(shape, np.intp)
        inverse[where[0].reshape(-1), where[1].reshape(-1)] = np.arange(where[0].size)
        found = _inverses[id(where)] = (where, inverse)
    return found[1]


def matrices(parts: NDArray[Any], where: Map, shape: tuple[int, int], warps: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the matrices `[warp, *shape]` of the chosen warps from elements `[n, C, T, parts]`."""
    n, per = parts.shape[0], parts.shape[-1]
    flat = parts.reshape(n, -1, 32, per)[:, warps]
    flat = np.moveaxis(flat, 1, 0).reshape(flat.shape[1], -1)
    inverse = _inverse(where, shape)
    return flat[:, inverse.reshape(-1)].reshape(-1, *shape)


def packed(values: NDArray[Any], where: Map) -> NDArray[Any]:
    """Return registers `[n, warp, 32]` of matrices `[warp, m, n]`: f16 values in pairs, others one a register."""
    row, column = where
    taken = values[:, row, column]
    if row.shape[-1] == 2:
        taken = np.ascontiguousarray(taken.astype(np.float16)).view(np.uint32)
    return np.moveaxis(taken[..., 0], 0, 1)


def write_registers(x: Lanes, dests: Any, values: NDArray[Any], warps: NDArray[np.bool_]) -> None:
    """Write registers `[n, warp, 32]` of the chosen warps to the destinations."""
    for dest, value in zip(dests, values, strict=True):
        if dest is None:
            continue
        if warps.all():
            x.put(dest, np.ascontiguousarray(value).reshape(x.shape))
            continue
        whole = np.zeros((warps.size, 32), value.dtype)
        whole[warps] = value
        x.put(dest, whole.reshape(x.shape))
