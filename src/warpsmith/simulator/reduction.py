"""Reductions into memory by asynchronous copies: one rounding per element, in the order of the elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from warpsmith.base.errors import CapabilityError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from warpsmith.simulator.memory import Space

    Step = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]

__all__ = ["reduce_into"]

_DTYPES: dict[str, Any] = {
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "b32": np.uint32,
    "b64": np.uint64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


def _inc(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    return np.where(a >= b, np.zeros_like(a), a + 1)


def _dec(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    return np.where((a == 0) | (a > b), b, a - 1)


_OPERATIONS: dict[str, Any] = {
    "add": np.add, "min": np.fmin, "max": np.fmax, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "inc": _inc, "dec": _dec,
}  # fmt: skip


def reduce_into(
    space: Space, index: NDArray[np.int64], data: NDArray[np.uint8], element: str, op: str, step: Step | None = None
) -> None:
    """Combine elements `data` `[n, bytes]` with memory at byte indices `[n]` (no index twice); `step` in place of `op`'s own.

    Raise `CapabilityError` for an element type that has no reductions.
    """
    dtype = _DTYPES.get(element)
    if dtype is None:
        raise CapabilityError(f"simulator: reduction `.{op}` of {element} is not modelled")
    size = np.dtype(dtype).itemsize
    space.note_read(index, size)
    words = space.views[size].view(f"u{size}")
    at = index >> (size.bit_length() - 1)
    new = np.ascontiguousarray(data).view(dtype).reshape(-1)
    with np.errstate(all="ignore"):
        old = words[at].view(dtype)
        words[at] = (step or _OPERATIONS[op])(old, new).astype(dtype).view(f"u{size}")
