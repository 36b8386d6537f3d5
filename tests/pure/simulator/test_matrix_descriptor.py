"""Matrix descriptors: fields, and element addresses against tiles laid out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warpsmith as ws
from warpsmith.base.errors import CapabilityError, InputError
from warpsmith.simulator.matrix_descriptor import MatrixDescriptor, decode, encode, offsets
from warpsmith.simulator.swizzle import swizzle


@given(st.integers(0, 2**14 - 1), st.integers(0, 2**14 - 1), st.integers(0, 2**14 - 1), st.integers(0, 7), st.integers(0, 3))
def test_fields_survive(start: int, leading: int, stride: int, base: int, swizzle_: int) -> None:
    bits = start | leading << 16 | stride << 32 | base << 49 | swizzle_ << 62
    d = decode(bits)
    assert (d.start, d.leading, d.stride, d.base_offset) == (start * 16, leading * 16, stride * 16, base)
    assert encode(d) == bits


def test_a_descriptor_is_explained() -> None:
    assert ws.explain_descriptor(encode(MatrixDescriptor(0x400, 16, 1024, "128B")) | 1 << 47) == (
        "wgmma descriptor 0x4000804000010040\n"
        "  13:0   start address             0x400\n"
        "  29:16  leading dimension offset  16 bytes\n"
        "  45:32  stride dimension offset   1024 bytes\n"
        "  51:49  base offset               0\n"
        "  63:62  swizzle                   128B\n"
        "  reserved bits that must be 0: 47"
    )
    with pytest.raises(
        InputError, match=r"^explain_descriptor: -0x1 is no 64-bit descriptor; give what make_descriptor computes$"
    ):
        ws.explain_descriptor(-1)


def row_major(rows: int, row_bytes: int, mode: str, start: int) -> np.ndarray:
    """Address of every byte of rows that follow each other, swizzled: what a tensor copy leaves behind."""
    return swizzle(mode, start + np.arange(rows)[:, None] * row_bytes + np.arange(row_bytes))


@pytest.mark.parametrize(("mode", "span"), [("128B", 128), ("64B", 64), ("32B", 32)])
def test_k_major_tile_of_a_tensor_copy(mode: str, span: int) -> None:
    """64 rows of one swizzle span, as a copy writes them; the descriptor steps through K by moving its start."""
    memory = row_major(64, span, mode, 2048)
    for k_byte in range(0, span, 32):
        d = MatrixDescriptor(2048 + k_byte, 0, 8 * span, mode)
        at = offsets(d, 64, 16, 2, mn_major=False)
        assert (at == memory[:, k_byte : k_byte + 32 : 2]).all()


@pytest.mark.parametrize(("mode", "span"), [("128B", 128), ("64B", 64), ("32B", 32)])
def test_mn_major_tile_of_a_tensor_copy(mode: str, span: int) -> None:
    """K rows of `span` bytes along MN, boxes of 32 k-rows after each other: LBO steps to the next box, SBO eight k-rows."""
    box = 32 * span
    memory = np.concatenate([row_major(32, span, mode, 4096 + i * box)[:, ::2] for i in range(2)], axis=1)
    for k in (0, 16):
        d = MatrixDescriptor(4096 + k * span, box, 8 * span, mode)
        at = offsets(d, span, 16, 2, mn_major=True)
        assert (at == memory[k : k + 16].T).all()


def test_k_major_without_swizzle_counts_core_matrices() -> None:
    """8x16-byte core matrices of 128 bytes: LBO apart along K, SBO apart along M."""
    at = offsets(MatrixDescriptor(1024, 128, 256), 16, 16, 2, mn_major=False)
    assert at[0, :9].tolist() == [1024, 1026, 1028, 1030, 1032, 1034, 1036, 1038, 1024 + 128]
    assert at[:9, 0].tolist() == [1024 + 16 * i for i in range(8)] + [1024 + 256]


def test_mn_major_without_swizzle_swaps_the_offsets() -> None:
    at = offsets(MatrixDescriptor(1024, 128, 256), 16, 16, 2, mn_major=True)
    assert at[:9, 0].tolist() == [1024 + 2 * i for i in range(8)] + [1024 + 256]
    assert at[0, :9].tolist() == [1024 + 16 * i for i in range(8)] + [1024 + 128]


def test_base_offset_is_refused() -> None:
    with pytest.raises(
        CapabilityError, match=r"^simulator: a matrix descriptor with base offset 1 is not modelled; align the 128B"
    ):
        offsets(MatrixDescriptor(1024, 0, 1024, "128B", 1), 64, 16, 2, mn_major=False)
