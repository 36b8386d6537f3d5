"""Run a launch under many schedules, in several processes, and keep what was found.

The fair schedule first, then adversarial and random ones in turn. Findings can be passed over by kind, or by kind and place,
with a written reason.
"""

from __future__ import annotations

import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from warpsmith.findings import Suppressions

if TYPE_CHECKING:
    from multiprocessing.pool import AsyncResult

    from warpsmith.base.findings import Finding
    from warpsmith.simulator.api import SimulationResult

__all__ = ["Exploration", "Run", "explore", "schedules"]

Launch = Callable[..., "SimulationResult"]
"""`launch(schedule=…, seed=…)`: runs on fresh arrays and returns the result."""


@final
@dataclass(frozen=True, slots=True)
class Run:
    """One schedule: what it found."""

    schedule: str
    seed: int
    findings: tuple[Finding, ...]
    completed: bool
    steps: int
    """Blocks that were run: how long the way to the findings is."""

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings of severity error."""
        return tuple(f for f in self.findings if f.severity == "error")

    @property
    def name(self) -> str:
        """The schedule as findings name it."""
        return self.schedule if self.schedule == "fair" else f"{self.schedule} seed {self.seed}"


@final
@dataclass(slots=True)
class Exploration:
    """All runs, in the order of the schedules."""

    runs: list[Run] = field(default_factory=list[Run])
    suppressed: list[tuple[Finding, str]] = field(default_factory=list["tuple[Finding, str]"])
    """Findings passed over, each kind and place once, and why."""

    @property
    def smallest(self) -> Run | None:
        """The failing run with the shortest way to its findings, of equals the first; None: no run failed."""
        failing = [r for r in self.runs if r.errors]
        return min(failing, key=lambda r: r.steps) if failing else None

    def distinct(self) -> list[Finding]:
        """Return the first finding of each kind at each place, those of the smallest failing run before others."""
        first = self.smallest
        ordered = [*([first] if first is not None else []), *self.runs]
        return list(_distinct(f for r in ordered for f in r.findings))


def _distinct(findings: Iterable[Finding]) -> Iterator[Finding]:
    seen: set[tuple[str, object]] = set()
    for finding in findings:
        key = (finding.kind, finding.where if finding.where is not None else finding.message)
        if key not in seen:
            seen.add(key)
            yield finding


def schedules(count: int) -> Iterator[tuple[str, int]]:
    """Yield the fair schedule and `count` others: adversarial and random ones in turn."""
    yield "fair", 0
    for i in range(count):
        yield ("adversarial" if i % 2 == 0 else "random"), i // 2


def explore(
    launch: Launch,
    *,
    count: int = 20,
    budget: float | None = None,
    jobs: int = 1,
    suppress: Mapping[str, str] | None = None,
) -> Exploration:
    """Run `launch` under the fair schedule and `count` others, until `budget` seconds are over (the fair one always).

    With `jobs` above 1 in so many processes, which must be able to fork (not on Windows). Raise `InputError` for
    suppressions that make no sense, and whatever the launch raises.
    """
    reasons = Suppressions(suppress or {})
    started = time.monotonic()

    def left() -> float:
        return float("inf") if budget is None else budget - (time.monotonic() - started)

    order = schedules(count)
    runs = [_run(launch, *next(order))]
    processes = min(jobs, count, _MOST_PROCESSES)
    if processes > 1 and "fork" in multiprocessing.get_all_start_methods():
        runs += _in_processes(launch, order, processes, left)
    else:
        for schedule, seed in order:
            if left() <= 0:
                break
            runs.append(_run(launch, schedule, seed))
    return _judged(runs, reasons)


def _judged(runs: list[Run], reasons: Suppressions) -> Exploration:
    out = Exploration()
    passed: list[tuple[Finding, str]] = []
    for r in runs:
        kept, over = reasons.sort(r.findings)
        passed += over
        out.runs.append(Run(r.schedule, r.seed, tuple(kept), r.completed, r.steps))
    why = {id(f): reason for f, reason in passed}
    out.suppressed = [(f, why[id(f)]) for f in _distinct(f for f, _ in passed)]
    return out


def _run(launch: Launch, schedule: str, seed: int) -> Run:
    result = launch(schedule=schedule, seed=seed)
    return Run(schedule, seed, tuple(result.findings), result.completed, result.timeline.steps)


_MOST_PROCESSES = 256
_shared: dict[str, Any] = {}
"""What forked processes find here: the launch."""


def _task(which: tuple[str, int]) -> Run:
    return _run(_shared["launch"], *which)


def _in_processes(launch: Launch, order: Iterator[tuple[str, int]], jobs: int, left: Callable[[], float]) -> list[Run]:
    """Run schedules in forked processes, a few ahead; what is not done in time is given up."""
    runs: list[Run] = []
    waiting: deque[AsyncResult[Run]] = deque()
    _shared["launch"] = launch
    try:
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            while True:
                while len(waiting) < 2 * jobs and left() > 0 and (which := next(order, None)) is not None:
                    waiting.append(pool.apply_async(_task, (which,)))
                if not waiting:
                    break
                try:
                    runs.append(waiting.popleft().get(min(max(left(), 0), 1 << 20)))
                except multiprocessing.TimeoutError:
                    continue
    finally:
        del _shared["launch"]
    return runs
