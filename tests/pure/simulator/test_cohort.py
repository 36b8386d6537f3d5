"""Joining of cohorts at one point, and launches whose warps part and meet again before a collective of a warpgroup."""

import numpy as np
import pytest

from warpsmith.kernels.attention import hopper
from warpsmith.simulator.cohort import Cohort, merge

ROWS, THREADS = 3, 384


def cohort(*warps: tuple[int, int], iteration: int = 0) -> Cohort:
    """Whole warps (row, warp) of three CTAs of twelve."""
    mask = np.zeros((ROWS, THREADS), np.bool_)
    for row, warp in warps:
        mask[row, 32 * warp : 32 * warp + 32] = True
    return Cohort(7, (), ((iteration,),), (0, ROWS, 0, THREADS), None).part(mask)


def warps_of(c: Cohort) -> set[tuple[int, int]]:
    c0, _, t0, _ = c.rect
    return {(c0 + int(r), (t0 + int(t)) // 32) for r, t in np.argwhere(c.active())}


def test_parts_of_a_warpgroup_in_different_iterations_join_before_its_collective():
    a, b = cohort((0, 0), (0, 1), (0, 2), (2, 9), iteration=1), cohort((0, 3), (1, 11), iteration=2)
    assert merge([a, b]) == [a, b]
    (joined,) = merge([a, b], warpgroups=True)
    assert warps_of(joined) == warps_of(a) | warps_of(b)


def test_cohorts_of_different_warpgroups_stay_apart():
    a, b = cohort((0, 0), (0, 1), (0, 2), iteration=1), cohort((0, 4), (1, 3), (2, 0), iteration=2)
    assert merge([a, b], warpgroups=True) == [a, b]


@pytest.mark.parametrize("options", [{"schedule": "fair"}, {"schedule": "random", "seed": 3}], ids=["fair", "random"])
def test_warps_that_rescale_by_themselves_meet_before_the_next_product(options):
    c = hopper.choose(2, 300, 192, "f16", True, value_dim=128, multiprocessors=3)
    assert (c.consumers, c.threshold) == (3, 8.0)
    rng = np.random.default_rng(300)
    q, k, v = (rng.standard_normal((2, 300, width)).astype(np.float16) for width in (192, 192, 128))
    result = hopper.build(c).simulate(q, k, v, max_steps=20_000, **options)
    assert result.findings == []
    assert result.completed
