"""tests/data/libraries: device-wide algorithms of CUB, launched as its host functions do."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np

from programs.captured import Arrays, launches
from programs.program import Collection, Judge

_collection = Collection("libraries", "", ("sm_80", "sm_90a", "sm_120a"))
program = partial(_collection, per_arch=True, slow=True)
PROGRAMS = _collection.programs


def _run(name: str, arch: str, arrays: Arrays, *, unlike: str = "") -> Judge:
    yield from launches("libraries", f"{name}.{arch}", arrays, unlike=unlike)


@program("cub_sort", source="cub_sort")
def cub_sort(rng: np.random.Generator, arch: str) -> Judge:
    """cub::DeviceRadixSort::SortPairs by bits 4 to 20: one sweep for each digit, tiles that look back at those before"""
    n = 9000
    keys, values = rng.integers(0, 2**32, n).astype(np.uint32), np.arange(n, dtype=np.int32)
    keys[rng.integers(0, n, n // 4)] = 777
    sorted_, placed, work = np.zeros(n, np.uint32), np.zeros(n, np.int32), np.zeros(1 << 20, np.uint8)
    yield from _run("cub_sort", arch, {"keys": keys, "sorted": sorted_, "values": values, "placed": placed, "work": work})
    assert (placed == np.argsort(keys >> 4 & 0xFFFF, kind="stable")).all()
    assert (sorted_ == keys[placed]).all()


def _devices(
    part: str, arch: str, x: np.ndarray, y: np.ndarray, counts: np.ndarray, *, unlike: str = "", **more: np.ndarray
) -> Judge:
    none = np.zeros(2, np.int32)
    arrays = {"x": x, "y": y, "counts": counts, "work": np.zeros(1 << 19, np.uint8), "more": none, "values": none, **more}
    yield from _run(part, arch, arrays, unlike=unlike)


@program("cub_selection_select", source="cub_selection")
def select(rng: np.random.Generator, arch: str) -> Judge:
    """cub::DeviceSelect::If"""
    x, y, counts = rng.integers(-99, 99, 6000).astype(np.int32), np.zeros(6000, np.int32), np.zeros(1, np.int32)
    yield from _devices("cub_selection_select", arch, x, y, counts)
    want = x[x & 1 == 1]
    assert counts[0] == len(want)
    assert (y[: len(want)] == want).all()


@program("cub_selection_partition", source="cub_selection")
def partition(rng: np.random.Generator, arch: str) -> Judge:
    """cub::DevicePartition::If, which writes the second part from its end"""
    x, y, counts = rng.integers(-99, 99, 6000).astype(np.int32), np.zeros(6000, np.int32), np.zeros(1, np.int32)
    yield from _devices("cub_selection_partition", arch, x, y, counts)
    odd = x & 1 == 1
    assert counts[0] == odd.sum()
    assert (y == np.concatenate([x[odd], x[~odd][::-1]])).all()


@program("cub_selection_histogram", source="cub_selection")
def histogram(rng: np.random.Generator, arch: str) -> Judge:
    """cub::DeviceHistogram::MultiHistogramEven: three of four channels, bins of three sizes"""
    pixels = rng.integers(0, 256, (2000, 4)).astype(np.uint8)
    bins = np.zeros((3, 32), np.int32)
    yield from _devices("cub_selection_histogram", arch, pixels, bins, np.zeros(1, np.int32))
    for channel, (n, low, high) in enumerate([(32, 0, 256), (16, 0, 128), (8, 16, 200)]):
        v = pixels[:, channel].astype(int)
        v = v[(v >= low) & (v < high)]
        assert (bins[channel, :n] == np.bincount((v - low) * n // (high - low), minlength=n)).all()
        assert not bins[channel, n:].any()


@program("cub_selection_runs", source="cub_selection")
def runs(rng: np.random.Generator, arch: str) -> Judge:
    """cub::DeviceRunLengthEncode::Encode"""
    x = np.repeat(rng.integers(0, 9, 6000), rng.integers(1, 7, 6000))[:6000].astype(np.int32)
    y, lengths, counts = np.zeros(6000, np.int32), np.zeros(6000, np.int32), np.zeros(1, np.int32)
    yield from _devices("cub_selection_runs", arch, x, y, counts, more=lengths)
    starts = np.flatnonzero(np.diff(x, prepend=x[0] - 1))
    n = len(starts)
    assert counts[0] == n
    assert (y[:n] == x[starts]).all()
    assert (lengths[:n] == np.diff(starts, append=6000)).all()


@program("cub_by_key_segments", source="cub_by_key", slow=False)
def segments(rng: np.random.Generator, arch: str) -> Judge:
    """cub::DeviceSegmentedReduce::Max, one segment empty"""
    x, y = rng.integers(-(2**31), 2**31, 5000).astype(np.int32), np.zeros(12, np.int32)
    ends = np.sort(rng.integers(0, 5000, 13)).astype(np.int32)
    ends[5] = ends[4]
    yield from _devices("cub_by_key_segments", arch, x, y, ends)
    assert y.tolist() == [x[a:b].max() if b > a else -(2**31) for a, b in itertools.pairwise(ends)]


@program("cub_by_key_merge", source="cub_by_key")
def merge(rng: np.random.Generator, arch: str) -> Judge:
    """cub::DeviceMergeSort::StableSortKeys of pairs of floats by their first"""
    x = rng.standard_normal((3000, 2)).astype(np.float32)
    x[:, 0] = np.round(x[:, 0], 1)
    before = x.copy()
    yield from _devices("cub_by_key_merge", arch, x, np.zeros(1, np.int32), np.zeros(1, np.int32))
    assert (x == before[np.argsort(before[:, 0], kind="stable")]).all()


@program("cub_by_key_reduce", source="cub_by_key", remarks=("uninitialised-read",))
def reduce_by_key(rng: np.random.Generator, arch: str) -> Judge:
    """cub::DeviceReduce::ReduceByKey with cuda::maximum"""
    n = 6000
    x = np.repeat(rng.integers(0, 9, n), rng.integers(1, 9, n))[:n].astype(np.int32)
    values, most = rng.standard_normal(n).astype(np.float32), np.zeros(n, np.float32)
    y, counts = np.zeros(n, np.int32), np.zeros(1, np.int32)
    yield from _devices("cub_by_key_reduce", arch, x, y, counts, more=most, values=values, unlike="work")
    starts = np.flatnonzero(np.diff(x, prepend=x[0] - 1))
    assert counts[0] == len(starts)
    assert (y[: len(starts)] == x[starts]).all()
    assert (most[: len(starts)] == np.maximum.reduceat(values, starts)).all()


@program("cub_by_key_scan", source="cub_by_key")
def scan_by_key(rng: np.random.Generator, arch: str) -> Judge:
    """cub::DeviceScan::InclusiveSumByKey of doubles that are whole numbers"""
    n = 4000
    x = np.repeat(rng.integers(0, 9, n), rng.integers(1, 300, n))[:n].astype(np.int32)
    values, y = rng.integers(-1000, 1000, n).astype(float), np.zeros(n)
    yield from _devices("cub_by_key_scan", arch, x, y, np.zeros(1, np.int32), more=values)
    starts = np.flatnonzero(np.diff(x, prepend=x[0] - 1))
    assert (y == np.concatenate([np.cumsum(v) for v in np.split(values, starts[1:])])).all()


@program("cub_more_sorts_doubles", source="cub_more_sorts")
def doubles(rng: np.random.Generator, arch: str) -> Judge:
    """cub::DeviceRadixSort::SortKeysDescending of doubles by their upper 24 bits, zeros of both signs among them"""
    x, y = rng.standard_normal(3000), np.zeros(3000)
    x[:40:2], x[1:41:2] = 0.0, -0.0
    yield from _devices("cub_more_sorts_doubles", arch, x, y, np.zeros(1, np.int32))
    bits = np.where(x == 0, 0.0, x).view(np.int64) >> 40  # zeros are equal
    places = np.where(bits < 0, ~bits, bits + (1 << 23))
    order = np.argsort(-places, kind="stable")
    assert (y.view(np.uint64) == x[order].view(np.uint64)).all()


@program("cub_more_sorts_segments", source="cub_more_sorts")
def segmented_sort(rng: np.random.Generator, arch: str) -> Judge:
    """cub::DeviceSegmentedSort::SortPairs: segments of sizes that take different ways"""
    n, segments_ = 3000, 30
    sizes = np.concatenate([rng.integers(0, 30, 22), rng.integers(100, 300, 7)])
    ends = np.concatenate([[0], np.cumsum(sizes), [n]]).astype(np.int32)
    assert len(ends) == segments_ + 1
    x, places, y, out = rng.integers(-99, 99, n).astype(np.int32), np.arange(n, dtype=np.int32), *np.zeros((2, n), np.int32)
    yield from _devices("cub_more_sorts_segments", arch, x, y, ends, more=places, values=out)
    for a, b in itertools.pairwise(ends):
        assert (y[a:b] == np.sort(x[a:b])).all()
        assert (np.sort(out[a:b]) == places[a:b]).all()
        assert (x[out[a:b]] == y[a:b]).all()
