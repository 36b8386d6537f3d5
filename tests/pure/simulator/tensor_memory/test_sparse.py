"""tcgen05.mma.sp: two of four elements kept (tf32: one of two), metadata in tensor memory."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcgen05_program import A_AT, B_AT, BYTES, instruction, laid_out

_SPEC = importlib.util.spec_from_file_location("dense_products", Path(__file__).with_name("test_products.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
DENSE: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(DENSE)
rng = np.random.default_rng(23)


def sparse(type_: str, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A with zeros `[128, k]`, what is stored of it `[128, k / 2]`, and the code of each chunk `[128, chunks]`."""
    stored = DENSE.operand(type_, 128, k // 2)
    full = np.zeros((128, k), stored.dtype)
    wide = 2 if type_ == "tf32" else 4
    codes = np.zeros((128, k // wide), np.uint64)
    for r in range(128):
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
    """The words `[column, lane]` of the metadata."""
    bits = [sum(int(code) << 4 * i for i, code in enumerate(row)) for row in codes]
    words = np.zeros((2, 128), np.uint32)
    for r, value in enumerate(bits):
        if eight_bit:
            words[0, r], words[1, r] = value & 0xFFFFFFFF, value >> 32
        else:
            lane, up = r // 16 * 16 + r % 8, 16 * (r // 8 % 2)
            words[0, lane] |= np.uint32((value & 0xFFFF) << up)
            words[0, lane + 8] |= np.uint32((value >> 16) << up)
    return words


@pytest.mark.parametrize(("type_", "d", "selector"), [
    ("f16", "f32", 0), ("f16", "f32", 1), ("bf16", "f32", 1), ("tf32", "f32", 0), ("tf32", "f32", 1), ("e4m3", "f32", 0),
    ("s8", "s32", 0),
])  # fmt: skip
def test_sparse_products(run: Any, type_: str, d: str, selector: int) -> None:
    _, kind, number = DENSE.TYPES[type_]
    k = 2 * DENSE.K[kind]
    full, stored, codes = sparse(type_, k)
    b = DENSE.operand(type_, 16, k)
    image = np.zeros(BYTES, np.uint8)
    da, db = laid_out(stored, A_AT, "128B", False, image), laid_out(b, B_AT, "128B", False, image)
    words = np.roll(metadata(codes, type_ in ("e4m3", "s8")), selector, axis=0)
    image[65536 : 65536 + 1024] = words.view(np.uint8).reshape(-1)
    i = instruction(128, 16, DENSE.D[d], number, number) | 1 << 2 | selector
    text = DENSE.program(kind, 16, i, da, db, more=".sp", before=DENSE.loaded(2, 65536, 300))
    text = text.replace("%rd11, %r200,", "%rd11, [%r230], %r200,")
    text = text.replace(" @!%first bra ISSUED;", " add.u32 %r230, %tmem, 300;\n @!%first bra ISSUED;")
    out = np.zeros((16, 128), np.int32 if d == "s32" else np.float32)
    r = run(text, out, image)
    assert r.completed
    assert not r.findings, str(r)
    assert DENSE.close(out.T.astype(float), full.astype(float) @ b.astype(float).T, 0 if d == "s32" else 1e-6)
    if d == "f32":
        assert ".sp" in str(r.fidelity)
