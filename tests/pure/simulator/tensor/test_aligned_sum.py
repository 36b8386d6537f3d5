"""Truncated fused dot products against the same sums in Python integers, on operands chosen to be awkward."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpsmith.simulator import aligned_sum
from warpsmith.simulator.tensorcore import Rule, exact, rule_for

DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
LARGEST_ODD = {"f16": 1 + 1023 / 1024, "bf16": 1 + 127 / 128, "tf32": 1 + 1023 / 1024, "e4m3": 1.875, "e5m2": 1.75}
"""The largest significand: 16 or 32 products of it are the largest sum of a block."""
RULES = [
    (capability, t, d, wgmma)
    for capability, wgmma in ((75, False), (80, False), (89, False), (90, False), (90, True))
    for t in ("f16", "bf16", "tf32", "e4m3", "e5m2")
    for d in ("f32", "f16")
    if not (d == "f16" and t in ("bf16", "tf32")) and not (capability < 89 and t.startswith("e"))
]


def floor_log2(x: Fraction) -> int:
    n = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
    return n if abs(x) >= Fraction(2) ** n else n - 1


def one_block(products: list[tuple[Fraction, int]], c: Fraction, rule: Rule) -> Fraction:
    """Return a block's sum, rounded to f32 or f16; `products` are (value, sum of the exponents)."""
    ec = max(floor_log2(c), rule.min_c) if c else rule.zero
    unit = Fraction(2) ** (max([ec, *(e if p else rule.zero for p, e in products)]) - rule.fraction)
    total = sum(int(p / unit) for p, _ in products) + int(c / unit)  # int() truncates toward zero
    value = total * unit
    if rule.rounding == "rne16":
        return Fraction(float(np.float16(float(value)))) if abs(value) < 65520 else value
    if not value:
        return value
    last = Fraction(2) ** (max(floor_log2(value), -126) - (23 if rule.rounding == "rz32" else 13))
    return int(value / last) * last


def element(a: Any, b: Any, c: float, rule: Rule) -> Fraction | None:
    """Return one element of the result; None once a block's sum has overflowed."""
    out = Fraction(float(c))
    limit = 65520 if rule.rounding == "rne16" else 2**128
    for at in range(0, len(a), rule.block):
        terms: list[tuple[Fraction, int]] = []
        for x, y in zip(a[at : at + rule.block].tolist(), b[at : at + rule.block].tolist(), strict=True):
            p = Fraction(x) * Fraction(y)
            terms.append((p, max(floor_log2(Fraction(x)), rule.min_a) + max(floor_log2(Fraction(y)), rule.min_b) if p else 0))
        out = one_block(terms, out, rule)
        if abs(out) >= limit:
            return None
    return out


def operand(rng: np.random.Generator, type_: str, shape: tuple[int, ...], kind: str) -> Any:
    """Return values that the type holds: all bit patterns that are finite, normal deviates, spread, equal, or many zeros."""
    bits = rng.integers(0, 1 << 32, shape, dtype=np.uint64).astype(np.uint32)
    if type_ == "tf32":
        x = rng.standard_normal(shape) * 2.0 ** rng.integers(-30 if kind == "spread" else 0, 1, shape)
        if kind != "bits":
            bits = x.astype(np.float32).view(np.uint32)
        x = (bits & np.uint32(0xFFFFE000)).view(np.float32)
    elif kind == "bits":
        width = np.dtype(DTYPES[type_]).itemsize
        x = bits.astype(f"u{width}").view(DTYPES[type_]).astype(np.float32)
    else:
        spread = {"f16": 12, "bf16": 40, "e4m3": 8, "e5m2": 12}[type_] if kind == "spread" else 0
        x = (rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, 1, shape)).astype(DTYPES[type_]).astype(np.float32)
    x = np.where(np.isfinite(x), x, np.float32(1))
    if kind == "equal":
        x = np.full(shape, LARGEST_ODD[type_], np.float32)
    if kind == "zeros":
        x[rng.random(shape) < 0.5] = 0
        x[0, :2] = 0
    return x


def accumulator(rng: np.random.Generator, kind: str, a: Any, b: Any, *, half: bool) -> Any:
    product = np.matmul(a.astype(np.float64), b.astype(np.float64))
    c = {
        "none": np.zeros_like(product),
        "cancel": -product,
        "spread": rng.standard_normal(product.shape) * 2.0 ** rng.integers(-30, 30, product.shape),
        "same": np.abs(product),
    }[kind]
    c = np.clip(c, -60000, 60000).astype(np.float16) if half else np.clip(c, -1e36, 1e36)
    return c.astype(np.float32)


@pytest.mark.parametrize(("capability", "type_", "d", "wgmma"), RULES)
def test_equals_integer_arithmetic(capability: int, type_: str, d: str, wgmma: bool) -> None:
    rule = rule_for(capability, type_, type_, d, wgmma=wgmma)
    rng = np.random.default_rng([capability, len(type_), d == "f16", wgmma])
    for kind in ("bits", "normal", "spread", "equal", "zeros"):
        for third in ("none", "cancel", "spread", "same"):
            a, b = operand(rng, type_, (2, 2, 2 * rule.block), kind), operand(rng, type_, (2, 2 * rule.block, 3), kind)
            c = accumulator(rng, third, a, b, half=d == "f16")
            got = exact(a, b, c, rule)
            for i, m, n in np.ndindex(got.shape):
                want = element(a[i, m], b[i, :, n], c[i, m, n], rule)
                if want is None:
                    assert np.isinf(got[i, m, n])
                else:
                    assert Fraction(float(got[i, m, n])) == want, (kind, third, i, m, n)
                    assert want or not np.signbit(got[i, m, n])


def test_ordinary_values_take_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros, padding and f16's subnormals included; an infinity concerns its own block only."""
    taken: list[bool] = []
    quick = aligned_sum.add_block
    monkeypatch.setattr(aligned_sum, "add_block", lambda *a: taken.append(quick(*a)) or taken[-1])
    rng = np.random.default_rng(0)
    rule = rule_for(90, "f16", "f16", "f32", wgmma=True)
    a, b = operand(rng, "f16", (4, 64, 64), "zeros"), operand(rng, "f16", (4, 64, 128), "normal")
    a[1], a[2, 0] = 0, 2.0**-24
    alone = exact(a, b, None, rule)
    assert taken
    assert all(taken)
    taken.clear()
    a[3, 5, 20] = np.inf
    together = exact(a, b, None, rule)
    assert sum(not t for t in taken) == 3  # the second block has it as an operand, the others in C
    assert np.isinf(together[3, 5]).all()
    same = np.ones(alone.shape, np.bool_)
    same[3, 5] = False
    assert (alone == together)[same].all()
