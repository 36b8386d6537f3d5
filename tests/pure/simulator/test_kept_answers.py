"""Answers about masks and tensor maps that are kept: asked again, with anything changed, they are those of the moment."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warpsmith.simulator import findings, lanes
from warpsmith.simulator.lanes import Lanes
from warpsmith.simulator.meanings import bulk_tensor
from warpsmith.simulator.memory import Space


def machine(rows: int, threads: int) -> Any:
    numbers = {"%ctaid": np.zeros((3, rows), np.uint32)}
    space = SimpleNamespace(row=1024)
    return SimpleNamespace(
        no_operation=None, threads=threads, shared=space, local=space, call_params=space, cluster_size=1, cta_numbers=numbers,
        cta_of=lambda row: tuple(numbers["%ctaid"][:, row].tolist()),
    )  # fmt: skip


@pytest.mark.parametrize("limit", [3, 512])
def test_names_of_threads_follow_masks_and_ctas(monkeypatch: Any, limit: int) -> None:
    monkeypatch.setattr(lanes, "_KEPT", limit)
    rng, m = np.random.default_rng(1), machine(4, 96)
    rectangles = [Lanes(m, rect) for rect in ((0, 4, 0, 96), (1, 3, 32, 96), (2, 4, 32, 96))]
    masks = {x.shape: [rng.random(x.shape) < p for p in (0.01, 0.2, 0.9, 1.0)] for x in rectangles}
    for shape, some in masks.items():
        some += [np.zeros(shape, np.bool_), np.repeat(rng.random((shape[0], shape[1] // 32)) < 0.5, 32, axis=1)]
    texts = set()
    for _ in range(5):
        m.cta_numbers["%ctaid"][:] = rng.integers(0, 50, (3, 4))
        for x in rectangles:
            for mask in masks[x.shape]:
                text = findings.threads_text(x, mask)
                assert text == findings._threads_text(Lanes(m, x.rect), mask)
                texts.add(text)
                warps = {(x.c0 + c, (x.t0 + t) // 32) for c, t in np.argwhere(mask).tolist()}
                assert findings.warps_of(x, mask) == tuple(sorted(warps))
    assert len(texts) > 40


def test_a_tensor_map_is_read_once_for_lanes_that_mean_the_same_bytes(monkeypatch: Any) -> None:
    global_, const, params, shared = (Space(name, 256) for name in ("global", "const", "param", "shared"))
    x = SimpleNamespace(machine=SimpleNamespace(global_=global_, const=const, params=params, shared=shared))
    lane: Any = SimpleNamespace(at=int)
    spans: list[int] = []
    here: list[Space] = []

    def span_of(x: Any, lane: Any, space: Any, address: int, size: int) -> Any:
        spans.append(address)
        return here[0], 0

    monkeypatch.setattr(bulk_tensor, "span_of", span_of)
    monkeypatch.setattr(bulk_tensor, "decoded", lambda _: SimpleNamespace(rank=2, mode="tiled", number=len(spans)))
    for space, again in ((global_, False), (const, False), (params, False), (shared, True)):
        here[:] = [space]
        met: dict[int, Any] = {}
        spans.clear()
        numbers = [bulk_tensor._map_of(x, lane, (at, [0, 0]), 2, "tile", met).number for at in (64, 128, 64, 128, 192)]
        assert numbers == ([1, 2, 3, 4, 5] if again else [1, 2, 1, 2, 3])
