"""float64 attention on the GPU: what every kernel is compared with before it is timed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from warpsmith.kernels.attention.hopper_fp8 import error_bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.study.attention.cells import Cell

__all__ = ["LIMIT", "Judgement", "judge"]

LIMIT = {"f16": 4e-3, "bf16": 3e-2}
"""Largest difference of an output from float64 attention; for e4m3 each output has its own (`hopper_fp8.error_bound`)."""
_ROWS = 192


@dataclass(frozen=True, slots=True)
class Judgement:
    """Largest and root mean square difference from float64 attention, and the largest share of what is allowed."""

    error: float
    rms: float
    share: float


def _rows(sequence: int) -> list[slice]:
    """First, middle and last rows; all of them in short sequences."""
    if sequence <= 3 * _ROWS:
        return [slice(0, sequence)]
    middle = sequence // 2 - _ROWS // 2
    return [slice(0, _ROWS), slice(middle, middle + _ROWS), slice(sequence - _ROWS, sequence)]


def _head(inputs: Sequence[Any], b: int, h: int) -> list[Any]:
    """Return q, k and v of a head in float64, times their factors if there are any."""
    factors = [f[b, h].double() for f in inputs[3:]] or [1.0, 1.0, 1.0]
    return [x[b, h].double() * f for x, f in zip(inputs[:3], factors, strict=True)]


def judge(cell: Cell, dtype: str, inputs: Sequence[Any], out: Any) -> Judgement:
    """Compare with float64 attention in first, middle and last rows of the first and last head.

    `inputs` are q, k and v, `[batch, heads, …]`, with e4m3 also the three factors `[batch, heads]`.
    """
    torch: Any = import_module("torch")
    errors, shares = [], []
    for b, h in ((0, 0), (cell.batch - 1, cell.heads - 1)):
        q, keys, values = _head(inputs, b, h)
        for rows in _rows(cell.sequence):
            scores = q[rows] @ keys.T * cell.dim**-0.5
            if cell.causal:
                row = torch.arange(rows.start, rows.stop, device=q.device)[:, None]
                hidden = torch.arange(cell.sequence, device=q.device)[None, :] > row
                scores = scores.masked_fill(hidden, float("-inf"))
            weights = torch.softmax(scores, dim=-1)
            error = (out[b, h, rows].double() - weights @ values).abs().nan_to_num(nan=float("inf"))
            errors.append(error)
            if dtype in LIMIT:
                shares.append(error.max().item() / LIMIT[dtype])
            else:
                allowed = torch.from_numpy(error_bound(weights.cpu().numpy(), values.cpu().numpy())).to(q.device)
                shares.append((error / allowed).max().item())
    every = torch.cat(errors)
    return Judgement(every.max().item(), every.square().mean().sqrt().item(), max(shares))
