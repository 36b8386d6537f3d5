"""tcgen05.mma.sp: two of four elements kept (tf32: one of two), metadata in tensor memory."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcgen05_program import A_AT, B_AT, BYTES, instruction, laid_out
from warpsmith.base.errors import CapabilityError
from warpsmith.simulator.tensor_sparsity import codes_of, metadata_columns

_SPEC = importlib.util.spec_from_file_location("dense_products", Path(__file__).with_name("test_products.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
DENSE: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(DENSE)
rng = np.random.default_rng(23)


def sparse(type_: str, k: int, m: int = 128) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A with zeros `[m, k]`, what is stored of it `[m, k / 2]`, and the code of each chunk `[m, chunks]`."""
    stored = DENSE.operand(type_, m, k // 2)
    full = np.zeros((m, k), stored.dtype)
    wide = 2 if type_ == "tf32" else 4
    codes = np.zeros((m, k // wide), np.uint64)
    for r in range(m):
        for c in range(k // wide):
            if wide == 2:
                at = int(rng.integers(2))
                full[r, 2 * c + at] = stored[r, c]
                codes[r, c] = (0b0100, 0b1110)[at]
            else:
                low, high = sorted(rng.choice(4, 2, replace=False).tolist())
                full[r, 4 * c + low], full[r, 4 * c + high] = stored[r, 2 * c], stored[r, 2 * c + 1]
                codes[r, c] = low | high << 2
    return full, stored, codes


def metadata(codes: np.ndarray, eight_bit: bool) -> np.ndarray:
    """The words `[column, lane]` of the metadata; those of 32 and 64 rows again in the lanes of each part of the data path."""
    bits = [sum(int(code) << 4 * i for i, code in enumerate(row)) for row in codes]
    words = np.zeros((2, len(codes)), np.uint32)
    for r, value in enumerate(bits):
        if eight_bit:
            words[0, r], words[1, r] = value & 0xFFFFFFFF, value >> 32
        else:
            lane, up = r // 16 * 16 + r % 8, 16 * (r // 8 % 2)
            words[0, lane] |= np.uint32((value & 0xFFFF) << up)
            words[0, lane + 8] |= np.uint32((value >> 16) << up)
    return np.tile(words, 128 // len(codes))


def launch(
    run: Any, type_: str, d: str, selector: int, m: int = 128, n: int = 16, more: str = ".sp", at: int = 300
) -> tuple[Any, np.ndarray, np.ndarray]:  # fmt: skip
    """Run a product; return the result, the columns of D that every lane holds `[128, n]`, and what D should be `[m, n]`."""
    _, kind, number = DENSE.TYPES[type_]
    k = 2 * DENSE.K[kind]
    full, stored, codes = sparse(type_, k, m)
    b = DENSE.operand(type_, n, k)
    image = np.zeros(BYTES, np.uint8)
    da, db = laid_out(stored, A_AT, "128B", False, image), laid_out(b, B_AT, "128B", False, image)
    words = np.roll(metadata(codes, type_ in ("e4m3", "s8")), selector, axis=0)
    image[65536 : 65536 + 1024] = words.view(np.uint8).reshape(-1)
    i = instruction(m, n, DENSE.D[d], number, number) | 1 << 2 | selector
    held = n * m // 128
    text = DENSE.program(kind, held, i, da, db, more=more, before=DENSE.loaded(2, 65536, 300))
    text = text.replace("%rd11, %r200,", "%rd11, [%r230], %r200,")
    text = text.replace(" @!%first bra ISSUED;", f" add.u32 %r230, %tmem, {at};\n @!%first bra ISSUED;")
    out = np.zeros((held, 128), np.int32 if d == "s32" else np.float32)
    return run(text, out, image), out.T, full.astype(float) @ b.astype(float).T


@pytest.mark.parametrize(("type_", "d", "selector"), [
    ("f16", "f32", 0), ("f16", "f32", 1), ("bf16", "f32", 1), ("tf32", "f32", 0), ("tf32", "f32", 1), ("e4m3", "f32", 0),
    ("s8", "s32", 0),
])  # fmt: skip
def test_sparse_products(run: Any, type_: str, d: str, selector: int) -> None:
    r, got, want = launch(run, type_, d, selector)
    assert r.completed
    assert not r.findings, str(r)
    assert DENSE.close(got.astype(float), want, 0 if d == "s32" else 1e-6)
    if d == "f32":
        assert ".sp" in str(r.fidelity)
    assert "metadata of sparse" not in str(r.fidelity)


@pytest.mark.parametrize("m", [32, 64, 128])
@pytest.mark.parametrize(("type_", "d", "selector"), [
    ("f16", "f32", 0), ("bf16", "f32", 1), ("tf32", "f32", 1), ("e4m3", "f32", 0), ("s8", "s32", 0),
])  # fmt: skip
def test_weight_stationary(run: Any, m: int, type_: str, d: str, selector: int) -> None:
    """Each group of `m` lanes holds a part of the columns of D, and has metadata of its own."""
    r, got, want = launch(run, type_, d, selector, m, 64, ".ws.sp")
    assert r.completed
    assert not r.findings, str(r)
    width = 64 * m // 128
    for part in range(128 // m):
        columns = slice(width * part, width * part + width)
        assert DENSE.close(got[m * part : m * part + m].astype(float), want[:, columns], 0 if d == "s32" else 1e-6)
    if d == "f32":
        assert ".sp, .ws" in str(r.fidelity)


@pytest.mark.parametrize(("m", "n", "more", "selector", "at", "message"), [
    (128, 256, ".ws.sp", 0, 300, "N = 256 is no shape of .kind::f16 with .cta_group::1 and .ws; use 64 or 128"),
    (64, 16, ".sp", 1, 300, "sparse products with M = 64 and sparsity selector 1 are not modelled with .kind::f16 with "
     ".cta_group::1; use M = 128 and selector 0 or 1"),
    (64, 64, ".ws.sp", 2, 300, "sparse products with M = 64 and sparsity selector 2 are not modelled with .kind::f16 with "
     ".cta_group::1 and .ws; use M = 32 or 64 or 128 and selector 0 or 1"),
    (128, 16, ".sp", 0, 301, "sparsity metadata of .kind::f16 with .cta_group::1 at lane 0 and column 301 of tensor memory are "
     "not modelled: published layouts begin at lane 0 and an even column; put them there"),
])  # fmt: skip
def test_refused(run: Any, m: int, n: int, more: str, selector: int, at: int, message: str) -> None:
    with pytest.raises(CapabilityError) as caught:
        launch(run, "f16", "f32", selector, m, n, more, at)
    assert str(caught.value).partition("simulator: ")[2] == message


def place(shape: Any, stride: Any, at: int) -> int:
    """The offset that a CuTe layout gives a coordinate, colexicographically."""
    if isinstance(shape, int):
        return at * stride
    total = 0
    for s, d in zip(shape, stride, strict=True):
        size = int(np.prod(np.array(list(flat(s)))))
        total, at = total + place(s, d, at % size), at // size
    return total


def flat(shape: Any) -> Any:
    return [shape] if isinstance(shape, int) else [n for s in shape for n in flat(s)]


# (rows, columns of A, bits a column: shape and stride of rows; of columns) in CuTe's virtual tensor memory: a step of 1 is a
# lane, 128 is the next bit (tf32: the next two) of the lane's words; include/cute/atom/mma_traits_sm100.hpp of CUTLASS 4.2.
ATOMS = {
    "tf32": (128, 16, ((8, 2, 8), (1, 1024, 16)), ((8, 2), (128, 8))),
    "f16": (128, 32, ((8, 2, 8), (1, 2048, 16)), ((16, 2), (128, 8))),
    "e4m3": (128, 64, (128, 1), (64, 128)),
    "e2m1": (128, 128, (128, 1), (128, 128)),
    "tf32, 64 rows": (64, 16, ((8, 2, 4), (1, 1024, 16)), ((8, 2), (128, 8))),
    "f16, 32 rows": (32, 32, ((8, 2, 2), (1, 2048, 16)), ((16, 2), (128, 8))),
    "e4m3, 64 rows": (64, 64, (64, 1), (64, 128)),
}


@pytest.mark.parametrize("name", ATOMS)
def test_places_are_those_of_cute(name: str) -> None:
    """Every code of every row, one at a time, at the bits where CuTe's layout of the metadata has its chunk."""
    m, k, (row_shape, row_stride), (column_shape, column_stride) = ATOMS[name]
    type_ = name.partition(",")[0]
    bits_a_column = {"tf32": 2, "e2m1": 0.5}.get(type_, 1)
    chunk = {"tf32": 2, "e2m1": 8}.get(type_, 4)
    words = np.zeros((m, 2), np.uint32)
    codes = rng.choice([4, 14] if type_ == "tf32" else [4, 8, 12, 9, 13, 14], (m, k // chunk)).astype(np.uint64)
    for r in range(m):
        for c in range(k // chunk):
            at = place(row_shape, row_stride, r) + place(column_shape, column_stride, c * chunk)
            lane, bit = at % 128, int(at // 128 * bits_a_column)
            words[lane, bit // 32] |= np.uint32(int(codes[r, c]) << bit % 32)
    used = words[:, : metadata_columns(type_)]
    assert not words[:, metadata_columns(type_) :].any()
    assert np.array_equal(codes_of(used, type_), codes)
