"""The checker looks at all products of an instruction at once: it must answer as it does for one product after another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from warpsmith.simulator.check.columns import ORDINAL
from warpsmith.simulator.check.entries import TIME, entry
from warpsmith.simulator.lanes import Lanes
from warpsmith.simulator.meanings import wgmma
from wgmma_program import A_AT, B_AT, BYTES, PARAMETERS, body, tile

TRIALS = 60
SWIZZLES = ["none", "32B", "64B", "128B"]


def scramble(rng: Any, races: Any, rows: int) -> None:
    """Give shared memory random last writers, in runs, of threads and groups, and random swizzle tags."""
    writes, columns = races.shared.writes, races.columns.count
    runs = np.sort(rng.integers(0, writes.size, 6))
    share = writes.size // rows
    writes[:] = 0
    for start, stop in zip(runs[::2], runs[1::2], strict=True):
        row = int(start) // share if rng.random() < 0.8 else int(rng.integers(rows))
        column = int(rng.integers(columns) if rng.random() < 0.7 else rng.choice([0, 32, 64, 96]))
        ordinal = column >= races.columns.threads
        time = int(rng.integers(0, 8)) + (ORDINAL if ordinal else 0)
        writes[start:stop] = entry(0, row * columns + column, 0, 0) | np.uint64(time) << np.uint64(TIME)
    races.tags.modes = ["", *SWIZZLES]
    races.tags.tags[:] = 0
    if rng.random() < 0.3:
        races.tags.tags[: races.tags.tags.size // 2] = rng.integers(0, 5)


@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_all_products_at_once_answer_as_one_by_one(run: Any, monkeypatch: Any, swizzle: str, registers: bool) -> None:
    together, rng, answers, sizes = wgmma._follow_all, np.random.default_rng(5), set(), []
    found: list[str] = []

    def compare(x: Any, products: list[Any]) -> bool:
        races = x.machine.races
        sizes.append(len(products))
        kept = [a.copy() for a in (races.shared.writes, races.shared.reads, races.tags.tags)]
        modes = races.tags.modes
        for _ in range(TRIALS):
            some = [replace(p, b=p.b + int(rng.integers(0, 4)) * 2) for p in products]
            scramble(rng, races, x.machine.rows)
            races.shared.reads[:] = before = kept[1]
            found.clear()
            with monkeypatch.context() as patch:
                patch.setattr(Lanes, "finding", lambda *a, **_: found.append(a[1]))
                clear = together(x, some)
                batched = races.shared.reads.copy()
                assert found == []
                races.shared.reads[:] = before
                for p in some:
                    wgmma._follow(x, p.row - x.c0, p.first - x.t0, p)
            assert clear == (not found)
            assert np.array_equal(batched, races.shared.reads if clear else before)
            answers.add((clear, *sorted(set(found))))
        races.shared.writes[:], races.shared.reads[:], races.tags.tags[:] = kept
        races.tags.modes = modes
        return together(x, products)

    monkeypatch.setattr(wgmma, "_follow_all", compare)
    image = np.zeros(BYTES, np.uint8)
    da, db = (tile(np.ones((n, 16), np.float16), 1024 + at, swizzle, False, image) for n, at in ((64, A_AT), (32, B_AT)))
    text = body("m64n32k16.f32.f16.f16", 16, 4 if registers else 0, ", 1, 1, 0" + ("" if registers else ", 0"))
    inputs = (np.zeros((16, 128), np.uint32), image, da, db, np.zeros((4, 128), np.uint32))
    assert run(text, *inputs, parameters=PARAMETERS, block=128, grid=3).findings == []
    assert sizes == [3]
    assert (True,) in answers
    kinds = {kind for _, *some in answers for kind in some}
    assert kinds >= {"async-read-before-complete", "missing-proxy-fence", "shared-race"}
