"""Assertions for test suites of kernels."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from warpsmith.base.errors import InputError
from warpsmith.findings import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.findings import Finding
    from warpsmith.simulator import SimulationResult

__all__ = ["assert_clean"]


class _Simulated(Protocol):
    """A kernel: what `@kernel` gives."""

    def simulate(self, *arrays: Any, **options: Any) -> SimulationResult: ...


def assert_clean(
    kernel: _Simulated, *arrays: Any, schedules: int = 20, suppress: Mapping[str, str] | None = None, **options: Any
) -> SimulationResult:
    """Assert that a kernel has no finding of severity error under the fair schedule and under `schedules` random ones.

    The schedules are the same every time; a finding names the one that exposed it, to be replayed with
    `kernel.simulate(..., schedule="random", seed=...)`. `suppress` maps kinds of findings that are to be passed over to
    the reason why. Each run gets copies of the arrays. `options` go to `kernel.simulate`. Return the result of the fair
    run. Raise `AssertionError` with the findings, `InputError` for a kind that does not exist or has no reason.
    """
    if not isinstance(schedules, int) or schedules < 0:
        raise InputError(f"schedules={schedules!r}: give how many random schedules to try")
    passed_over = _reasons(suppress or {})
    fair = _run(kernel, arrays, {"schedule": "fair", **options})
    results = [fair]
    results += [_run(kernel, arrays, {"schedule": "random", "seed": seed, **options}) for seed in range(schedules)]
    found = list(_distinct(f for r in results for f in r.findings if f.severity == "error" and f.kind not in passed_over))
    if found:
        raise AssertionError("\n".join([f"{getattr(kernel, '__name__', kernel)}: {len(found)} findings", *map(str, found)]))
    return fair


def _reasons(suppress: Mapping[str, str]) -> frozenset[str]:
    for kind, reason in suppress.items():
        if kind not in KINDS:
            raise InputError(f"suppress: no kind of finding is called {kind!r}; known: {', '.join(KINDS)}")
        if not reason.strip():
            raise InputError(f"suppress: say why {kind!r} is passed over")
    return frozenset(suppress)


def _run(kernel: _Simulated, arrays: tuple[Any, ...], options: dict[str, Any]) -> SimulationResult:
    return kernel.simulate(*copy.deepcopy(arrays), **options)


def _distinct(findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield the first finding of each kind at each place."""
    seen: set[tuple[str, object]] = set()
    for finding in findings:
        key = (finding.kind, finding.where)
        if key not in seen:
            seen.add(key)
            yield finding
