"""Products in double precision (PTX ISA 9.7.14.5.14): one fused multiply-add after the other along k."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warpsmith.simulator.meanings.double import fused, nan_result

if TYPE_CHECKING:
    from numpy.typing import NDArray

    F64 = NDArray[np.float64]

__all__ = ["double_product"]


def double_product(a: F64, b: F64, c: F64, rounding: str = "rn") -> F64:
    """Return A·B + C of `a[i, m, k]`, `b[i, k, n]`, `c[i, m, n]`; every step is rounded as said."""
    total: F64 = c
    with np.errstate(all="ignore"):
        for k in range(a.shape[-1]):
            left, right, before = np.broadcast_arrays(a[..., k, None], b[..., k, None, :], total)
            total = nan_result(fused(left, right, before, rounding), *map(np.ascontiguousarray, (left, before, right)))
    return total
