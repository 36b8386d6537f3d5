"""Races of copies, matrix reads and stores: whole warps are looked at together, and the answer is that of every lane."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import copy_race_oracle as oracle
from warpsmith.simulator import simulate
from warpsmith.simulator.check import loads, races
from warpsmith.simulator.meanings import matrix_moves

KINDS = {"shared-race", "async-read-before-complete", "async-overwrite"}
SCHEDULES: Any = ("fair", "random", "adversarial")


def run(steps: list[oracle.Step], **options: Any) -> Any:
    return simulate(oracle.text_of(steps), grid=1, block=oracle.THREADS, args=[oracle.arguments(steps)], **options)


def told(result: Any) -> list[tuple[str, int, str, str, list[Any]]]:
    return [(f.kind, f.where.line, f.message, f.threads, [r.message for r in f.related]) for f in result.findings]


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_programs_race_where_the_oracle_says(first: int) -> None:
    racing = 0
    for seed in range(first, first + 20):
        steps = oracle.program(seed)
        pairs = oracle.races(steps)
        result = run(steps, schedule=SCHEDULES[seed % 3], seed=seed)
        assert bool(result.findings) == bool(pairs), seed
        for finding in result.findings:
            line = finding.where.line - oracle.LINES_BEFORE - 1 if finding.where else -1
            assert (finding.kind in KINDS, line in {step for pair in pairs for step in pair}) == (True, True), seed
        racing += bool(pairs)
    assert 0 < racing < 20


def _lane_by_lane(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(matrix_moves, "_at_once", lambda *_: None)
    patch.setattr(loads.Loads, "_may_group", lambda *_: False)
    patch.setattr(races.RaceWatch, "untold", lambda self, entries, rows: np.ones(entries.shape, np.bool_))


@pytest.mark.parametrize("first", [100, 120])
def test_what_is_said_does_not_depend_on_who_is_looked_at_together(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = 0
    for seed in range(first, first + 20):
        steps = oracle.program(seed)
        together = told(run(steps))
        with monkeypatch.context() as patch:
            _lane_by_lane(patch)
            assert told(run(steps)) == together, seed
        found += len(together)
    assert found


@pytest.mark.parametrize("first", [200, 220])
def test_cells_as_large_as_the_smallest_write_are_as_good_as_bytes(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = set[int]()
    smallest = races.smallest_write
    for seed in range(first, first + 20):
        steps = oracle.program(seed)
        large = {t[:2] for t in told(run(steps))}
        with monkeypatch.context() as patch:
            patch.setattr(races, "smallest_write", lambda program: sizes.add(smallest(program)) or 1)
            assert {t[:2] for t in told(run(steps))} == large, seed
    assert len(sizes) > 1


def test_a_write_smaller_than_foreseen_is_said_to_lose_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(races, "smallest_write", lambda program: 16)
    everyone = {t: t for t in range(oracle.THREADS)}
    result = run([oracle.Step("ld", "b8", everyone), oracle.Step("bar", "", everyone), oracle.Step("st", "b8", everyone)])
    assert (result.findings, result.fidelity.notes["reads of shared memory"][0]) == ([], "approximate")


def test_copies_behind_a_wait_for_all_are_of_another_group() -> None:
    copy = oracle.Step("copy", "4", {t: 4 * t for t in range(oracle.THREADS)})
    steps = [copy, oracle.Step("wait", "", copy.at), oracle.Step("bar", "", copy.at), copy, oracle.Step("ld", "b32", copy.at)]
    finding = run(steps, schedule="adversarial").findings[0]
    assert (finding.kind, finding.where and finding.where.line) == ("async-read-before-complete", oracle.LINES_BEFORE + 5)
