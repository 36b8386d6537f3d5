"""Attention in e4m3 on the simulator, each output against float64 attention on the same bytes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from warpsmith.kernels.attention import hopper_fp8
from warpsmith.kernels.attention.reference import attention

__all__ = ["agrees", "inputs"]


def inputs(config: hopper_fp8.Config, seed: int = 0) -> tuple[list[Any], list[Any]]:
    """Return the kernel's arguments, and q, k and v in float64."""
    rng, c = np.random.default_rng(seed), config
    shapes = (c.heads, c.sequence, c.dim), (c.key_heads, c.key_count, c.dim), (c.key_heads, c.key_count, c.width)
    q, k, v = (rng.standard_normal(shape).astype(ml_dtypes.float8_e4m3fn) for shape in shapes)
    factors = [rng.uniform(0.5, 1.5, c.key_heads).astype(np.float32) for _ in range(3)]
    of_q = np.repeat(factors[0], c.heads // c.key_heads)
    exact = [x.astype(np.float64) * f[:, None, None] for x, f in zip((q, k, v), (of_q, *factors[1:]), strict=True)]
    if c.columns:
        k, v = k.reshape(c.key_heads, -1, 4, c.dim), np.ascontiguousarray(v.swapaxes(1, 2))
    return [q, k, v, *factors], exact


def _score_error(c: hopper_fp8.Config, q: Any, k: Any) -> Any:
    """Return by how much the scores of a row, and so its log-sum-exp, may be off.

    Each step of 32 numbers aligns its products to the largest and rounds the sum, both to 13 bits towards zero.
    """
    factor = q.shape[-1] ** -0.5 if c.scale is None else c.scale
    keys = np.repeat(np.abs(k), c.heads // c.key_heads, axis=0).swapaxes(1, 2)
    steps = -(-c.dim // 32)
    return factor * (np.abs(q) @ keys).max(axis=-1) * steps * 2.0**-12 + c.soft_cap * 2.0**-10 + 1e-5


def agrees(config: hopper_fp8.Config, **options: Any) -> None:
    """Run a problem: no findings, every output within its bound and a quarter of it in the mean square, log-sum-exps too."""
    c = config
    given, (q, k, v) = inputs(c)
    result = hopper_fp8.build(c).simulate(*given, **options)
    assert [str(f) for f in result.findings] == []
    assert result.completed
    o, lse = result.outputs
    what: dict[str, Any] = {"causal": c.causal, "scale": c.scale, "first_row": c.ahead, "window": c.window}
    what["soft_cap"] = c.soft_cap
    want, want_lse = attention(q, k, v, **what)
    identity = np.broadcast_to(np.eye(c.key_count), (c.key_heads, c.key_count, c.key_count))
    weights, _ = attention(q, k, identity, **what)
    values = np.repeat(v, c.heads // c.key_heads, axis=0)
    bound = hopper_fp8.error_bound(weights, values, threshold=c.threshold)
    error = np.abs(o.astype(np.float64) - want)
    assert (error <= bound).all()
    assert np.sqrt((error**2).mean()) <= np.sqrt((bound**2).mean()) / 4
    seen = np.isfinite(want_lse)
    assert (np.abs(lse[seen] - want_lse[seen]) <= _score_error(c, q, k)[seen]).all()
    assert (lse[~seen] == -np.inf).all()
