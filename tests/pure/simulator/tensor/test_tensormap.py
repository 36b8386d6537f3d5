"""Tensor maps: bytes back to fields, numpy arrays to fields, and what is refused beyond the captured cases."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsmith.base.errors import InputError
from warpsmith.base.tensormap import ELEMENTS, SWIZZLES, TensorMapFields, check
from warpsmith.base.tensormap_bits import SIZE, decode, encode
from warpsmith.simulator.tensormap import TensorMap


@st.composite
def tiled(draw: st.DrawFn) -> TensorMapFields:
    rank = draw(st.integers(1, 5))
    numbers = st.integers
    return TensorMapFields(
        draw(st.sampled_from(list(ELEMENTS))),
        draw(numbers(0, 2**57 - 1)) & ~31,
        tuple(draw(numbers(1, 2**32)) for _ in range(rank)),
        tuple(draw(numbers(0, 2**36 - 1)) << 4 for _ in range(rank - 1)),
        tuple(draw(numbers(1, 256)) for _ in range(rank)),
        tuple(draw(numbers(1, 8)) for _ in range(rank)),
        swizzle=draw(st.sampled_from(SWIZZLES)),
        l2=draw(st.sampled_from(("none", "64B", "128B", "256B"))),
        nan_fill=draw(st.booleans()),
    )


@given(tiled())
def test_fields_survive(fields: TensorMapFields) -> None:
    data = encode(fields)
    assert len(data) == SIZE
    assert decode(data) == fields


def test_an_array_gives_its_shape_reversed() -> None:
    a = np.zeros((3, 5, 32), ml_dtypes.bfloat16)
    f = TensorMap(a, box=(1, 2, 32), swizzle="64B", l2="128B", element_strides=(1, 2, 1)).fields(0x1000)
    assert (f.element, f.dims, f.strides, f.box, f.element_strides) == ("bf16", (32, 5, 3), (64, 320), (32, 2, 1), (1, 2, 1))
    assert f.bits == 16


def test_a_view_keeps_its_strides() -> None:
    a = np.zeros((8, 64), np.float32)[:, :32]
    assert TensorMap(a, box=(4, 32)).fields(0).strides == (256,)


@pytest.mark.parametrize(
    ("array", "options", "message"),
    [
        (
            np.zeros((4, 4), np.complex64),
            {},
            r"^tensor map: no element type for dtype complex64; give element=, one of u8, u16",
        ),
        (np.zeros((4, 8), np.float32).T, {}, r"^tensor map: the last dimension of the array must be contiguous$"),
        (
            np.zeros((4, 3), np.float32),
            {},
            r"^tensor map: stride of dimension 1 is 12 bytes; it must be a multiple of 16 below",
        ),
        (
            np.zeros((2, 2, 2, 2, 2, 16), np.uint8),
            {"box": (1,) * 6},
            r"^tensor map: rank 6 is not supported; 1 to 5 are in tiled",
        ),
        (np.zeros((4, 16), np.int32), {"fill": "nan"}, r"^tensor map: NaN fill needs a floating-point element type, not s32$"),
        (
            np.zeros((4, 16, 4), np.int32),
            {"interleave": "16B"},
            r"^tensor map: interleave 16B needs rank 3 or more, this is rank 2$",
        ),
    ],
)
def test_refusals(array: np.ndarray, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TensorMap(array, **{"box": (1, 16), **options})  # type: ignore[arg-type]


def test_later_devices_only() -> None:
    f = TensorMap(np.zeros((4, 64), np.uint16), box=(4, 64), swizzle="128B_atom_32B").fields(0)
    check(f, capability=100)
    with pytest.raises(InputError, match=r"^tensor map: swizzle 128B_atom_32B needs sm_100 or later, this device is sm_90$"):
        check(f, capability=90)
