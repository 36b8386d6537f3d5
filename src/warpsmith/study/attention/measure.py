"""Time several launches side by side: CUDA graphs over rotated buffers, replayed in turn, medians with their spread."""

from __future__ import annotations

import subprocess
import threading
from dataclasses import dataclass
from importlib import import_module
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warpsmith.study.attention.peers import Launch

__all__ = ["Clocks", "Timing", "time_together"]


@dataclass(frozen=True, slots=True)
class Timing:
    """Microseconds of one launch: median, and the 10th and 90th percentile."""

    micro: float
    low: float
    high: float


def _graph(launches: Sequence[Launch]) -> Any:
    """Capture one launch a buffer set into a graph."""
    torch: Any = import_module("torch")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for launch in launches:
            launch()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for launch in launches:
            launch()
    return graph


def time_together(launches: Mapping[str, Sequence[Launch]], repeat: int) -> dict[str, Timing]:
    """Time each name's launches (one a buffer set). A round replays every graph once, so all see the same clocks."""
    torch: Any = import_module("torch")
    graphs = {name: _graph(some) for name, some in launches.items()}
    times: dict[str, list[float]] = {name: [] for name in launches}
    for graph in graphs.values():
        graph.replay()
        graph.replay()
    pairs: list[tuple[str, Any, Any]] = []
    for _ in range(repeat):
        for name, graph in graphs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            pairs.append((name, start, end))
    torch.cuda.synchronize()
    for name, start, end in pairs:
        times[name].append(1000 * start.elapsed_time(end) / len(launches[name]))
    return {name: _timing(sorted(t)) for name, t in times.items()}


def _timing(ordered: list[float]) -> Timing:
    last = len(ordered) - 1
    return Timing(median(ordered), ordered[last // 10], ordered[last - last // 10])


class Clocks:
    """Multiprocessor clock (MHz) and power (W), sampled by nvidia-smi while the measurements run."""

    def __init__(self) -> None:
        query = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits", "-i", "0", "-lms", "50"]
        self._samples: list[tuple[float, float]] = []
        try:
            self._process = subprocess.Popen(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            self._process = None
            return
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                clock, power = (float(x) for x in line.split(","))
            except ValueError:
                continue
            self._samples.append((clock, power))

    def take(self) -> tuple[float, float]:
        """Return the median clock and power since the last call; zeros where nothing was sampled."""
        some, self._samples = self._samples, []
        if not some:
            return 0.0, 0.0
        return median(c for c, _ in some), median(p for _, p in some)

    def close(self) -> None:
        """Stop sampling."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
