"""What `warpsmith demo` shows: a Hopper attention kernel that runs, and the same kernel with one arrival removed."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.assembly.ptx.tree import Instruction, Scope
from warpsmith.dsl.call import bind
from warpsmith.kernels.attention import hopper
from warpsmith.kernels.attention.reference import attention
from warpsmith.simulator import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.tree import Statement
    from warpsmith.simulator import SimulationResult

__all__ = ["DIM", "SEQUENCE", "Broken", "Run", "run", "run_broken"]

SEQUENCE = 512
DIM = 64
_REMOVED = 2
"""Which arrival the broken kernel lacks, in the order of the text: one by which a consumer gives a tile back."""


@final
@dataclass(frozen=True, slots=True)
class Run:
    """The kernel as it is."""

    result: SimulationResult
    error: float
    """Largest absolute difference between the output and attention in float64."""
    lse_error: float
    seconds: float


@final
@dataclass(frozen=True, slots=True)
class Broken:
    """The kernel without one arrival."""

    result: SimulationResult
    removed: Instruction
    seconds: float


def run(**options: Any) -> Run:
    """Run the kernel on standard normal inputs and compare it with attention in float64; `options` go to the simulator."""
    start = time.perf_counter()
    q, k, v = _inputs()
    result = _kernel().simulate(q, k, v, **options)
    output, lse = result.outputs
    expected, expected_lse = attention(q, k, v)
    return Run(result, _largest(output - expected), _largest(lse - expected_lse), time.perf_counter() - start)


def run_broken(**options: Any) -> Broken:
    """Take one arrival out of the kernel's tree and run that."""
    start = time.perf_counter()
    bound = bind(_kernel(), _inputs(), {})
    module = copy.deepcopy(bound.built.module)
    body = module.entry(bound.built.name).body or []
    place, index = list(_arrivals(body))[_REMOVED]
    removed = place.pop(index)
    assert isinstance(removed, Instruction)
    launch = {"grid": bound.grid, "block": bound.block, "cluster": bound.cluster, "dynamic_shared": bound.built.dynamic_shared}
    result = simulate(module, kernel=bound.built.name, args=bound.args, **launch, **options)
    return Broken(result, removed, time.perf_counter() - start)


def _kernel() -> Any:
    return hopper.build(hopper.Config(heads=1, sequence=SEQUENCE, dim=DIM))


def _inputs() -> tuple[NDArray[np.float16], ...]:
    random = np.random.default_rng(0)
    return tuple(random.standard_normal((1, SEQUENCE, DIM)).astype(np.float16) for _ in range(3))


def _largest(difference: NDArray[Any]) -> float:
    return float(np.abs(difference).max())


def _arrivals(body: list[Statement]) -> Iterator[tuple[list[Statement], int]]:
    """Yield where each plain `mbarrier.arrive` stands: the list and the index in it."""
    for index, statement in enumerate(body):
        if isinstance(statement, Scope):
            yield from _arrivals(statement.body)
        elif isinstance(statement, Instruction) and statement.mnemonic.startswith("mbarrier.arrive.shared"):
            yield body, index
