"""The adversarial schedule: repeatable, harmless to correct kernels, and it starves whom it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpsmith.simulator import simulate

KERNELS = Path(__file__).parent / "mutants" / "kernels"
RACE = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .pred %p<3>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5;
and.b32 %r3, %r1, 31; setp.ne.u32 %p1, %r3, 0; @%p1 ret;
atom.global.exch.b32 %r4, [%rd1], %r2;
ret; }"""


def last(seed: int) -> int:
    """Return the warp that stores last of four."""
    out = np.zeros(1, np.uint32)
    result = simulate(RACE, grid=1, block=128, args=[out], schedule="adversarial", seed=seed)
    assert result.completed
    return int(out[0])


def test_each_warp_is_starved_in_turn() -> None:
    assert [last(4 * (w + 1)) for w in range(4)] == [0, 1, 2, 3]


def test_a_warp_that_alone_is_not_starved_is_first() -> None:
    assert all(last(4 * (w + 1) + 3) != w for w in range(4))


def test_a_seed_repeats() -> None:
    text = (KERNELS / "pipeline.ptx").read_text()
    words = np.arange(512, dtype=np.uint32)

    def run(seed: int) -> Any:
        return simulate(text, grid=1, block=160, args=[words, np.zeros(128, np.uint32)], schedule="adversarial", seed=seed)

    for seed in range(8):
        first, second = run(seed), run(seed)
        assert (first.findings, first.timeline.steps) == ([], second.timeline.steps)


def test_a_finding_names_the_schedule() -> None:
    text = RACE.replace("atom.global.exch.b32 %r4, [%rd1], %r2;", "st.global.b32 [%rd1], %r2;")
    result = simulate(text, grid=1, block=128, args=[np.zeros(1, np.uint32)], schedule="adversarial", seed=5)
    assert [(f.kind, f.schedule) for f in result.findings] == [("global-race", "adversarial seed 5")]


@pytest.mark.parametrize("late", [0, 2])
def test_operations_finish_late(late: int) -> None:
    """A store into the source of a copy in flight shows, because nothing waits for it."""
    text = (KERNELS / "epilogue.ptx").read_text()
    y = np.where(np.arange(256) < 128, 0, 7).astype(np.uint32)
    broken = text.replace(" cp.async.bulk.wait_group.read 0;\n", "")
    out = np.zeros(128, np.uint32)
    simulate(broken, grid=1, block=128, args=[y, out], schedule="adversarial", seed=late)
    assert (y[:128] == 5 + np.arange(128)).all()  # what was stored later went out
