"""Reads of products that are noted late, sums and places that are kept: what is answered must be as if nothing were."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warpsmith.simulator import operand_places
from warpsmith.simulator import wgmma as products_of
from warpsmith.simulator.check import product_log
from warpsmith.simulator.check.product_log import WARPS, ProductLog
from warpsmith.simulator.operand_places import Tile, places
from wgmma_program import A_AT, B_AT, BYTES, PARAMETERS, body, tile

CELLS, READERS = 96, 9


def written_at_once(table: Any, cells: Any, first: Any, entries: Any) -> None:
    """Note reads as the log stands for: each product's, one after the other."""
    for mine, place, four in zip(cells, first, entries, strict=True):
        table[mine, place : place + WARPS] = four


@pytest.mark.parametrize("room", [4, 1024])
@pytest.mark.parametrize("seed", range(12))
def test_the_log_settles_to_what_noting_at_once_gives(monkeypatch: Any, seed: int, room: int) -> None:
    monkeypatch.setattr(product_log, "_ROOM", room)
    monkeypatch.setattr(product_log, "_MOST", 16 * room)
    rng = np.random.default_rng(seed)
    log, settled = ProductLog(SimpleNamespace(used=False)), np.zeros((CELLS, READERS), np.uint64)
    table, seen, time = settled.copy(), set(), 1
    known = {}
    for _ in range(600):
        choice = rng.random()
        if choice < 0.6:
            key = int(rng.integers(8))
            if key not in known:
                start = rng.integers(0, CELLS - 16, (3, 1))
                some = start + rng.permuted(np.tile(np.arange(16), (3, 1)), axis=1)[:, :6]
                known[key] = np.sort(some), 4 * rng.integers(0, 2, 3)
            cells, first = known[key]
            entries = (time + np.arange(3 * WARPS)).reshape(3, WARPS).astype(np.uint64)
            time += 3 * WARPS
            what = key, cells, cells.min(axis=1), cells.max(axis=1) + 1, first, entries
            if not log.add(*what):
                seen.add("full")
                log.settle(settled)
                assert np.array_equal(settled, table)
                assert log.add(*what)
            written_at_once(table, cells, first, entries)
        elif choice < 0.9:
            low = 0 if rng.random() < 0.5 else int(rng.integers(0, CELLS - 1))
            high = int(rng.integers(low + 1, CELLS + 1))
            unsettled = (table != settled)[low:high].any()
            assert log.meets(low, high) or not unsettled
            entries = log.inside(low, high)
            if entries is None:
                seen.add("partly")
            elif not settled[low:high].any():
                assert set(table[low:high][table[low:high] != 0].tolist()) <= set(entries.tolist())
                log.drop(low, high)
                seen.add("dropped" if unsettled else "nothing")
                table[low:high] = 0
        elif choice < 0.99:
            low, high = np.sort(rng.choice(CELLS + 1, 2, replace=False)).tolist()
            log.settle(settled, low, high)
            assert np.array_equal(settled[low:high], table[low:high])
            seen.add("apart" if log else "all")
            if rng.random() < 0.7:
                settled[low:high] = table[low:high] = 0
        else:
            log.settle(settled)
            assert not log
            assert np.array_equal(settled, table)
            if rng.random() < 0.9:
                settled[:] = table[:] = 0
    log.settle(settled)
    assert np.array_equal(settled, table)
    assert seen >= {"partly", "dropped", "apart", "all"}


def test_a_log_with_no_room_for_one_instruction_finds_it() -> None:
    log = ProductLog(SimpleNamespace(used=False))
    n = product_log._MOST + 1
    cells = np.arange(n)[:, None]
    assert log.add("all", cells, cells[:, 0], cells[:, 0] + 1, np.zeros(n, np.int64), np.ones((n, WARPS), np.uint64))
    assert log.meets(n - 1, n)


def chain(run: Any, repeats: int, d: str = "f32") -> Any:
    image = np.zeros(BYTES, np.uint8)
    rng = np.random.default_rng(3)
    da, db = (
        tile(rng.standard_normal((n, 16)).astype(np.float16), 1024 + at, "128B" if n > 32 else "32B", False, image)
        for n, at in ((64, A_AT), (32, B_AT))
    )
    registers = 8 if d == "f16" else 16
    text = body(f"m64n32k16.{d}.f16.f16", registers, 0, ", 1, 1, 0, 0", repeats)
    result = run(text, np.zeros((registers, 128), np.uint32), image, da, db, np.zeros((4, 128), np.uint32),
                 parameters=PARAMETERS, block=128, grid=3)  # fmt: skip
    assert result.findings == []
    return result.outputs[0]


