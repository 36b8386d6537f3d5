"""Assertions for test suites of kernels."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from warpsmith.assembly.ptx.miscompiled import miscompiled_here
from warpsmith.base.errors import InputError
from warpsmith.dsl.call import module_of
from warpsmith.dsl.kernel import Kernel
from warpsmith.findings import Suppressions
from warpsmith.simulator.explore import explore

if TYPE_CHECKING:
    from warpsmith.simulator import SimulationResult

__all__ = ["assert_clean"]


class _Simulated(Protocol):
    """A kernel: what `@kernel` gives."""

    def simulate(self, *arrays: Any, **options: Any) -> SimulationResult: ...


def assert_clean(
    kernel: _Simulated,
    *arrays: Any,
    schedules: int = 20,
    suppress: Mapping[str, str] | None = None,
    jobs: int = 1,
    budget: float | None = None,
    **options: Any,
) -> SimulationResult:
    """Assert that a kernel has no finding of severity error under the fair schedule and under `schedules` others.

    Nor may the installed ptxas make wrong code of one of its instructions (`ptxas-miscompiles`).

    The others are adversarial and random ones in turn, the same every time; a finding names the one that exposed it, to be
    replayed with `kernel.simulate(..., schedule=..., seed=...)`. `suppress` maps kinds of findings that are to be passed over
    (`"kind"`, or `"kind@file.py:12"` for one line) to the reason why. `jobs` processes share the schedules; `budget` ends
    them after so many seconds. Each run gets copies of the arrays. `options` go to `kernel.simulate`. Return the result of
    the fair run. Raise `AssertionError` with the findings, those of the smallest failing run first, `InputError` for a kind
    that does not exist or has no reason.
    """
    if not callable(getattr(kernel, "simulate", None)):
        raise InputError(f"assert_clean({kernel!r:.60}): give a @kernel object")
    if not isinstance(schedules, int) or schedules < 0:
        raise InputError(f"schedules={schedules!r}: give how many schedules besides the fair one to try")
    fair: list[SimulationResult] = []

    def launch(schedule: str, seed: int) -> SimulationResult:
        result = kernel.simulate(*copy.deepcopy(arrays), **{"schedule": schedule, "seed": seed, **options})
        if not fair:
            fair.append(result)
        return result

    found = explore(launch, count=schedules, budget=budget, jobs=jobs, suppress=suppress)
    wrong = miscompiled_here(module_of(kernel, arrays, options)) if isinstance(kernel, Kernel) else []
    findings = [*found.distinct(), *Suppressions(suppress or {}).sort(wrong)[0]]
    errors = [f for f in findings if f.severity == "error"]
    if errors:
        raise AssertionError("\n".join([f"{getattr(kernel, '__name__', kernel)}: {len(errors)} findings", *map(str, errors)]))
    return fair[0]
