"""Attention in float64, what every attention kernel is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["attention"]


def attention(
    q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], *, causal: bool = False, scale: float | None = None, first_row: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (output, log-sum-exp) of softmax(scale · q kᵀ) v.

    `q` is `[..., Sq, D]`, `k` and `v` are `[..., Sk, D]`; output `[..., Sq, D]`, log-sum-exp (natural logarithm)
    `[..., Sq]`. `scale` defaults to 1/√D. With `causal` query i sees keys j ≤ i + first_row.
    """
    q64, k64, v64 = (np.asarray(a).astype(np.float64) for a in (q, k, v))
    factor = q64.shape[-1] ** -0.5 if scale is None else scale
    scores = factor * (q64 @ np.swapaxes(k64, -1, -2))
    if causal:
        rows, columns = first_row + np.arange(scores.shape[-2])[:, None], np.arange(scores.shape[-1])[None, :]
        scores = np.where(columns <= rows, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(axis=-1, keepdims=True)
    return (weights / total) @ v64, (top + np.log(total))[..., 0]
