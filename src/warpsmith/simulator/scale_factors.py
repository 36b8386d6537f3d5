"""Scale factors of block-scaled products: which bytes of which lanes hold them, and their values (PTX ISA 9.7.14.3).

Each row of A and each column of B has `count` factors, one for every k / `count` elements along K. Four of them fit a
register. The selector {byte-id, thread-id} says where they stand: of the four lanes of quad g, lane 2·thread-id holds those
of row g of A and the lane after it those of row g + 8; lane thread-id holds those of column g of B. The factors are the
`count` bytes from byte-id up, in the order of K.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from warpsmith.base.errors import CapabilityError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MIN_EXPONENT", "byte_values", "factors", "undefined_factors"]

MIN_EXPONENT = {"ue8m0": -127, "ue4m3": -6}
"""Exponent of the smallest normal factor, by type."""
_BYTES = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}


@cache
def byte_values(type_: str) -> NDArray[np.float64]:
    """Return the value of every byte; ue4m3 leaves the highest bit out."""
    byte = np.arange(256, dtype=np.uint8)
    if type_ == "ue4m3":
        return (byte & np.uint8(0x7F)).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    return np.where(byte == 255, np.nan, np.ldexp(1.0, byte.astype(np.int64) - 127))


def factors(
    held: NDArray[np.uint32], selector: NDArray[np.unsignedinteger], count: int, type_: str, operand: str
) -> NDArray[np.float64]:
    """Return the factors of `operand` "a" `[warp, 16, count]` or "b" `[warp, 8, count]`.

    `held` are the registers `[warp, 32]` and `selector` the byte-id and the thread-id `[2, warp, 32]`. Raise
    `CapabilityError` for a selector that the manual gives no meaning, or that differs between lanes of a warp.
    """
    if not (selector == selector[..., :1]).all():
        raise CapabilityError(
            f"simulator: byte-id-{operand} or thread-id-{operand} differs between lanes of a warp; use one value for all lanes"
        )
    byte, thread = selector[..., 0].astype(np.intp)
    _check("byte-id", operand, byte, _BYTES[count], f"scale_vec::{count}X")
    _check("thread-id", operand, thread, (0, 1) if operand == "a" else (0, 1, 2, 3), f"scale_{operand.upper()}")
    lane = _lanes(operand, thread)
    stored = np.ascontiguousarray(held)[..., None].view(np.uint8)
    warp = np.arange(held.shape[0])[:, None, None]
    return byte_values(type_)[stored[warp, lane[..., None], byte[:, None, None] + np.arange(count)]]


def undefined_factors(
    masks: NDArray[np.uint8], selector: NDArray[np.unsignedinteger], count: int, operand: str
) -> NDArray[np.bool_]:
    """Return for which rows of A `[warp, 16]` or columns of B `[warp, 8]` a factor has undefined bytes, `masks[warp, 32]`."""
    byte, thread = selector[..., 0].astype(np.uint8)
    chosen = masks[np.arange(masks.shape[0])[:, None], _lanes(operand, thread.astype(np.intp))]
    return (chosen >> byte[:, None] & np.uint8((1 << count) - 1)) != 0


def _lanes(operand: str, thread: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the lane that holds the factors of each row or column."""
    if operand == "a":
        row = np.arange(16)
        return 4 * (row % 8) + row // 8 + 2 * thread[:, None]
    return 4 * np.arange(8) + thread[:, None]


def _check(name: str, operand: str, found: NDArray[np.intp], allowed: tuple[int, ...], where: str) -> None:
    wrong = found[~np.isin(found, allowed)]
    if wrong.size:
        one = ", ".join(map(str, allowed))
        raise CapabilityError(f"simulator: {name}-{operand} {wrong[0]} has no meaning for {where}; use one of {one}")
