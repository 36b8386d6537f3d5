"""Block-scaled products with scale factors in tensor memory, copied there by tcgen05.cp as kernels do."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcgen05_program import A_AT, B_AT, BYTES, laid_out, wait
from warpsmith.base.errors import CapabilityError
from warpsmith.simulator.instruction_descriptor import decode
from warpsmith.simulator.tensor_product import Product

rng = np.random.default_rng(19)
SA_AT, SB_AT = 65536, 65536 + 8192


def instruction(kind: str, n: int, a: int, b: int, *, factor: int, ids: tuple[int, int] = (0, 0), m: int = 128) -> int:
    """An instruction descriptor of a block-scaled kind (tables 46 and 47)."""
    del kind
    return ids[1] << 4 | a << 7 | b << 10 | n // 8 << 17 | factor << 23 | m // 128 << 27 | ids[0] << 29


def factor_words(factors: np.ndarray, first: int) -> np.ndarray:
    """Words `[32, rows / 32]`: byte `first + s` of lane r % 32, column r / 32 holds factor s of row r."""
    rows, count = factors.shape
    out = np.zeros((-(-rows // 32), 32, 4), np.uint8)
    for r in range(rows):
        out[r // 32, r % 32, first : first + count] = factors[r]
    return np.ascontiguousarray(out.transpose(1, 0, 2)).view(np.uint32)[..., 0]


def in_two_buffers(a: np.ndarray, at: int, first: int, image: np.ndarray) -> int:
    """Lay rows of 48 bytes out from byte `first` of rows of 128 bytes on, the rest in the buffer behind; the descriptor."""
    rows = np.zeros((len(a), 256), np.uint8)
    rows[:, first : first + 48] = a
    start, behind = (laid_out(rows[:, c : c + 128], at + 128 * c, "128B", False, image) for c in (0, 128))
    return (start & ~(0x3FFF << 16)) + (first >> 4) | (behind & 0x3FFF) << 16 | 1 << 52


def scaled(
    run: Any, form: str, n: int, i: int, a: np.ndarray, b: np.ndarray, sa: np.ndarray, sb: np.ndarray, ids: tuple[int, int],
    first: int | None = None, target: str = "sm_100a", *, absolute: bool = True,
) -> Any:  # fmt: skip
    """Run one product; A and B are bytes `[rows, bytes along K]`, the factors bytes `[rows, count]`.

    With `first` rows begin at that byte of a buffer and go on in the next one.
    """
    image = np.zeros(BYTES, np.uint8)
    if first is None:
        da, db = laid_out(a, A_AT, "128B", False, image), laid_out(b, B_AT, "128B", False, image)
    else:
        da, db = in_two_buffers(a, A_AT, first, image), in_two_buffers(b, B_AT, first, image)
        if not absolute:
            da, db = da & ~(1 << 52), db & ~(1 << 52)
    copies, column = "", 256
    for factors, id_, at, name in ((sa, ids[0], SA_AT, "%r230"), (sb, ids[1], SB_AT, "%r231")):
        behind = np.zeros((-(-len(factors) // 128) * 128, 8), np.uint8)  # eight bytes a row; four fill a column of 32 rows
        behind[: len(factors), id_ : id_ + factors.shape[1]] = factors
        words = np.concatenate([factor_words(behind[:, c : c + 4], 0) for c in (0, 4)], axis=1)
        copies += f" add.u32 {name}, %tmem, {column};\n"
        for c in range(0, words.shape[1], 4):  # 32 rows of 16 bytes: four columns of words
            piece = np.zeros((32, 4), np.uint32)
            piece[:, : min(4, words.shape[1] - c)] = words[:, c : c + 4]
            d = laid_out(piece.view(np.uint8), at + 512 * c, "none", False, image)
            copies += f" mov.b64 %rd12, {d}; add.u32 %r232, %tmem, {column + c};\n"
            copies += " tcgen05.cp.cta_group::1.32x128b.warpx4 [%r232], %rd12;\n"
        column += 32
    text = f""" @!%first bra ISSUED;
{copies} mov.b64 %rd10, {da}; mov.b64 %rd11, {db}; mov.b32 %r200, {i}; setp.ne.u32 %p2, 0, 0;
 tcgen05.mma.cta_group::1.{form} [%tmem], %rd10, %rd11, %r200, [%r230], [%r231], %p2;
 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
