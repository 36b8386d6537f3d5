"""Products that ptxas builds from other instructions, through the registers: against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.pure.simulator.tensor.test_mma import fill, multiply

from warpsmith.simulator.fragments import accumulator, operand_a, operand_b

NATIVE, CONVERTED = ("sm_89", "sm_120a"), ("sm_90a", "sm_100a")
E5M2 = ml_dtypes.float8_e5m2


def product_of_bytes(run: Any, target: str, row: dict[int, float], column: dict[int, float], c: float) -> float:
    """Element (0, 0) of m16n8k32 of e5m2."""
    A, B, C = np.zeros((16, 32), E5M2), np.zeros((32, 8), E5M2), np.zeros((16, 8), np.float32)
    for k, value in row.items():
        A[0, k] = value
    for k, value in column.items():
        B[k, 0] = value
    C[0, 0] = c
    where = accumulator(16, 8, 32)
    parts = [fill(A, operand_a(16, 32, 8)), fill(B, operand_b(32, 8, 8)), fill(C, where)]
    got = np.zeros((16, 8), np.float32)
    out = multiply(run, "m16n8k32.row.col.f32.e5m2.e5m2.f32", target, parts, 4, numerics="exact")
    got[where] = out[..., None].view(np.float32)
    return float(got[0, 0])


@pytest.mark.parametrize("target", CONVERTED)
def test_c_is_added_last_and_rounded_to_nearest(run: Any, target: str) -> None:
    assert product_of_bytes(run, target, {0: 3}, {0: 1}, 2.0**24) == 2.0**24 + 4


def test_one_sum_truncates_where_bytes_are_native(run: Any) -> None:
    assert product_of_bytes(run, "sm_120a", {0: 3}, {0: 1}, 2.0**24) == 2.0**24 + 2


@pytest.mark.parametrize(("target", "expected"), [(t, 2.0) for t in CONVERTED] + [("sm_120a", 0.0)])
def test_elements_0_and_1_of_four_are_summed_first(run: Any, target: str, expected: float) -> None:
    """2³⁰ − 2³⁰ cancels before the two ones come; in one sum with them they would be lost."""
    row = {0: 2.0**15, 1: -(2.0**15), 2: 1.0, 3: 1.0}
    assert product_of_bytes(run, target, row, {0: 2.0**15, 1: 2.0**15, 2: 1.0, 3: 1.0}, 0.0) == expected
    lost = {0: 2.0**15, 2: -(2.0**15), 1: 1.0, 3: 1.0}
    assert product_of_bytes(run, target, lost, {0: 2.0**15, 2: 2.0**15, 1: 1.0, 3: 1.0}, 0.0) == 0.0


def rounded(value: Fraction, bits: int, least: int) -> Fraction:
    """To the nearest number of `bits` significant bits, ties to even; `least`: exponent of the last place of subnormals."""
    if value == 0:
        return value
    e = max(value.numerator.bit_length() - value.denominator.bit_length() - bits - 1, least)
    while abs(value) / Fraction(2) ** e >= 1 << bits:
        e += 1
    return round(value / Fraction(2) ** e) * Fraction(2) ** e


def single(value: Fraction) -> Fraction:
    return rounded(value, 24, -149)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120a"])
@pytest.mark.parametrize("half", [False, True])
def test_volta_shape_is_f32_arithmetic(run: Any, target: str, half: bool) -> None:
    rng = np.random.default_rng(4)
    a, b = (((rng.standard_normal((32, 4))) * 2.0 ** rng.integers(-8, 8, (32, 4))).astype(np.float16) for _ in range(2))
    c = (rng.standard_normal((8, 32)) * 2.0 ** rng.integers(-6, 12, (8, 32))).astype(np.float16 if half else np.float32)
    third = np.ascontiguousarray(c.reshape(4, 2, 32).swapaxes(1, 2)).view(np.uint32)[..., 0] if half else c.view(np.uint32)
    parts = [a.view(np.uint32).T.copy(), b.view(np.uint32).T.copy(), third]
    kind = "f16" if half else "f32"
    out = multiply(run, f"m8n8k4.row.col.{kind}.f16.f16.{kind}", target, parts, 4 if half else 8)
    if half:
        assert out.shape == (4, 32)
    for lane in range(32):
        for i in range(8):
            if half:  # lane holds one row: its columns in order
                row, column = lane % 4 + 4 * (lane // 16), i
                got = out[i // 2, lane : lane + 1].view(np.float16)[i % 2]
                start = c.reshape(4, 2, 32)[i // 2, i % 2, lane]
            else:
                row, column = (lane & 1) + (i & 2) + 4 * (lane // 16), (i & 4) + (lane & 2) + (i & 1)
                got, start = out[i, lane : lane + 1].view(np.float32)[0], c[i, lane]
            q = lane // 4 % 4
            left = a[next(x for x in range(32) if x // 4 % 4 == q and x % 4 + 4 * (x // 16) == row)]
            right = b[next(x for x in range(32) if x // 4 % 4 == q and x % 4 + 4 * (x // 16) == column)]
            products = [Fraction(float(x)) * Fraction(float(y)) for x, y in zip(left, right, strict=True)]
            if half:
                pairs = [single(single(products[k]) + products[k + 1]) for k in (0, 2)]
                expected = rounded(single(single(Fraction(float(start)) + pairs[0]) + pairs[1]), 11, -24)
            else:
                total = Fraction(0)
                for p in products:
                    total = single(total + p)
                expected = single(Fraction(float(start)) + total)
            assert Fraction(float(got)) == expected
