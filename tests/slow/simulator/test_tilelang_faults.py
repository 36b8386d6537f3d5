"""TileLang 0.1.15: all warps of the group that loads wait for a free stage, and one issues the copies. Others may come late.

A warp whose first wait comes after the stage has been used and given back waits for the next phase, of the same parity.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from programs.tilelang_kernels import attention_geforce
from ptx_corpus import sample
from warpsmith.simulator import SimulationResult, simulate


def launched(**order: Any) -> tuple[SimulationResult, bool]:
    """Run the attention; say whether what it computes is right."""
    judge = attention_geforce(np.random.default_rng(0))
    launch = next(judge)
    how = {"kernel": launch.kernel, "grid": launch.grid, "block": launch.block, "dynamic_shared": launch.shared}
    result = simulate(sample("tilelang/attention.sm_120a"), args=launch.args, **how, **order)
    try:
        judge.send(result)
    except StopIteration:
        return result, True
    except AssertionError:
        return result, False
    return result, False


def test_in_step_it_is_right() -> None:
    result, right = launched()
    assert right
    assert not result.findings


def test_a_warp_that_comes_late_waits_for_ever() -> None:
    result, _ = launched(schedule="random", seed=2)
    assert not result.completed
    late, hang = result.findings
    assert (late.kind, hang.kind) == ("phase-alias", "deadlock")
    assert late.message == (
        "waits for parity 1 of mbarrier [0x428]: phase -1, which it means, has completed, "
        "and the barrier is in phase 1 of the same parity"
    )
    assert late.threads == "cta (0,0,0) warps 1-3 lanes 0-31"