ISSUED:
{wait()} tcgen05.fence::after_thread_sync;
"""
    registers = ", ".join(f"%r{j}" for j in range(n))
    text += f" tcgen05.ld.sync.aligned.32x32b.x{n}.b32 {{{registers}}}, [%mine];\n tcgen05.wait::ld.sync.aligned;\n"
    text += "".join(f" st.global.b32 [%out+{512 * j}], %r{j};\n" for j in range(n))
    out = np.zeros((n, 128), np.float32)
    r = run(text, out, image, target=target)
    assert r.completed
    assert not r.findings, str(r)
    return out.T


def powers(rows: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    codes = rng.integers(120, 134, (rows, count)).astype(np.uint8)
    return codes, 2.0 ** (codes.astype(np.float64) - 127)


@pytest.mark.parametrize("ids", [(0, 0), (2, 1), (3, 3)])
@pytest.mark.parametrize("n", [16, 64])
def test_eight_bit_floats(run: Any, n: int, ids: tuple[int, int]) -> None:
    a, b = (rng.standard_normal((rows, 32)).astype(ml_dtypes.float8_e4m3fn) for rows in (128, n))
    (sa, va), (sb, vb) = powers(128, 1), powers(n, 1)
    i = instruction("mxf8f6f4", n, 0, 0, factor=1, ids=ids)
    got = scaled(run, "kind::mxf8f6f4.block_scale", n, i, a.view(np.uint8), b.view(np.uint8), sa, sb, ids)
    want = (a.astype(float) * va) @ (b.astype(float) * vb).T
    assert np.abs(got - want).max() <= 1e-6 * np.abs(want).max()


@pytest.mark.parametrize(("form", "count", "factor", "ids"), [
    ("kind::mxf4.block_scale", 2, 1, (0, 2)),
    ("kind::mxf4.block_scale.scale_vec::2X", 2, 1, (2, 0)),
    ("kind::mxf4nvf4.block_scale.scale_vec::4X", 4, 0, (0, 0)),
    ("kind::mxf4nvf4.block_scale.block16", 4, 1, (0, 0)),
])  # fmt: skip
def test_four_bit_floats(run: Any, form: str, count: int, factor: int, ids: tuple[int, int]) -> None:
    n = 64
    codes = [rng.integers(0, 16, (rows, 64)).astype(np.uint8) for rows in (128, n)]
    packed = [c[:, ::2] | c[:, 1::2] << 4 for c in codes]
    a, b = (c.view(ml_dtypes.float4_e2m1fn).astype(np.float64) for c in codes)
    if factor:
        (sa, va), (sb, vb) = powers(128, count), powers(n, count)
    else:
        sa, sb = (rng.integers(0x20, 0x50, (rows, 4)).astype(np.uint8) for rows in (128, n))
        va, vb = (s.view(ml_dtypes.float8_e4m3fn).astype(np.float64) for s in (sa, sb))
    i = instruction("mxf4", n, 1, 1, factor=factor, ids=ids)
    got = scaled(run, form, n, i, *packed, sa, sb, ids)
    each = 64 // count
    want = (a * np.repeat(va, each, axis=1)) @ (b * np.repeat(vb, each, axis=1)).T
    assert np.abs(got - want).max() <= 1e-6 * np.abs(want).max()


@pytest.mark.parametrize(("form", "count", "ids"), [
    ("kind::mxf4nvf4.block_scale.block16", 6, (0, 2)),
    ("kind::mxf4nvf4.block_scale.block16", 6, (2, 0)),
    ("kind::mxf4.block_scale.block32", 3, (3, 1)),
    ("kind::mxf4.block_scale", 3, (0, 2)),
])  # fmt: skip
@pytest.mark.parametrize("first", [0, 80, 96, 112])
def test_a_depth_of_96(run: Any, form: str, count: int, ids: tuple[int, int], first: int) -> None:
    """As CUTLASS runs it (tests/data/cutlass, `ultra`): 48 bytes of a row, which may go on in the buffer behind."""
    n = 64
    codes = [rng.integers(0, 16, (rows, 96)).astype(np.uint8) for rows in (128, n)]
    packed = [c[:, ::2] | c[:, 1::2] << 4 for c in codes]
    a, b = (c.view(ml_dtypes.float4_e2m1fn).astype(np.float64) for c in codes)
    (sa, va), (sb, vb) = powers(128, count), powers(n, count)
    i = instruction("mxf4", n, 1, 1, factor=1, ids=ids) | 1 << 31
    got = scaled(run, form, n, i, *packed, sa, sb, ids, first, "sm_103a")
    each = 96 // count
    want = (a * np.repeat(va, each, axis=1)) @ (b * np.repeat(vb, each, axis=1)).T
    assert np.abs(got - want).max() <= 1e-6 * np.abs(want).max()


def test_a_depth_of_96_is_of_sm_103a(run: Any) -> None:
    codes = np.zeros((128, 48), np.uint8)
    factors = np.full((128, 6), 127, np.uint8)
    i = instruction("mxf4", 64, 1, 1, factor=1) | 1 << 31
    with pytest.raises(CapabilityError) as caught:
        scaled(run, "kind::mxf4nvf4.block_scale.block16", 64, i, codes, codes[:64], factors, factors[:64], (0, 0))
    assert str(caught.value).endswith("simulator: K = 96 (instruction descriptor, bit 31) is of sm_103a, the device sm_100")


def test_rows_of_a_depth_of_96_need_to_be_told_where_they_go_on(run: Any) -> None:
    codes, factors = np.zeros((128, 48), np.uint8), np.full((128, 6), 127, np.uint8)
    i = instruction("mxf4", 64, 1, 1, factor=1) | 1 << 31
    with pytest.raises(CapabilityError) as caught:
        scaled(
            run, "kind::mxf4nvf4.block_scale.block16", 64, i, codes, codes[:64], factors, factors[:64], (0, 0), 96, "sm_103a",
            absolute=False,
        )  # fmt: skip
    assert str(caught.value).endswith(
        "simulator: rows of 48 bytes from byte 96 of 128 on go beyond them; set bit 52 of the matrix descriptor and give the "
        "address at which they go on (bits 29:16)"
    )


def test_where_six_factors_a_row_stand() -> None:
    """What a product reads is what it is judged by: of K = 96 the columns of the fifth and sixth factor, too."""
    i = instruction("mxf4", 64, 1, 1, factor=1) | 1 << 31
    memory: Any = None
    p = Product(memory, (0,), decode(i, "mxf4nvf4"), 0, 0, False, 0, False, 0, False, (), factors=(508, 100), count=6)
    assert p.factor_columns(0, 128) == [(508, 512), (512, 516)]
    assert p.factor_columns(1, 64) == [(100, 102), (104, 106)]
