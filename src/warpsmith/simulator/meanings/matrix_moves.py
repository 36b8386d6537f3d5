"""ldmatrix, stmatrix and movmatrix (PTX ISA 9.7.14.5.15 to 9.7.14.5.17)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.meanings.mbarrier import space_of
from warpsmith.simulator.meanings.registry import machine, refuse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.meanings.registry import Function, Refused

__all__: list[str] = []

_LANE = np.arange(32)
_ROW, _PAIR = _LANE // 4, _LANE % 4
"""Row of a lane in an 8x8 matrix, and its pair of neighbouring 16-bit elements."""


def _rows(x: Lanes, address: NDArray[np.int64], count: int, space: str | None) -> NDArray[np.int64]:
    """Return the row addresses `[matrix, row, C, W]` that lanes 0 … 8·count-1 of each warp give; they must be aligned to 16."""
    given = x.warps(address)
    used = x.active() & (np.arange(x.shape[1]) % 32 < 8 * count)
    if ((address & 15) != 0)[used].any():
        x.machine.check.misaligned(x, x.machine.shared, address, 16, used & ((address & 15) != 0))
    rows = np.moveaxis(given[..., : 8 * count], -1, 0)
    return rows.reshape(count, 8, *rows.shape[1:])


def _per_lane(x: Lanes, rows: NDArray[np.int64], row: NDArray[np.intp], offset: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return for each lane the address of its row plus its offset, `[C, T]`."""
    return x.threads_of(np.moveaxis(rows[row], 0, -1) + offset)


@machine("ldmatrix")
def ldmatrix(m: Match) -> Function | Refused:
    """Load 8x8 matrices of 16-bit elements; each lane gets two neighbours of a row (with .trans: of a column)."""
    if "m8n8" not in m.mnemonic:
        return refuse("its 8-bit and narrower forms are not modelled")
    count, trans, space = int(str(m["num"])[1:]), bool(m.get("trans")), space_of(m)

    def run(x: Lanes, d: Any, address: NDArray[np.int64]) -> None:
        matrices = _rows(x, np.broadcast_to(address, x.shape), count, space)
        for i, dest in enumerate(d if isinstance(d, list) else [d]):
            rows = matrices[i]
            if trans:
                parts = [x.load_items(space, _per_lane(x, rows, 2 * _PAIR + k, 2 * _ROW), 2) for k in (0, 1)]
            else:
                parts = [x.load_items(space, _per_lane(x, rows, _ROW, 4 * _PAIR), 4)]
            word = np.ascontiguousarray(np.concatenate([p[0] for p in parts], axis=-1))
            x.put(dest, word.view(np.uint32)[..., 0])
            undefined = [p[1].any(-1) for p in parts if p[1] is not None]
            if undefined:
                x.put_undefined(dest, np.logical_or.reduce(undefined))

    return run


@machine("stmatrix")
def stmatrix(m: Match) -> Function | Refused:
    """Store 8x8 matrices of 16-bit elements."""
    if "m8n8" not in m.mnemonic:
        return refuse("its 8-bit form is not modelled")
    count, trans, space = int(str(m["num"])[1:]), bool(m.get("trans")), space_of(m)

    def run(x: Lanes, address: NDArray[np.int64], source: Any) -> None:
        matrices = _rows(x, np.broadcast_to(address, x.shape), count, space)
        for i in range(count):
            rows, value = matrices[i], np.broadcast_to(np.asarray(source[i]), x.shape).astype(np.uint32)
            if not trans:
                x.store(space, _per_lane(x, rows, _ROW, 4 * _PAIR), np.ascontiguousarray(value)[..., None].view(np.uint8))
                continue
            for k in (0, 1):
                half = (value >> np.uint32(16 * k)).astype(np.uint16)
                x.store(space, _per_lane(x, rows, 2 * _PAIR + k, 2 * _ROW), half[..., None].view(np.uint8))

    return run


@machine("movmatrix")
def movmatrix(m: Match) -> Function:
    """Transpose an 8x8 matrix of 16-bit elements held by a warp."""

    def run(x: Lanes, d: Any, a: Any) -> None:
        halves = np.ascontiguousarray(x.warps(np.broadcast_to(np.asarray(a), x.shape)))[..., None].view(np.uint16)
        matrix = halves.reshape(*halves.shape[:-2], 8, 8)
        turned = np.ascontiguousarray(np.swapaxes(matrix, -1, -2)).reshape(*halves.shape)
        x.put(d, x.threads_of(turned.view(np.uint32)[..., 0]))

    return run
