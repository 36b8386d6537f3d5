"""tests/data/libraries: the convolution and the scan of state-space models (causal-conv1d, mamba-ssm)."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from programs.captured import launches
from programs.program import Collection, Judge

BF16, F16 = ml_dtypes.bfloat16, np.float16
_collection = Collection("libraries", "", ("sm_80", "sm_90a", "sm_120a"))
program = partial(_collection, per_arch=True, slow=True)
PROGRAMS = _collection.programs


def _convolution(rng: np.random.Generator, name: str, shape: tuple[int, int, int], *, last: bool) -> Judge:
    """`shape`: batch, channels, length; `last`: channels come last in memory, and places belong to several sequences."""
    batch, dim, length = shape
    x, weights = rng.standard_normal(shape).astype(BF16), rng.standard_normal((dim, 4)).astype(np.float32)
    biases = rng.standard_normal(dim).astype(np.float32)
    sequences = np.sort(rng.integers(0, 4, (batch, length)), axis=1).astype(np.int32)
    held = np.ascontiguousarray(x.swapaxes(1, 2)) if last else x
    out = np.zeros_like(held)
    arrays = {"x": held, "weights": weights, "biases": biases, "out": out, "sequences": sequences}
    yield from launches("libraries", name, arrays)
    padded = np.concatenate([np.zeros((batch, dim, 3)), x.astype(float)], axis=2)
    of = np.concatenate([np.full((batch, 3), -1), sequences], axis=1)
    sums = np.broadcast_to(biases.astype(float)[:, None], shape).copy()
    for i in range(4):
        seen = of[:, None, i : i + length] == sequences[:, None, :] if last else True
        sums += np.where(seen, padded[..., i : i + length], 0) * weights.astype(float)[:, i, None]
    want = sums / (1 + np.exp(-sums))
    got = (out.swapaxes(1, 2) if last else out).astype(float)
    assert (np.abs(got - want) <= 2.0**-8 * np.abs(want) + 1e-5).all()


@program("causal_conv1d", source="causal_conv1d")
def causal_conv1d(rng: np.random.Generator, arch: str) -> Judge:
    """causal-conv1d: a convolution along sequences of bfloats, with SiLU; a length that is no multiple of eight"""
    yield from _convolution(rng, f"causal_conv1d.{arch}", (2, 3, 1404), last=False)


@program("causal_conv1d_channels_last", source="causal_conv1d")
def causal_conv1d_channels_last(rng: np.random.Generator, arch: str) -> Judge:
    """The same with channels last in memory, over several sequences one behind the other"""
    yield from _convolution(rng, f"causal_conv1d_channels_last.{arch}", (1, 96, 150), last=True)


@program("selective_scan", source="selective_scan")
def selective_scan(rng: np.random.Generator, arch: str) -> Judge:
    """mamba-ssm's selective scan of halves: B and C vary, softplus, a gate; block scans of pairs over three chunks"""
    batch, dim, length, states = 2, 3, 1100, 4
    a = -np.exp(rng.standard_normal((dim, states))).astype(np.float32)
    b, c = (rng.standard_normal((batch, 1, states, length)).astype(F16) for _ in range(2))
    d, biases = rng.standard_normal((2, dim)).astype(np.float32)
    u, delta, z = (rng.standard_normal((batch, dim, length)).astype(F16) for _ in range(3))
    out, gated = np.zeros_like(u), np.zeros_like(u)
    ends = np.zeros((batch, dim, 3, states, 2), np.float32)
    arrays = {"a": a, "b": b, "c": c, "d": d, "u": u, "delta": delta, "biases": biases, "out": out, "states": ends}
    yield from launches("libraries", f"selective_scan.{arch}", {**arrays, "z": z, "gated": gated})
    step = np.log1p(np.exp(delta.astype(float) + biases[:, None]))
    state, want = np.zeros((batch, dim, states)), np.zeros(u.shape)
    for t in range(length):
        add = step[..., t, None] * u[..., t, None].astype(float) * b[:, :, :, t].astype(float)
        state = np.exp(step[..., t, None] * a) * state + add
        want[..., t] = (state * c[:, :, :, t].astype(float)).sum(-1) + d * u[..., t].astype(float)
    assert np.abs(out.astype(float) - want).max() < 2.0**-9 * np.abs(want).max()
    gate = z.astype(float) / (1 + np.exp(-z.astype(float)))
    assert np.abs(gated.astype(float) - want * gate).max() < 2.0**-9 * np.abs(want * gate).max()
    assert np.abs(ends[..., -1, :, 1] - state).max() < 1e-4 * np.abs(state).max()
