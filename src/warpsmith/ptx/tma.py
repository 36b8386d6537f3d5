"""TMA on the three-dimensional view of a matrix: (64 elements, rows, columns / 64), `Tile(…, tma_rank=3)`.

Give `row` and `col` of the matrix, or `coords=(0, row, col / 64)` as the descriptor counts them.
"""

from __future__ import annotations

from warpsmith.base.place import error
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.trace import current
from warpsmith.ptx.cluster import rank
from warpsmith.ptx.copy_bulk import Coordinates, load, tensor_address
from warpsmith.ptx.cp import async_bulk

__all__ = ["load_3d", "load_3d_multicast", "store_3d"]

Pred = Reg | NegPred | None


def _coordinates(row: object, col: object, coords: Coordinates | None) -> Coordinates:
    if coords is not None:
        if row is not None or col is not None:
            raise error("give row and col, or coords, not both")
        return coords
    if row is None or col is None:
        raise error("a 3-D TMA copy needs row and col, or coords=(inner, row, column block)")
    if isinstance(col, int):
        if col % 64:
            raise error(f"col is a multiple of 64, and {col} is not")
        return (0, row, col // 64)  # type: ignore[return-value]
    return (0, row, col >> 6)  # type: ignore[operator, return-value]


def load_3d(
    dst: object, src: object, row: int | Reg | None = None, col: int | Reg | None = None, mbar: object = None,
    coords: Coordinates | None = None, *, pred: Pred = None,
) -> None:  # fmt: skip
    """Load one box; its bytes complete on `mbar`."""
    if mbar is None:
        raise error("ptx.tma.load_3d needs mbar=, the barrier its bytes complete on")
    async_bulk.tensor_3d(dst=dst, src=src, coord=_coordinates(row, col, coords), mbar=mbar, pred=pred)


def load_3d_multicast(
    dst: object, src: object, row: int | Reg | None = None, col: int | Reg | None = None, mbar: object = None,
    mask: int | Reg | None = None, coords: Coordinates | None = None, *, issuer: int | Reg | NegPred | None = None,
    pred: Pred = None,
) -> None:  # fmt: skip
    """Load one box into every CTA of `mask`. Only `issuer` (a CTA rank, or a predicate) issues it."""
    if mbar is None or mask is None:
        raise error("ptx.tma.load_3d_multicast needs mbar= and mask=")
    if issuer is not None:
        chosen: Reg | NegPred
        if isinstance(issuer, NegPred) or (isinstance(issuer, Reg) and issuer.type == "pred"):
            chosen = issuer
        else:
            chosen = rank(issuer)
        if pred is not None:
            raise error("give issuer= or pred=, not both", "combine them with ptx.inst.and_.pred")
        pred = chosen
    source = tensor_address(src, _coordinates(row, col, coords), 3)
    load("shared::cluster", "tile", 3, dst, source, mbar, mask=mask, pred=pred)


def store_3d(
    dst: object, src: object, row: int | Reg | None = None, col: int | Reg | None = None,
    coords: Coordinates | None = None, *, pred: Pred = None,
) -> None:  # fmt: skip
    """Store one box from shared memory."""
    current()
    async_bulk.tensor_3d.store(dst=dst, src=src, coord=_coordinates(row, col, coords), pred=pred)
