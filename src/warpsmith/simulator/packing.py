"""Registers of a warp to elements and back: packed parts, fragment maps, masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.operands import VectorDest

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes

    Map = tuple[NDArray[np.intp], NDArray[np.intp]]

__all__ = ["elements", "gathered", "matrices", "packed", "registers", "spread", "write_registers"]

_ELEMENTS, _KEPT = 1 << 18, 48
"""Largest index that is kept between calls, and how many."""


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


_indices: dict[tuple[Any, ...], tuple[Map, NDArray[np.intp]]] = {}


def _kept(where: Map, key: tuple[Any, ...], make: Callable[[], NDArray[np.intp]]) -> NDArray[np.intp]:
    """Return the index of a fragment map and a key, made once; indices that are too large are made each time."""
    found = _indices.get((id(where), *key))
    if found is None:
        found = where, make()
        if found[1].size > _ELEMENTS:
            return found[1]
        if len(_indices) >= _KEPT:
            del _indices[next(iter(_indices))]
        _indices[id(where), *key] = found
    return found[1]


def gathered(parts: NDArray[Any], where: Map, shape: tuple[int, int], count: int = 1) -> NDArray[Any]:
    """Return matrices `[warp, m, count·n]` of all warps from elements `[count·registers, C, T, parts]`, side by side."""
    per, warps = parts.shape[-1], parts.shape[1] * parts.shape[2] // 32

    def make() -> NDArray[np.intp]:
        register, rest = np.divmod(_inverse(where, shape), 32 * per)
        first = np.arange(count)[:, None] * where[0].shape[0] + register[:, None, :]
        return (first * warps + np.arange(warps)[:, None, None, None]) * (32 * per) + rest[:, None, :]

    index = _kept(where, ("gather", shape, count, warps, per), make)
    return parts.reshape(-1).take(index, mode="clip").reshape(warps, shape[0], -1)


def spread(values: NDArray[Any], where: Map, count: int = 1) -> NDArray[Any]:
    """Undo `gathered`: registers `[count·registers, warp, 32]` of matrices `[warp, m, count·n]`, f16 values in pairs."""
    warps, m, wide = values.shape
    row, column = where

    def make() -> NDArray[np.intp]:
        warp, each = np.arange(warps)[:, None, None], np.arange(count)[:, None, None, None, None]
        return (warp * m + row[:, None]) * wide + column[:, None] + each * (wide // count)

    taken = values.reshape(-1).take(_kept(where, ("spread", values.shape, count), make), mode="clip")
    if row.shape[-1] == 2:
        taken = taken.astype(np.float16).view(np.uint32)
    return taken.reshape(-1, warps, 32)


def matrices(parts: NDArray[Any], where: Map, shape: tuple[int, int], warps: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the matrices `[warp, *shape]` of the chosen warps from elements `[n, C, T, parts]`."""
    if warps.all():
        return gathered(parts, where, shape)
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
    everyone, plain = bool(warps.all()), isinstance(dests, VectorDest)
    if everyone and plain and dests.array is not None and x.mask is None and x.machine.registers.undefined is None:
        np.copyto(dests.array, values.reshape(-1, *x.shape).view(dests.array.dtype))
        return
    for dest, value in zip(dests, values, strict=True):
        if dest is None:
            continue
        if everyone:
            x.put(dest, np.ascontiguousarray(value).reshape(x.shape))
            continue
        whole = np.zeros((warps.size, 32), value.dtype)
        whole[warps] = value
        x.put(dest, whole.reshape(x.shape))