@pytest.mark.parametrize("d", ["f32", "f16"])
def test_a_chain_of_products_adds_to_what_the_registers_hold(run: Any, monkeypatch: Any, d: str) -> None:
    taken: list[bool] = []
    take = products_of.Sums.take

    def note(self: Any, products: Any) -> Any:
        taken.append((found := take(self, products)) is not None)
        return found

    monkeypatch.setattr(products_of.Sums, "take", note)
    kept = chain(run, 4, d).copy()
    assert taken == [False, *[d == "f32"] * 3]
    monkeypatch.setattr(products_of.Sums, "take", lambda *_: None)
    assert np.array_equal(kept, chain(run, 4, d))
    assert not np.array_equal(kept, chain(run, 3, d))


def product(**changes: Any) -> Any:
    return SimpleNamespace(**{"types": ("f32", "f16", "f16", "f32"), "slots": {"b32": (0, 1)}, "row": 0, "first": 0} | changes)


def test_sums_are_of_these_registers_threads_and_moment_alone() -> None:
    machine = SimpleNamespace(execution=1, asynchronous=SimpleNamespace(batches=1))
    sums, d = products_of.Sums(), np.zeros((1, 64, 4), np.float32)

    def after(*, execution: int = 0, batches: int = 1, **changes: Any) -> bool:
        sums.turn(machine)
        sums.keep([product()], d)
        machine.execution += execution
        machine.asynchronous.batches += batches
        sums.turn(machine)
        machine.asynchronous.batches += 1
        return sums.take([product(**changes)]) is d

    assert after()
    assert not after(execution=1)
    assert not after(batches=2)
    assert not after(row=1)
    assert not after(first=128)
    assert not after(slots={"b32": (2, 3)})
    assert not after(types=("s32", "s8", "s8", "s32"))
    sums.turn(machine)
    sums.keep([product(types=("f16", "f16", "f16", "f16"))], d)
    machine.asynchronous.batches += 1
    sums.turn(machine)
    assert sums.take([product(types=("f16", "f16", "f16", "f16"))]) is None


def test_places_are_those_of_their_rows_descriptors_and_tile(monkeypatch: Any) -> None:
    machine = SimpleNamespace(state={}, shared=SimpleNamespace(row=1 << 16), reserved_shared=1024, shared_bytes=48 << 10)
    image = np.zeros(BYTES, np.uint8)
    zeros = np.zeros((64, 16), np.float16)
    a, b = (tile(zeros, 1024 + at, swizzle, False, image) for at, swizzle in ((0, "128B"), (16384, "32B")))
    half = Tile("f16", 64, 16, False)
    asked = [
        ((r0, r1), (x, y), t)
        for r0, r1 in ((0, 0), (0, 1), (1, 0))
        for x, y in ((a, a), (a, b), (b, a), (a + 64, a))
        for t in (half, Tile("f16", 32, 16, False), Tile("f16", 64, 16, True), Tile("e4m3", 64, 32, False))
    ]
    for limit in (1 << 25, 1 << 12):
        monkeypatch.setattr(operand_places, "_BYTES", limit)
        for _ in range(2):
            for rows, bits, t in asked:
                found = places(machine, rows, bits, t)
                for i, (row, one) in enumerate(zip(rows, bits, strict=True)):
                    alone = operand_places.items(machine, row, one, t)
                    assert np.array_equal(found.at[i].reshape(-1), alone)
                    assert (found.starts[i], found.stops[i]) == (alone.min() * 16, alone.max() * 16 + 16)
                    for size in (16, 4):
                        cells = alone[:, None] * (16 // size) + np.arange(16 // size)
                        assert np.array_equal(np.sort(found.cells(size)[i]), np.sort(cells, axis=None))
                assert (found.swizzle is None) == (bits in ((a, b), (b, a)))
    assert places(machine, (0,), (a,), half).inside
    machine.state.clear()
    machine.shared_bytes = 1024
    assert not places(machine, (0,), (a,), half).inside
