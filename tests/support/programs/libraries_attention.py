"""tests/data/libraries: FlashAttention-2, its kernels launched with the parameters and shapes of its host functions."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from programs.captured import launches
from programs.program import Collection, Judge

F16, BF16 = np.float16, ml_dtypes.bfloat16
_collection = Collection("libraries", "", ("sm_80", "sm_90a", "sm_120a"))
program = partial(_collection, per_arch=True, slow=True)
PROGRAMS = _collection.programs


def attention(q: Any, k: Any, v: Any, scale: float, *, causal: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """O `[m, h, d]`, sums' logarithms `[h, m]` and probabilities `[h, m, n]` of Q `[m, h, d]`, K and V `[n, groups, d]`.

    Causal: the last query sees all keys.
    """
    q, k, v = (np.asarray(x).astype(float).swapaxes(0, 1) for x in (q, k, v))
    k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
    scores = q @ k.swapaxes(1, 2) * scale
    if causal:
        m, n = scores.shape[1:]
        scores = np.where(np.arange(n) > np.arange(m)[:, None] + n - m, -np.inf, scores)
    most = scores.max(-1, keepdims=True)
    e = np.exp(scores - most)
    total = e.sum(-1, keepdims=True)
    return (e / total @ v).swapaxes(0, 1), (most + np.log(total))[..., 0], e / total


def close(got: np.ndarray, want: np.ndarray, ulps: float) -> None:
    """Compare to some units in the last place of the greatest value: probabilities are rounded, too."""
    off = float(np.abs(got.astype(float) - want).max())
    assert off <= ulps * float(ml_dtypes.finfo(got.dtype).eps) * np.abs(want).max(), off


_ROWS = ("uninitialised-read",)
"""Rows of queries behind the last are not cleared in shared memory; normalising them branches on their sums."""


@program("flash_attention_2", source="flash_attention_2", remarks=_ROWS)
def flash_attention_2(rng: np.random.Generator, arch: str) -> Judge:
    """FlashAttention-2, causal; two heads of queries share one of keys, lengths fill no tile"""
    h, groups, m, n, d = 4, 2, 200, 300, 64
    q, k, v = (rng.standard_normal((rows, heads, d)).astype(F16) for rows, heads in ((m, h), (n, groups), (n, groups)))
    o, sums = np.zeros((m, h, d), F16), np.zeros((h, m), np.float32)
    arrays = {"q": q, "k": k, "v": v, "o": o, "sums": sums, "state": np.zeros(2, np.uint64)}
    yield from launches("libraries", f"flash_attention_2.{arch}", arrays)
    want, logs, _ = attention(q, k, v, 0.125, causal=True)
    close(o, want, 2)
    assert np.abs(sums - logs).max() < 1e-5 * np.abs(logs).max()


@program("flash_attention_2_dropout", source="flash_attention_2_dropout", remarks=_ROWS)
def flash_attention_2_dropout(rng: np.random.Generator, arch: str) -> Judge:
    """FlashAttention-2 of bfloats, head dimension 128, with dropout by Philox; values that show each probability"""
    m, n, d = 100, 150, 128
    q, k = (rng.standard_normal((rows, 1, d)).astype(BF16) for rows in (m, n))
    v = np.ones((n, 1, d), BF16)
    v[:, 0, :] = np.arange(n)[:, None] == np.arange(d)  # a column for each of the first keys: O is P itself
    o, sums, state = np.zeros((m, 1, d), BF16), np.zeros((1, m), np.float32), np.zeros(2, np.uint64)
    arrays = {"q": q, "k": k, "v": v, "o": o, "sums": sums, "state": state}
    yield from launches("libraries", f"flash_attention_2_dropout.{arch}", arrays)
    _, logs, p = attention(q, k, v, 0.125, causal=False)
    assert state.tolist() == [0x123456789ABCDEF, 77]
    assert np.abs(sums - logs).max() < 1e-5 * np.abs(logs).max()
    got, want = o[:, 0].astype(float), p[0, :, :d] / 0.8
    kept = got != 0
    assert abs(kept.mean() - 205 / 256) < 0.01  # a byte at most 204 is kept
    assert (np.abs(got - want)[kept] <= 0.02 * want[kept]).all()


@program("flash_attention_2_backward", source="flash_attention_2_backward", ordered=False)
def flash_attention_2_backward(rng: np.random.Generator, arch: str) -> Judge:
    """Gradients of FlashAttention-2 by three kernels; dQ is added up by atomics"""
    h, m, n, d = 2, 200, 150, 64
    q, k, v, do = (rng.standard_normal((rows, h, d)).astype(F16) for rows in (m, n, n, m))
    o, logs, p = attention(q, k, v, 0.125, causal=False)
    o, sums = o.astype(F16), np.ascontiguousarray(logs, np.float32)
    dq, dk, dv = np.zeros((m, h, d), F16), np.zeros((n, h, d), F16), np.zeros((n, h, d), F16)
    arrays = {"q": q, "k": k, "v": v, "o": o, "sums": sums, "state": np.zeros(2, np.uint64), "do": do}
    work = {"dq_sums": np.zeros((256, h, d), np.float32), "do_o": np.zeros((h, 256), np.float32)}
    yield from launches("libraries", f"flash_attention_2_backward.{arch}", {**arrays, "dq": dq, "dk": dk, "dv": dv, **work})
    g, o_, q_, k_, v_ = (x.astype(float).swapaxes(0, 1) for x in (do, o, q, k, v))
    ds = p * (g @ v_.swapaxes(1, 2) - (g * o_).sum(-1, keepdims=True)) * 0.125
    for got, want in ((dv, p.swapaxes(1, 2) @ g), (dk, ds.swapaxes(1, 2) @ q_), (dq, ds @ k_)):
        close(got.swapaxes(0, 1), want, 3)
