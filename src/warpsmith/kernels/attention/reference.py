"""Attention in float64, what every attention kernel is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["attention"]


def attention(
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    *,
    causal: bool = False,
    scale: float | None = None,
    first_row: int = 0,
    window: int = 0,
    soft_cap: float = 0.0,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (output, log-sum-exp) of softmax(scale · q kᵀ) v.

    `q` is `[..., Sq, D]`, `k` and `v` are `[..., Sk, D]`; output `[..., Sq, D]`, log-sum-exp (natural logarithm)
    `[..., Sq]`. `scale` defaults to 1/√D. With `causal` query i sees keys j ≤ i + first_row, with a
    `window` those of j ≥ i + first_row - window; a query that sees none has output 0 and -inf. `soft_cap` bends scores to
    cap · tanh(score / cap). Heads of k and v may be fewer: each serves as many neighbouring heads of q.
    """
    q64, k64, v64 = (np.asarray(a).astype(np.float64) for a in (q, k, v))
    factor = q64.shape[-1] ** -0.5 if scale is None else scale
    if k64.ndim == 3 and k64.shape[0] != q64.shape[0]:
        k64, v64 = (np.repeat(a, q64.shape[0] // a.shape[0], axis=0) for a in (k64, v64))
    scores = factor * (q64 @ np.swapaxes(k64, -1, -2))
    if soft_cap:
        scores = soft_cap * np.tanh(scores / soft_cap)
    if causal:
        rows, columns = first_row + np.arange(scores.shape[-2])[:, None], np.arange(scores.shape[-1])[None, :]
        visible = (columns <= rows) & (columns >= rows - window) if window else columns <= rows
        scores = np.where(visible, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = weights.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return weights / np.where(total > 0, total, 1.0) @ v64, (top + np.log(total))[..., 0]
