"""Attention over packed sequences on the simulator, each sequence against float64."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from warpsmith.kernels.attention import hopper, hopper_packed
from warpsmith.kernels.attention.reference import attention

__all__ = ["Lengths", "agrees", "inputs"]

Lengths = list[int]


def inputs(config: hopper.Config, lengths: Lengths, key_lengths: Lengths) -> tuple[Any, Any, Any]:
    """Return q, k and v of a batch."""
    rng = np.random.default_rng(3)
    shapes = [
        (sum(lengths), config.heads, config.dim),
        (sum(key_lengths), config.key_heads, config.dim),
        (sum(key_lengths), config.key_heads, config.width),
    ]
    q, k, v = (rng.standard_normal(shape).astype(np.float16) for shape in shapes)
    return q, k, v


def parts(array: Any, lengths: Lengths) -> list[Any]:
    """The sequences of a packed array as `[heads, length, width]`."""
    return [x.transpose(1, 0, 2) for x in np.split(array, list(accumulate(lengths))[:-1])]


def agrees(config: hopper.Config, lengths: Lengths, key_lengths: Lengths | None = None, **options: Any) -> None:
    """Run a batch and compare each sequence; there are no findings."""
    keys = lengths if key_lengths is None else key_lengths
    q, k, v = inputs(config, lengths, keys)
    result = hopper_packed.build(config).simulate(q, k, v, hopper_packed.plan(config, lengths, key_lengths), **options)
    assert [str(f) for f in result.findings] == []
    found_lse = np.split(result.outputs[1], list(accumulate(lengths))[:-1], axis=1)
    packed = zip(parts(q, lengths), parts(k, keys), parts(v, keys), parts(result.outputs[0], lengths), found_lse, strict=True)
    for one_q, one_k, one_v, o, lse in packed:
        if not one_q.shape[1]:
            continue
        if not one_k.shape[1]:
            assert not o.any()
            assert (lse == -np.inf).all()
            continue
        ahead = one_k.shape[1] - one_q.shape[1]
        want, want_lse = attention(one_q, one_k, one_v, causal=config.causal, first_row=ahead, window=config.window)
        assert np.abs(o.astype(np.float64) - want).max() <= 4e-3
        seen = np.isfinite(want_lse)
        assert np.abs(lse[seen] - want_lse[seen]).max() <= 4e-3
        assert (lse[~seen] == -np.inf).all()
