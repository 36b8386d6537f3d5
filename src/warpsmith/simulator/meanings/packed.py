"""Packed registers seen as arrays of their elements: a function over elements becomes one over registers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["elements", "over_lanes", "packed_dtype"]

Array = NDArray[Any]
Fn = Callable[..., None]


def packed_dtype(name: str) -> np.dtype[Any] | None:
    """Return the element dtype of a packed type: int16 for s16x2, uint16 for f16x2 and bf16x2, float32 for f32x2; else None."""
    m = re.fullmatch(r"(u|s|b?f)(8|16|32)x([24])", name)
    if not m:
        return None
    kind, bits, _ = m.groups()
    if kind in ("f", "bf"):
        return np.dtype(np.float32) if bits == "32" else np.dtype(np.uint16)
    return np.dtype(f"{'int' if kind == 's' else 'uint'}{bits}")


def elements(x: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """View registers of `shape` as their elements: the last axis is the number of elements as long."""
    a = np.asarray(x)
    if a.shape != shape:
        a = np.broadcast_to(a, shape)
    if a.strides[-1] != a.itemsize:
        a = np.ascontiguousarray(a)
    return a.view(dtype)


def over_lanes(fn: Fn, dtype: np.dtype[Any]) -> Fn:
    """Return `fn`, which works on element arrays, as a function on packed registers."""

    def packed(out: Array, *operands: Any) -> None:
        views = [None if x is None else elements(x, dtype, out.shape) for x in operands]
        if out.strides[-1] == out.itemsize:
            fn(out.view(dtype), *views)
            return
        whole = np.empty(out.shape, out.dtype)
        fn(whole.view(dtype), *views)
        out[...] = whole

    return packed
