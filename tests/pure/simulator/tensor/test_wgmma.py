"""wgmma of every type and layout against numpy: operands laid out in shared memory by the descriptor's own rules."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpsmith.simulator.fragments import wgmma_a, wgmma_accumulator
from warpsmith.simulator.matrix_descriptor import MatrixDescriptor, encode
from wgmma_program import A_AT, B_AT, BYTES, PARAMETERS, body, tile

TYPES: dict[str, tuple[Any, int]] = {
    "f16": (np.float16, 16), "bf16": (ml_dtypes.bfloat16, 16), "tf32": (np.float32, 8), "e4m3": (ml_dtypes.float8_e4m3fn, 32),
    "e5m2": (ml_dtypes.float8_e5m2, 32), "s8": (np.int8, 32), "u8": (np.uint8, 32),
}  # fmt: skip
"""Element dtype and K."""


def product(run: Any, d: str, a: str, b: str, n: int, *, swizzle: str, ta: bool, tb: bool, registers: bool, **more: Any) -> Any:
    """Run one product; return (D, the values of A and B as float64)."""
    (a_dtype, k), (b_dtype, _) = TYPES[a], TYPES[b]
    rng = np.random.default_rng(9)
    if a in ("s8", "u8"):
        A, B = rng.integers(0, 100, (64, k)).astype(a_dtype), rng.integers(0, 100, (n, k)).astype(b_dtype)
    else:
        A, B = rng.standard_normal((64, k)).astype(a_dtype), rng.standard_normal((n, k)).astype(b_dtype)
    if a == "tf32":
        A, B = ((x.view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (A, B))
    image = np.zeros(BYTES, np.uint8)
    da = tile(A, 1024 + A_AT, swizzle, ta, image)
    db = tile(B, 1024 + B_AT, swizzle, tb, image)
    count = n // 4 if d == "f16" else n // 2
    where = wgmma_a(k, 8 * A.dtype.itemsize)
    fragment = np.ascontiguousarray(A[where]).view(np.uint32)[..., 0]
    out = np.zeros((count, 128), np.uint32)
    tail = "" if d == "s32" else more.pop("tail", ", 1, 1")
    if a in ("f16", "bf16"):
        tail += ("" if registers else f", {int(ta)}") + f", {int(tb)}"
    text = body(f"m64n{n}k{k}.{d}.{a}.{b}", count, 4 if registers else 0, tail, more.pop("repeats", 1))
    r = run(text, out, image, da, db, fragment, parameters=PARAMETERS, block=128, **more)
    assert r.completed
    assert [str(f) for f in r.findings] == []
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[d]
    got = np.zeros((64, n))
    got[wgmma_accumulator(n, 16 if d == "f16" else 32)] = out[..., None].view(dtype)
    return got, A.astype(np.float64), B.astype(np.float64)


def close(got: np.ndarray, want: np.ndarray, tolerance: float) -> bool:
    return bool(np.abs(got - want).max() <= tolerance * np.abs(want).max())


@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False), (True, True)])
def test_layouts_and_transposes(run: Any, swizzle: str, ta: bool, tb: bool) -> None:
    got, a, b = product(run, "f32", "bf16", "bf16", 64, swizzle=swizzle, ta=ta, tb=tb, registers=False, numerics="exact")
    assert close(got, a @ b.T, 1e-6)


@pytest.mark.parametrize(("d", "a", "b", "tolerance"), [
    ("f32", "f16", "f16", 1e-6), ("f16", "f16", "f16", 1e-3), ("f32", "tf32", "tf32", 1e-6), ("f32", "e4m3", "e5m2", 1e-3),
    ("f16", "e5m2", "e5m2", 2e-3), ("s32", "s8", "s8", 0), ("s32", "u8", "s8", 0),
])  # fmt: skip
@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_types_from_memory_and_registers(
    run: Any, d: str, a: str, b: str, tolerance: float, registers: bool, numerics: str
) -> None:
    got, left, right = product(run, d, a, b, 32, swizzle="32B", ta=False, tb=False, registers=registers, numerics=numerics)
    assert close(got, left @ right.T, tolerance)


@pytest.mark.parametrize("n", [8, 24, 128, 256])
def test_widths(run: Any, n: int) -> None:
    got, a, b = product(run, "f32", "f16", "f16", n, swizzle="128B", ta=False, tb=False, registers=False, numerics="fast")
    assert close(got, a @ b.T, 1e-5)


def test_negation_and_accumulation(run: Any) -> None:
    options = {"swizzle": "128B", "ta": False, "tb": False, "registers": False}
    got, a, b = product(run, "f32", "f16", "f16", 16, tail=", -1, 1", repeats=3, **options)
    assert close(got, -3 * (a @ b.T), 1e-6)


def test_a_result_is_not_there_before_the_wait(run: Any) -> None:
    """Reading the accumulators after the commit shows the old values and is reported."""
    text = body("m64n8k16.f32.f16.f16", 4, 0, ", 1, 1, 0, 0").replace(" wgmma.wait_group.sync.aligned 0;\n", "")
    image = np.ones(BYTES // 2, np.float16)
    d = encode(MatrixDescriptor(1024, 128, 256))
    out = np.zeros((4, 128), np.float32)
    r = run(text, out, image, d, d, np.zeros(512, np.uint32), parameters=PARAMETERS, block=128)
    assert (out == 0).all()
    finding = next(f for f in r.findings if f.kind == "register-before-wait")
    assert finding.message == "`st.global.b32` reads accumulators of a wgmma that has not been waited for"
    assert finding.related[0].message.startswith("`wgmma.mma_async.sync.aligned.m64n8k16")


def test_a_descriptor_out_of_the_cta_is_named(run: Any) -> None:
    text = body("m64n8k16.f32.f16.f16", 4, 0, ", 1, 1, 0, 0")
    d = encode(MatrixDescriptor(60000 & ~15, 128, 256))
    args = (np.zeros((4, 128), np.float32), np.zeros(BYTES, np.uint8), d, d, np.zeros(512, np.uint32))
    r = run(text, *args, parameters=PARAMETERS, block=128)
    assert r.findings[0].kind == "out-of-bounds"
    assert r.findings[0].message.startswith("a matrix descriptor of wgmma reaches shared addresses 0xea60 to ")
