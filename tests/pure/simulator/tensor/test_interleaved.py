"""Copies of interleaved tensors (PTX ISA 5.5.6) against numpy: arrays of images, slices, (depth,) (height,) width, channels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.pure.simulator.tensor.test_tensor_copies import MAP, load, loading, storing, unswizzled

from warpsmith.base.errors import CapabilityError, InputError
from warpsmith.base.tensormap import TensorMapFields
from warpsmith.simulator.tensormap import TensorMap
from warpsmith.simulator.tma import modelled

SHAPES = {3: (3, 4, 9), 4: (3, 4, 5, 9), 5: (2, 4, 3, 4, 9)}
STORE = "cp.async.bulk.tensor.{dims}d.global.shared::cta.tile.bulk_group"


def numbered(rank: int, unit: int, dtype: Any = np.uint16) -> np.ndarray:
    shape = (*SHAPES[rank], unit // 4)
    return (np.arange(np.prod(shape), dtype=np.uint32) + 1).reshape(shape).view(dtype)


def slices_of(
    shape: Sequence[int], at: Sequence[int], counts: Sequence[int], steps: Sequence[int]
) -> Iterator[tuple[int, ...] | None]:
    """The places of a box in the order of shared memory, None for those outside; all outermost first."""
    for index in itertools.product(*(range(0, n, s) for n, s in zip(counts, steps, strict=True))):
        place = tuple(a + i for a, i in zip(at, index, strict=True))
        yield place if all(0 <= p < n for p, n in zip(place, shape, strict=True)) else None


def boxed(a: np.ndarray, at: Sequence[int], counts: Sequence[int], steps: Sequence[int] = (), fill: Any = 0) -> np.ndarray:
    outside = np.full(a.shape[-1], fill, a.dtype)
    places = slices_of(a.shape[:-1], at, counts, steps or (1,) * len(at))
    return np.stack([outside if p is None else a[p] for p in places])


@pytest.mark.parametrize("unit", [16, 32])
@pytest.mark.parametrize("at", [
    (0, 0, 0), (1, 1, 3), (2, 3, 8), (-1, 0, 0), (0, -1, -2), (0, 2, 7), (1, -2, 5), (3, 0, 0), (0, 4, 0), (0, 0, 9),
])  # fmt: skip
def test_a_box_takes_one_slice_of_each_pixel(run: Any, unit: int, at: tuple[int, ...]) -> None:
    """Rows of W follow each other, then images; the coordinate of channels counts slices."""
    a = numbered(3, unit)
    tensor_map = TensorMap(a, box=(2, unit // 2, 8), interleave=f"{unit}B")
    got = load(run, tensor_map, list(reversed(at)), 2 * 8 * unit).view(np.uint16).reshape(-1, unit // 2)
    assert (got == boxed(a, at, (2, 1, 8))).all()


@pytest.mark.parametrize(("rank", "at"), [(4, (1, 1, 2, 3)), (4, (-1, 3, 4, -1)), (5, (0, 1, 1, 1, 2)), (5, (1, 2, -1, 3, 4))])
@pytest.mark.parametrize("unit", [16, 32])
def test_every_rank(run: Any, unit: int, rank: int, at: tuple[int, ...]) -> None:
    a = numbered(rank, unit)
    counts = (*(2, 1, 2, 2)[: rank - 1], 8)
    box = (counts[0], unit // 2, *counts[2:])
    tensor_map = TensorMap(a, box=box, interleave=f"{unit}B")
    size = int(np.prod(counts)) * unit
    got = load(run, tensor_map, list(reversed(at)), size).view(np.uint16).reshape(-1, unit // 2)
    assert (got == boxed(a, at, counts)).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [1, 7, 64, 256])
def test_the_box_has_no_say_in_channels(run: Any, dtype: Any, channels: int) -> None:
    a = numbered(3, 16, dtype)
    width = 16 // np.dtype(dtype).itemsize
    tensor_map = TensorMap(a, box=(1, channels, width), interleave="16B", element_strides=(1, 3, 1))
    got = load(run, tensor_map, [1, 1, 1], width * 16).reshape(-1, 16)
    assert (got == boxed(a.view(np.uint8), (1, 1, 1), (1, 1, width))).all()


@pytest.mark.parametrize("unit", [16, 32])
@pytest.mark.parametrize("swizzle", ["32B", "64B", "128B"])
@pytest.mark.parametrize("width", [4, 8])
def test_slices_lie_dense_under_every_swizzle(run: Any, unit: int, swizzle: str, width: int) -> None:
    a = numbered(3, unit, np.uint32)
    tensor_map = TensorMap(a, box=(2, unit // 2, width), interleave=f"{unit}B", swizzle=swizzle)
    got = unswizzled(load(run, tensor_map, [1, 1, 0], 2 * width * unit), swizzle).view(np.uint32).reshape(-1, unit // 4)
    assert (got == boxed(a, (0, 1, 1), (2, 1, width))).all()


def test_what_lies_outside_is_filled_with_nan(run: Any) -> None:
    a = np.ones((1, 2, 8, 8), np.float16)
    got = load(run, TensorMap(a, box=(1, 8, 8), interleave="16B", fill="nan"), [4, 1, 0], 128).view(np.uint16)
    assert (got[:32] == 0x3C00).all()
    assert (got[32:] == 0x7FF7).all()


@pytest.mark.parametrize("steps", [(1, 1, 1, 3), (1, 1, 2, 1), (2, 1, 1, 1), (2, 5, 2, 2)])
def test_element_strides_skip_pixels_and_images(run: Any, steps: tuple[int, ...]) -> None:
    a = numbered(4, 16)
    counts = (3, 1, 4, 8)
    size = 16 * int(np.prod([-(-n // s) for n, s in zip(counts, steps, strict=True)]))
    tensor_map = TensorMap(a, box=(3, 8, 4, 8), interleave="16B", element_strides=steps)
    got = load(run, tensor_map, [1, 0, 1, 0], size).view(np.uint16).reshape(-1, 8)
    assert (got == boxed(a, (0, 1, 0, 1), counts, steps)).all()


@pytest.mark.parametrize(("unit", "first", "channels"), [(16, 1, 8), (16, 3, 256), (32, 0, 16), (32, 4, 16), (16, -1, 8)])
@pytest.mark.parametrize(("lower", "upper", "offsets"), [
    ((-1, -1), (-1, -1), (1, 2)), ((0, 0), (1, 1), (0, 0)), ((-1, 0), (1, 0), (2, 1)),
])  # fmt: skip
def test_columns_take_one_slice_of_each_pixel(
    run: Any, unit: int, first: int, channels: int, lower: tuple[int, int], upper: tuple[int, int], offsets: tuple[int, int]
) -> None:
    """Corners are given H first, offsets W first; the third coordinate is the slice."""
    a = numbered(4, unit)
    images, slices, height, width = a.shape[:4]
    tensor_map = TensorMap(a, interleave=f"{unit}B", channels=channels, pixels=50, lower=lower, upper=upper)
    start = [lower[1], lower[0], first, 0]
    tail = f", {{{offsets[0]}, {offsets[1]}}}"
    got = load(run, tensor_map, start, 50 * unit, mode="im2col", offsets=tail)
    walk = itertools.product(
        range(images + 1), range(lower[0], height + upper[0]), range(lower[1], width + upper[1])
    )  # fmt: skip
    want = np.zeros((50, unit // 2), np.uint16)
    for k, (n, y, x) in enumerate(itertools.islice(walk, 50)):
        y, x = y + offsets[1], x + offsets[0]
        if n < images and 0 <= y < height and 0 <= x < width and 0 <= first < slices:
            want[k] = a[n, first, y, x]
    assert (got.view(np.uint16).reshape(want.shape) == want).all()


@pytest.mark.parametrize("unit", [16, 32])
@pytest.mark.parametrize("at", [(1, 1, 1), (2, 3, 5), (0, 4, 0), (1, 2, 8)])
def test_a_store_writes_one_slice_of_each_pixel_inside(run: Any, unit: int, at: tuple[int, ...]) -> None:
    a = np.zeros((*SHAPES[3], unit // 2), np.uint16)
    data = np.arange(2 * 8 * unit // 2, dtype=np.uint16).reshape(-1, unit // 2) + 1
    tensor_map = TensorMap(a, box=(2, unit, 8), interleave=f"{unit}B")
    r = run(storing(3, list(reversed(at)), data.nbytes, STORE), data, tensor_map, parameters=MAP)
    assert r.completed
    assert [str(f) for f in r.findings] == []
    want = np.zeros_like(a)
    for place, held in zip(slices_of(a.shape[:-1], at, (2, 1, 8), (1, 1, 1)), data, strict=True):
        if place is not None:
            want[place] = held
    assert (a == want).all()


def test_a_reduction_adds_elements(run: Any) -> None:
    a = numbered(3, 16, np.uint32)
    data, before = np.full((4, 4), 5, np.uint32), a.copy()
    copy = "cp.reduce.async.bulk.tensor.{dims}d.global.shared::cta.add.tile.bulk_group"
    r = run(storing(3, [7, 2, 1], data.nbytes, copy), data, TensorMap(a, box=(1, 8, 4), interleave="16B"), parameters=MAP)
    assert r.completed
    before[1, 2, 7:9] += 5
    assert (a == before).all()


@pytest.mark.parametrize("at", [(-1, 0, 0), (0, -1, 0), (0, 0, -1)])
def test_stores_do_not_start_before_the_tensor(run: Any, at: tuple[int, ...]) -> None:
    a, data = np.zeros((2, 4, 9, 8), np.uint16), np.ones(256, np.uint8)
    r = run(storing(3, list(at), 256, STORE), data, TensorMap(a, box=(1, 16, 8), interleave="16B"), parameters=MAP)
    assert not r.completed
    message = f"a tensor store starts at coordinates ({at[0]}, {at[1]}, {at[2]}); none may be negative"
    assert [(f.kind, f.message) for f in r.findings] == [("out-of-bounds", message)]
    assert not a.any()


def test_a_barrier_that_expects_two_slices_hangs(run: Any) -> None:
    a = numbered(3, 16)
    body = loading(3, [0, 0, 0], 512)  # of two slices
    r = run(body, np.zeros(512, np.uint8), TensorMap(a, box=(2, 16, 8), interleave="16B"), parameters=MAP)
    assert not r.completed
    assert [f.kind for f in r.findings] == ["tx-mismatch", "deadlock"]


@pytest.mark.parametrize(("array", "options", "message"), [
    (np.zeros((2, 4, 9, 16), np.float16), {"interleave": "16B"},
     r"with interleave 16B the last dimension of the array is a slice of 16 bytes, 8 of float16, and slices lie behind each "
     r"other; this array has shape \(2, 4, 9, 16\)"),
    (np.zeros((2, 4, 9, 16), np.uint8)[:, :, ::2], {"interleave": "16B"},
     r"with interleave 16B the last dimension of the array is a slice of 16 bytes, 16 of uint8, and slices lie behind each "
     r"other; this array has shape \(2, 4, 5, 16\)"),
    (np.zeros((4, 9, 8), np.float16), {"interleave": "16B", "box": (8, 8)},
     r"interleave 16B needs rank 3 or more, this is rank 2"),
    (np.zeros((2, 4, 9, 8), np.float16), {"interleave": "16B", "box": (1, 8, 4)},
     r"a box 4 slices wide; the driver takes multiples of 8 \(16 bytes of elements\), of interleaved tensors too"),
    (np.zeros((2, 4, 9, 8), np.float16), {"interleave": "16B", "channels": 8, "pixels": 8, "lower": (3,), "upper": (-6,)},
     r"the pixel box is empty in dimension 0: it runs from 3 to 2"),
])  # fmt: skip
def test_maps_are_checked(array: np.ndarray, options: dict[str, Any], message: str) -> None:
    held = {"box": (1, 8, 8), **options}
    if "channels" in held:
        del held["box"]
    with pytest.raises(InputError, match=rf"^tensor map: {message}$"):
        TensorMap(array, **held)


@pytest.mark.parametrize(("element", "rank"), [("f16", 1), ("u32", 2), ("b4x16_p64", 4)])
def test_maps_that_only_a_device_could_make_are_refused(element: str, rank: int) -> None:
    ones = (1,) * rank
    f = TensorMapFields(element, 0, ones, ones[1:], box=ones, element_strides=ones, interleave="32B")
    message = f"^simulator: tensor copies with interleave 32B of {element} at rank {rank} are not modelled$"
    with pytest.raises(CapabilityError, match=message):
        modelled(f)
