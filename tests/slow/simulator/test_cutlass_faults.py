"""Latent attention of CUTLASS 4.2 with pages announces a stage before its copies are done: the simulator shows where, and that
results depend on the schedule.

`load_cpasync` waits for all but the last StagesPV - 1 groups of copies, and arrives for the oldest of these.
"""

from __future__ import annotations

import numpy as np

from programs.cutlass_examples import FAULTY
from programs.program import run
from ptx_corpus import sample
from warpsmith.simulator import simulate

(PAGED,) = FAULTY


def test_the_products_read_what_is_still_copied() -> None:
    outcome = run(PAGED, "sm_100a", {})
    (found,) = [f for f in outcome.findings if f.kind == "async-read-before-complete"]
    assert found.message.startswith("`tcgen05.mma` reads shared memory from ")
    assert found.message.endswith(" on, which `cp.async` in flight still writes")


def right(seed: int) -> bool:
    """Run in a random order; say whether what it computes is right."""
    judge = PAGED.body(np.random.default_rng(0))
    launch = next(judge)
    how = {"kernel": launch.kernel, "grid": launch.grid, "block": launch.block, "cluster": launch.cluster}
    module = sample(PAGED.file("sm_100a"))
    found = simulate(module, args=launch.args, dynamic_shared=launch.shared, schedule="random", seed=seed, **how)
    assert found.completed
    try:
        judge.send(found)
    except StopIteration:
        return True
    except AssertionError:
        return False
    return False


def test_results_depend_on_the_schedule() -> None:
    assert not all(right(seed) for seed in range(1, 7))
