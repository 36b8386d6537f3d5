"""The results as JSON lines, Markdown and a plot."""

from __future__ import annotations

import json
from importlib import import_module
from math import exp, log
from typing import TYPE_CHECKING, Any

from warpsmith.base.errors import InputError
from warpsmith.study.attention.cells import Cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["load", "markdown", "plot"]

_PEAK = 4096 * 132
"""Dense 16-bit floating-point operations of an H100 or H200 in one clock; of 8 bits twice as many."""


def load(path: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a results file by cell name; none if there is no file. Raise `InputError` for another file."""
    if not path.exists():
        return {}
    rows: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            row = json.loads(line)
            rows[row["cell"]] = {name: row[name] for name in ("cell", "problem", "times", "errors", "clock", "power")} | row
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{path}:{number}: no result of this study; move the file away to measure anew") from None
    return rows


def _best(row: dict[str, Any], ours: bool) -> tuple[str, float]:
    """Return the fastest of our kernel's variants or of the peers; what is called "our …" is shown but neither."""
    times = {n: t["micro"] for n, t in row["times"].items() if n.startswith("ours") is ours and not n.startswith("our ")}
    if not times:
        return "", float("nan")
    name = min(times, key=lambda n: times[n])
    return name, times[name]


def _mean(ratios: Sequence[float]) -> float:
    return exp(sum(log(r) for r in ratios) / len(ratios)) if ratios else float("nan")


def markdown(rows: Iterable[dict[str, Any]]) -> str:
    """Return the table of all cells, and the geometric means of (best peer's time ÷ ours) by dimension."""
    rows = list(rows)
    names = list(dict.fromkeys(n for row in rows for n in row["times"] if not n.startswith("ours")))
    head = [
        "cell",
        "ours µs",
        "TFLOP/s",
        "% of peak",
        "MHz",
        "W",
        "error",
        *(f"{n} µs (TFLOP/s)" for n in names),
        "best peer ÷ ours",
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    ratios: dict[str, list[float]] = {}
    for row in rows:
        cell = Cell(**row["problem"])
        _, mine = _best(row, ours=True)
        _, peer = _best(row, ours=False)
        speed = cell.work / mine / 1e6
        peak = _PEAK * (2 if row.get("dtype") == "e4m3" else 1)
        share = f"{100 * speed * 1e6 / (peak * row['clock']):.0f}" if row["clock"] else "–"
        which = _best(row, ours=True)[0]
        texts = [cell.name, f"{mine:.1f}", f"{speed:.0f}", share, f"{row['clock']:.0f}", f"{row['power']:.0f}"]
        texts.append(f"{row['errors'][which]:.1e}")
        for name in names:
            time = row["times"].get(name)
            texts.append(f"{time['micro']:.1f} ({cell.work / time['micro'] / 1e6:.0f})" if time else "–")
        ratio = peer / mine
        if ratio == ratio:
            ratios.setdefault(cell.dims, []).append(ratio)
        lines.append("| " + " | ".join([*texts, f"{ratio:.3f}"]) + " |")
    lines.append("")
    for dim, some in ratios.items():
        lines.append(
            f"D={dim}: geometric mean of best peer ÷ ours {_mean(some):.3f} over {len(some)} cells, least {min(some):.3f}."
        )
    return "\n".join(lines) + "\n"


def plot(rows: Iterable[dict[str, Any]], path: Path) -> None:
    """Draw TFLOP/s over the sequence length, one panel for each dimension and mask; needs matplotlib."""
    figure_module: Any = import_module("matplotlib.figure")
    rows = list(rows)
    figure = figure_module.Figure(figsize=(11, 8), layout="constrained")
    for i, (dim, causal) in enumerate((d, c) for d in (64, 128) for c in (False, True)):
        axes = figure.add_subplot(2, 2, i + 1)
        lines: dict[str, list[tuple[int, float]]] = {}
        for row in rows:
            cell = Cell(**row["problem"])
            if (cell.dim, cell.causal) != (dim, causal) or cell.batch * cell.sequence != 16384:
                continue
            times = {n: t["micro"] for n, t in row["times"].items() if not n.startswith("ours")}
            times["ours"] = _best(row, ours=True)[1]
            for name, micro in times.items():
                lines.setdefault(name, []).append((cell.sequence, cell.work / micro / 1e6))
        for name, points in lines.items():
            axes.plot(*zip(*sorted(points), strict=True), marker="o", label=name, linewidth=2.5 if name == "ours" else 1.2)
        axes.set_xscale("log", base=2)
        axes.set_ylim(bottom=0)
        axes.set_title(f"D={dim}, {'causal' if causal else 'full'}")
        axes.set_xlabel("sequence length (16,384 tokens in all)")
        axes.set_ylabel("TFLOP/s")
        axes.legend(fontsize=8)
    figure.savefig(path)
