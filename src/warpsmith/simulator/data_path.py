"""Where a product of tcgen05.mma stands in tensor memory: layouts A to G (PTX ISA 9.7.18.10.5).

    M    pair  .ws  A sparse  layout  rows of D                        columns of D
    256  yes                  A       CTA r has rows 128r.., lane = row  all
    128  yes        no        B       CTA r has rows 64r..; lanes 0-63   lower half of N; lanes 64-127: the upper half
    128  yes        yes       C       CTA r has rows 64r.., 16 to a warp all
    128  no                   D       lane = row                         all
    64   no    yes            E       lanes 0-63                         lower half of N; lanes 64-127: the upper half
    64   no    no             F       16 rows to a warp                  all
    32   no    yes            G       lanes 0-31                         a quarter of N in each warp's lanes

Layouts C and F may begin at lane 16. An A in tensor memory is read through the same lanes: where D is split along N, each
part of the data path reads its own lanes, so that A stands there twice (B, E) or four times (G).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Part", "parts_of"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One part of the data path: rows `row:row + len(lanes)` and columns `n0:n1` of D."""

    cta: int
    """0: the even CTA of the pair (or the only one), 1: the odd one."""
    row: int
    lanes: NDArray[np.intp]
    n0: int
    n1: int


@cache
def parts_of(m: int, n: int, *, pair: bool, ws: bool, sparse: bool, lane: int) -> tuple[Part, ...] | None:
    """Return the parts of an M x N product; None: there is no such layout. `lane` is the lane of the address."""
    every = np.arange(128)
    half = np.concatenate([32 * w + np.arange(16) for w in range(4)]) + lane
    if m == 256 and pair and lane == 0:
        return tuple(Part(r, 128 * r, every, 0, n) for r in (0, 1))
    if m == 128 and pair and not sparse and lane == 0:
        return tuple(
            Part(r, 64 * r, every[64 * h : 64 * h + 64], n // 2 * h, n // 2 * (h + 1)) for r in (0, 1) for h in (0, 1)
        )  # fmt: skip
    if m == 128 and pair and sparse and lane in (0, 16):
        return tuple(Part(r, 64 * r, half, 0, n) for r in (0, 1))
    if pair:
        return None
    if m == 128 and lane == 0:
        return (Part(0, 0, every, 0, n),)
    if m == 64 and not ws and lane in (0, 16):
        return (Part(0, 0, half, 0, n),)
    if m == 64 and ws and lane == 0:
        return tuple(Part(0, 0, every[64 * h : 64 * h + 64], n // 2 * h, n // 2 * (h + 1)) for h in (0, 1))
    if m == 32 and ws and lane == 0:
        return tuple(Part(0, 0, every[32 * q : 32 * q + 32], n // 4 * q, n // 4 * (q + 1)) for q in range(4))
    return None
