"""Programs that copy boxes of interleaved tensors: where slices lie, and in which order they come.

What an H200 showed first: the innermost coordinate, extent and box count slices of 16 (or 32) bytes, each at that multiple
of the tensor's address, whatever the element type. So the arrays here have rows of as many slices as a box, which are as many
as elements have 16 bytes: no two pixels overlap.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.hardware.tensor_program import TensorProgram, load_program, random_map, store_program

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["interleaved_programs"]

_PLACES = ((0, 0, 0), (1, 2, 1), (-1, 0, 0), (0, -1, 0), (0, 0, -1), (0, 5, 1), (0, 1, 4))
_HIGHER = (
    ((3, 4, 5), (2, 2, 3), (0, 1, 1, 1)), ((3, 4, 5), (2, 2, 3), (1, 3, -1, 2)),
    ((2, 3, 3, 4), (2, 2, 2, 2), (0, 1, 1, 1, 0)), ((2, 3, 3, 4), (2, 2, 2, 3), (1, -1, 2, 1, 1)),
)  # fmt: skip
"""Outer extents and boxes of tensors of rank 4 and 5, outermost first; places, innermost first, that one in boxes."""


def interleaved_programs() -> Iterator[TensorProgram]:
    """Yield loads and stores of interleaved tensors."""
    for unit in (16, 32):
        for swizzle in ("none",) if unit == 16 else ("none", "32B"):
            for at in _PLACES:
                yield from _both(unit, swizzle, np.uint16, (5, 6), (2, 3), at)
            yield from _both(unit, swizzle, np.uint16, (5, 6), (2, 3), (unit // 2 - 1, 1, 1), boxes=2)  # the last slices
            for outer, box, at in _HIGHER:
                yield from _both(unit, swizzle, np.uint16, outer, box, at)
        for dtype in (np.uint8, np.float32):
            yield from _both(unit, "none", dtype, (5, 6), (2, 3), (1, 2, 1))


def _both(
    unit: int, swizzle: str, dtype: Any, outer: tuple[int, ...], box: tuple[int, ...], place: tuple[int, ...], boxes: int = 1
) -> Iterator[TensorProgram]:
    size = np.dtype(dtype).itemsize
    slices = 16 // size
    shape, counts = (*outer, slices * unit // size), (*box, slices * boxes)
    made = random_map(dtype, shape, box=counts, swizzle=swizzle, interleave=f"{unit}B")
    total = unit * math.prod(counts)
    at = [place[0] * slices, *place[1:]]
    name = f"interleave {unit}B {swizzle} {np.dtype(dtype).name} {counts} at {tuple(at)}"
    copy = f"cp.async.bulk.tensor.{len(at)}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    yield load_program(name, made, at, 2 * total, copy, sent=total)
    copy = f"cp.async.bulk.tensor.{len(at)}d.global.shared::cta.tile.bulk_group"
    yield store_program(name, made, at, total, copy)
