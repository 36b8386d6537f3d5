"""float64 attention on the GPU: what every kernel is compared with before it is timed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpsmith.study.attention.cells import Cell

__all__ = ["LIMIT", "largest_error"]

LIMIT = {"f16": 4e-3, "bf16": 3e-2}
_ROWS = 192


def _rows(sequence: int) -> list[slice]:
    """First, middle and last rows; all of them in short sequences."""
    if sequence <= 3 * _ROWS:
        return [slice(0, sequence)]
    middle = sequence // 2 - _ROWS // 2
    return [slice(0, _ROWS), slice(middle, middle + _ROWS), slice(sequence - _ROWS, sequence)]


def largest_error(cell: Cell, q: Any, k: Any, v: Any, out: Any) -> float:
    """Return the largest difference from float64 attention in first, middle and last rows of the first and last head."""
    torch: Any = import_module("torch")
    worst = 0.0
    for b, h in ((0, 0), (cell.batch - 1, cell.heads - 1)):
        keys, values = k[b, h].double(), v[b, h].double()
        for rows in _rows(cell.sequence):
            scores = q[b, h, rows].double() @ keys.T * cell.dim**-0.5
            if cell.causal:
                row = torch.arange(rows.start, rows.stop, device=q.device)[:, None]
                hidden = torch.arange(cell.sequence, device=q.device)[None, :] > row
                scores = scores.masked_fill(hidden, float("-inf"))
            want = torch.softmax(scores, dim=-1) @ values
            error = (out[b, h, rows].double() - want).abs().max().item()
            worst = error if error != error else max(worst, error)
            if worst != worst:
                return float("inf")
    return worst
