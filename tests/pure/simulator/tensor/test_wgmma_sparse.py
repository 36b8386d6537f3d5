"""wgmma.mma_async.sp of every type: a dense A by the manual's rules, multiplied by numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sparse_operands import compress, metadata_registers
from warpsmith.assembly.ptx.isa import Row, match, rows
from warpsmith.hardware.scalar_forms import mnemonics
from warpsmith.simulator.fragments import wgmma_a, wgmma_accumulator
from warpsmith.simulator.meanings import registry
from wgmma_program import A_AT, B_AT, BYTES, PARAMETERS, body, tile

TYPES: dict[str, tuple[Any, int]] = {
    "f16": (np.float16, 32), "bf16": (ml_dtypes.bfloat16, 32), "tf32": (np.float32, 16), "e4m3": (ml_dtypes.float8_e4m3fn, 64),
    "e5m2": (ml_dtypes.float8_e5m2, 64), "s8": (np.int8, 64), "u8": (np.uint8, 64),
}  # fmt: skip
"""Element dtype and K."""


def operand(rng: np.random.Generator, shape: tuple[int, int], type_: str) -> np.ndarray:
    dtype = TYPES[type_][0]
    if type_ in ("s8", "u8"):
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
    values = rng.standard_normal(shape).astype(dtype)
    return (values.view(np.uint32) & 0xFFFFE000).view(np.float32) if type_ == "tf32" else values


def product(
    run: Any, d: str, a: str, b: str, n: int, *, selector: int, registers: bool, ta: bool = False, tb: bool = False, **more: Any
) -> Any:
    """Run one product; return (D, A with zeros, B as float64, the result of the run)."""
    k = TYPES[a][1]
    rng = np.random.default_rng(n + selector)
    A, B = operand(rng, (64, k), a), operand(rng, (n, k), b)
    B = more.pop("change", lambda x: x)(B)
    kept, stored, metadata = compress(rng, A, a)
    bits, width = 2 * k if a == "tf32" else k, 8 * A.dtype.itemsize
    e = [metadata_registers(rng, metadata[w : w + 16], bits, width, selector) for w in range(0, 64, 16)]
    swizzle = more.pop("swizzle", "64B")
    image = np.zeros(BYTES, np.uint8)
    da, db = tile(stored, 1024 + A_AT, swizzle, ta, image), tile(B, 1024 + B_AT, swizzle, tb, image)
    fragment = np.ascontiguousarray(stored[wgmma_a(k // 2, width)]).view(np.uint32)[..., 0]
    assert fragment.shape == (4, 128)
    count = n // 4 if d == "f16" else n // 2
    out = np.zeros((count, 128), np.uint32)
    tail = "" if d == "s32" else more.pop("tail", ", 1, 1")
    if a in ("f16", "bf16"):
        tail += ("" if registers else f", {int(ta)}") + f", {int(tb)}"
    text = body(f"m64n{n}k{k}.{d}.{a}.{b}", count, 4 if registers else 0, tail, more.pop("repeats", 1), selector)
    data = np.concatenate([fragment, np.concatenate(e)[None]])
    r = run(text, out, image, da, db, data, parameters=PARAMETERS, block=128, **more)
    assert r.completed
    assert [str(f) for f in r.findings] == []
    got = np.zeros((64, n))
    got[wgmma_accumulator(n, 16 if d == "f16" else 32)] = out[..., None].view(
        {"f32": np.float32, "f16": np.float16}.get(d, np.int32)
    )
    return got, kept.astype(np.float64), B.astype(np.float64), r


def close(got: np.ndarray, want: np.ndarray, tolerance: float) -> bool:
    return bool(np.abs(got - want).max() <= tolerance * np.abs(want).max())


@pytest.mark.parametrize(("d", "a", "b", "selector", "tolerance"), [
    ("f32", "f16", "f16", 0, 1e-6), ("f32", "f16", "f16", 1, 1e-6), ("f16", "f16", "f16", 1, 2e-3),
    ("f32", "bf16", "bf16", 0, 1e-6), ("f32", "tf32", "tf32", 0, 1e-6),
    ("f32", "tf32", "tf32", 1, 1e-6), ("f32", "e4m3", "e5m2", 0, 2e-3),
    ("f16", "e5m2", "e5m2", 0, 3e-3), ("s32", "s8", "s8", 0, 0), ("s32", "u8", "s8", 0, 0), ("s32", "u8", "u8", 0, 0),
])  # fmt: skip
@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_types_from_memory_and_registers(
    run: Any, d: str, a: str, b: str, selector: int, tolerance: float, registers: bool, numerics: str
) -> None:
    got, left, right, _ = product(run, d, a, b, 32, selector=selector, registers=registers, numerics=numerics)
    assert close(got, left @ right.T, tolerance)


@pytest.mark.parametrize(
    ("swizzle", "ta", "tb"),
    [("none", True, True), ("32B", True, True), ("64B", True, False), ("128B", False, True), ("128B", True, True)],
)
def test_layouts_and_transposes(run: Any, swizzle: str, ta: bool, tb: bool) -> None:
    got, a, b, _ = product(run, "f32", "bf16", "bf16", 64, selector=1, registers=False, ta=ta, tb=tb, swizzle=swizzle)
    assert close(got, a @ b.T, 1e-5)


@pytest.mark.parametrize("n", [8, 256])
def test_widths(run: Any, n: int) -> None:
    got, a, b, r = product(run, "f32", "f16", "f16", n, selector=0, registers=False, swizzle="128B", numerics="exact")
    assert close(got, a @ b.T, 1e-6)
    assert r.fidelity.notes["sparse f16 tensor cores"][0] == "hardware-checked"


def test_negation_and_accumulation(run: Any) -> None:
    got, a, b, _ = product(run, "f32", "f16", "f16", 16, selector=1, registers=True, tail=", -1, 1", repeats=3)
    assert close(got, -3 * (a @ b.T), 1e-5)


def test_what_a_row_leaves_out_takes_no_part(run: Any) -> None:
    """A NaN in column 3 of B reaches only the rows of A that name it."""

    def spoil(b: np.ndarray) -> np.ndarray:
        b[3, 5] = np.nan
        return b

    got, a, _, _ = product(run, "f32", "f16", "f16", 8, selector=0, registers=False, change=spoil)
    names = a[:, 5] != 0
    assert 0 < names.sum() < 64
    assert (np.isnan(got[:, 3]) == names).all()
    assert not np.isnan(np.delete(got, 3, axis=1)).any()


ROWS = [r for r in rows() if r.opcode == "wgmma" and r.section.endswith(".6.4")]


def test_the_rows_are_there() -> None:
    assert len(ROWS) == 20


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_a_declared_row_has_a_meaning(row: Row) -> None:
    mnemonic = next(iter(mnemonics(row)))
    assert isinstance(registry.build(next(m for m in match(mnemonic) if m.row is row)), registry.Built)
