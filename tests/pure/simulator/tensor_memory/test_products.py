"""tcgen05.mma of every dense kind, layout and operand place against numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcgen05_program import A_AT, B_AT, BYTES, instruction, laid_out, wait
from warpsmith.base.errors import CapabilityError

TYPES: dict[str, tuple[Any, str, int]] = {
    "f16": (np.float16, "f16", 0), "bf16": (ml_dtypes.bfloat16, "f16", 1), "tf32": (np.float32, "tf32", 2),
    "e4m3": (ml_dtypes.float8_e4m3fn, "f8f6f4", 0), "e5m2": (ml_dtypes.float8_e5m2, "f8f6f4", 1),
    "s8": (np.int8, "i8", 1), "u8": (np.uint8, "i8", 0),
}  # fmt: skip
"""Element dtype, kind, number in the instruction descriptor."""
K = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32}
D = {"f32": 1, "f16": 0, "s32": 2}
rng = np.random.default_rng(7)


def operand(type_: str, mn: int, k: int) -> np.ndarray:
    dtype = TYPES[type_][0]
    if type_ in ("s8", "u8"):
        return rng.integers(0 if type_ == "u8" else -128, 256 if type_ == "u8" else 128, (mn, k)).astype(dtype)
    values = rng.standard_normal((mn, k)).astype(dtype)
    return (values.view(np.uint32) & 0xFFFFE000).view(np.float32) if type_ == "tf32" else values


def lanes_of(m: int) -> np.ndarray:
    """The lane of each row of D of one CTA without .ws."""
    return np.arange(128) if m == 128 else np.arange(64) // 16 * 32 + np.arange(64) % 16


def program(
    kind: str,
    n: int,
    i: int,
    da: int,
    db: int,
    *,
    a: str = "%rd10",
    enable: int = 0,
    more: str = "",
    mask: str = "",
    before: str = "",
) -> str:
    """Multiply in thread 0, wait, load N columns and store them."""
    text = before + f""" @!%first bra ISSUED;
 mov.b64 %rd10, {da}; mov.b64 %rd11, {db}; mov.b32 %r200, {i}; setp.ne.u32 %p2, {enable}, 0;
 tcgen05.mma{more}.cta_group::1.kind::{kind} [%tmem], {a}, %rd11, %r200,{mask} %p2;
 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
ISSUED:
{wait()} tcgen05.fence::after_thread_sync;
"""  # fmt: skip
    return text + columns(n)


def columns(n: int) -> str:
    text = ""
    for at in range(0, n, 8):
        registers = ", ".join(f"%r{j}" for j in range(8))
        text += f" add.u32 %r210, %mine, {at};\n tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{registers}}}, [%r210];\n"
        text += " tcgen05.wait::ld.sync.aligned;\n"
        text += "".join(f" st.global.b32 [%out+{512 * (at + j)}], %r{j};\n" for j in range(8))
    return text


def loaded(count: int, at: int, first_column: int) -> str:
    """Store `count` words of each thread, 4 bytes each from shared memory offset `at` on, in columns."""
    text = f" shl.b32 %r310, %t, 2; mov.u32 %r311, buf; add.u32 %r311, %r311, %r310; add.u32 %r312, %mine, {first_column};\n"
    text += "".join(f" ld.shared.b32 %r{j}, [%r311+{at + 512 * j}];\n" for j in range(count))
    registers = ", ".join(f"%r{j}" for j in range(count))
    text += f" tcgen05.st.sync.aligned.32x32b.x{count}.b32 [%r312], {{{registers}}};\n tcgen05.wait::st.sync.aligned;\n"
    return text + " tcgen05.fence::before_thread_sync;\n bar.sync 0;\n tcgen05.fence::after_thread_sync;\n"


def product(
    run: Any, type_a: str, type_b: str, d: str, m: int, n: int, *, swizzle: str = "128B", ta: bool = False, tb: bool = False,
    **options: Any,
) -> Any:  # fmt: skip
    kind = TYPES[type_a][1]
    a, b = operand(type_a, m, K[kind]), operand(type_b, n, K[kind])
    image = np.zeros(BYTES, np.uint8)
    da, db = laid_out(a, A_AT, swizzle, ta, image), laid_out(b, B_AT, swizzle, tb, image)
    i = instruction(m, n, D[d], TYPES[type_a][2], TYPES[type_b][2], ta=ta, tb=tb)
    out = np.zeros((n, 128), {"s32": np.int32, "f32": np.float32, "f16": np.uint32}[d])
    if m == 64:  # half of the lanes hold nothing: those of D alone are stored
        options.setdefault("check", False)
    r = run(program(kind, n, i, da, db), out, image, **options)
    assert r.completed
    assert not r.findings, str(r)
    got = out.astype(np.uint16).view(np.float16) if d == "f16" else out
    return got.T[lanes_of(m)].astype(np.float64), a.astype(np.float64), b.astype(np.float64)


def close(got: np.ndarray, want: np.ndarray, tolerance: float) -> bool:
    return bool(np.abs(got - want).max() <= tolerance * np.abs(want).max())


@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False), (True, True)])
def test_layouts_and_major_ness(run: Any, swizzle: str, ta: bool, tb: bool) -> None:
    got, a, b = product(run, "bf16", "bf16", "f32", 128, 64, swizzle=swizzle, ta=ta, tb=tb)
    assert close(got, a @ b.T, 1e-6)


@pytest.mark.parametrize(("a", "b", "d", "tolerance"), [
    ("f16", "f16", "f32", 1e-6), ("f16", "f16", "f16", 1e-3), ("tf32", "tf32", "f32", 1e-6), ("e4m3", "e5m2", "f32", 1e-6),
    ("e5m2", "e5m2", "f16", 1e-3), ("s8", "u8", "s32", 0), ("u8", "s8", "s32", 0),
])  # fmt: skip
@pytest.mark.parametrize("m", [64, 128])
def test_types(run: Any, a: str, b: str, d: str, tolerance: float, m: int) -> None:
    got, left, right = product(run, a, b, d, m, 32)
    assert close(got, left @ right.T, tolerance)


@pytest.mark.parametrize(("ta", "tb"), [(True, False), (False, True)])
def test_transposed_tf32_has_atoms_of_32_bytes(run: Any, ta: bool, tb: bool) -> None:
    a, b = operand("tf32", 128, 8), operand("tf32", 32, 8)
    image = np.zeros(BYTES, np.uint8)
    da = laid_out(a, A_AT, "128B_atom_32B" if ta else "128B", ta, image)
    db = laid_out(b, B_AT, "128B_atom_32B" if tb else "128B", tb, image)
    out = np.zeros((32, 128), np.float32)
    r = run(program("tf32", 32, instruction(128, 32, 1, 2, 2, ta=ta, tb=tb), da, db), out, image)
    assert not r.findings, str(r)
    assert close(out.T, a.astype(float) @ b.astype(float).T, 1e-6)


@pytest.mark.parametrize("n", [8, 24, 136, 256])
def test_widths(run: Any, n: int) -> None:
    got, a, b = product(run, "f16", "f16", "f32", 128, n, numerics="fast")
    assert close(got, a @ b.T, 1e-5)


def test_accumulate_scaled_and_negated(run: Any) -> None:
    c = rng.standard_normal((8, 128)).astype(np.float32)
    a, b = operand("f16", 128, 16), operand("f16", 8, 16)
    image = np.zeros(BYTES, np.uint8)
    da, db = laid_out(a, A_AT, "128B", False, image), laid_out(b, B_AT, "128B", False, image)
    image[65536 : 65536 + 4096] = c.view(np.uint8).reshape(-1)
    out = np.zeros((8, 128), np.float32)
    i = instruction(128, 8, 1, 0, 0, negate_a=1)
    text = program("f16", 8, i, da, db, enable=1, before=loaded(8, 65536, 0)).replace(", %p2;", ", %p2, 3;")
    r = run(text, out, image)
    assert not r.findings, str(r)
    assert close(out.T, c.T / 8 - a.astype(float) @ b.astype(float).T, 1e-6)


def test_integers_saturate(run: Any) -> None:
    c = np.full((8, 128), 2**31 - 5, np.int32)
    a, b = np.full((128, 32), 100, np.int8), np.full((8, 32), 100, np.int8)
    image = np.zeros(BYTES, np.uint8)
    da, db = laid_out(a, A_AT, "128B", False, image), laid_out(b, B_AT, "128B", False, image)
    image[65536 : 65536 + 4096] = c.view(np.uint8).reshape(-1)
    for saturate in (0, 1):
        out = np.zeros((8, 128), np.int32)
        i = instruction(128, 8, 2, 1, 1, saturate=saturate)
        assert not run(program("i8", 8, i, da, db, enable=1, before=loaded(8, 65536, 0)), out, image).findings
        assert (out == (2**31 - 1 if saturate else 2**31 - 5 + 320000 - 2**32)).all()


def test_masked_lanes_keep_their_values(run: Any) -> None:
    c = rng.standard_normal((8, 128)).astype(np.float32)
    a, b = operand("f16", 128, 16), operand("f16", 8, 16)
    image = np.zeros(BYTES, np.uint8)
    da, db = laid_out(a, A_AT, "128B", False, image), laid_out(b, B_AT, "128B", False, image)
    image[65536 : 65536 + 4096] = c.view(np.uint8).reshape(-1)
    out = np.zeros((8, 128), np.float32)
    before = (
        loaded(8, 65536, 0) + " mov.b32 %r220, 1; mov.b32 %r221, 0; mov.b32 %r222, 0xffffffff; mov.b32 %r223, 0x80000000;\n"
    )
    text = program("f16", 8, instruction(128, 8, 1, 0, 0), da, db, mask=" {%r220, %r221, %r222, %r223},", before=before)
    r = run(text, out, image)
    assert not r.findings, str(r)
    kept = np.zeros(128, bool)
    kept[[0, *range(64, 96), 127]] = True
    assert np.array_equal(out.T[kept], c.T[kept])
    assert close(out.T[~kept], (a.astype(float) @ b.astype(float).T)[~kept], 1e-6)


@pytest.mark.parametrize("type_", ["bf16", "tf32", "e4m3"])
@pytest.mark.parametrize("m", [64, 128])
def test_a_in_tensor_memory(run: Any, type_: str, m: int) -> None:
    _, kind, number = TYPES[type_]
    a, b = operand(type_, m, K[kind]), operand(type_, 16, K[kind])
    image = np.zeros(BYTES, np.uint8)
    db = laid_out(b, B_AT, "64B", False, image)
    words = np.zeros((128, 8), np.uint32)
    words[lanes_of(m)] = np.ascontiguousarray(a).view(np.uint32)
    image[65536 : 65536 + 4096] = np.ascontiguousarray(words.T).view(np.uint8).reshape(-1)
    out = np.zeros((16, 128), np.float32)
    text = program(kind, 16, instruction(m, 16, 1, number, number), 0, db, a="[%r230]", before=loaded(8, 65536, 256))
    r = run(
        text.replace(" @!%first bra ISSUED;", " add.u32 %r230, %tmem, 256;\n @!%first bra ISSUED;"), out, image, check=m == 128
    )
    assert not r.findings, str(r)
    assert close(out.T[lanes_of(m)], a.astype(float) @ b.astype(float).T, 1e-6)


@pytest.mark.parametrize("m", [32, 64, 128])
def test_weight_stationary(run: Any, m: int) -> None:
    a, b = operand("f16", m, 16), operand("f16", 64, 16)
    image = np.zeros(BYTES, np.uint8)
    da, db = laid_out(a, A_AT, "128B", False, image), laid_out(b, B_AT, "128B", False, image)
    out = np.zeros((64, 128), np.float32)
    r = run(program("f16", 64 * m // 128, instruction(m, 64, 1, 0, 0), da, db, more=".ws"), out, image)
    assert not r.findings, str(r)
    want = a.astype(float) @ b.astype(float).T
    width = 64 * m // 128  # columns that each group of m lanes holds
    for part in range(128 // m):
        assert close(out[:width, m * part : m * part + m].T, want[:, width * part : width * part + width], 1e-6)
    assert ".ws" in str(r.fidelity)


@pytest.mark.parametrize("type_", ["e2m3", "e3m2", "e2m1"])
def test_narrow_floats_stand_sixteen_to_sixteen_bytes(run: Any, type_: str) -> None:
    """Six bits from the lowest bit on and four bytes of padding; four bits and eight bytes."""
    dtype = {"e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn}[type_]
    width, number = {"e2m3": (6, 3), "e3m2": (6, 4), "e2m1": (4, 5)}[type_]
    codes = [rng.integers(0, 1 << width, (rows, 32)).astype(np.uint8) for rows in (128, 16)]
    image = np.zeros(BYTES, np.uint8)
    places = []
    for code, at in zip(codes, (A_AT, B_AT), strict=True):
        packed = np.zeros((len(code), 32), np.uint8)
        for row in range(len(code)):
            for half in range(2):
                word = sum(int(c) << width * j for j, c in enumerate(code[row, 16 * half : 16 * half + 16]))
                packed[row, 16 * half : 16 * half + 16] = np.frombuffer(word.to_bytes(16, "little"), np.uint8)
        places.append(laid_out(packed, at, "128B", False, image))
    out = np.zeros((16, 128), np.float32)
    r = run(program("f8f6f4", 16, instruction(128, 16, 1, number, number), *places), out, image)
    assert not r.findings, str(r)
    a, b = (code.view(dtype).astype(np.float64) for code in codes)
    assert np.array_equal(out.T, a @ b.T)


def test_products_follow_each_other_and_commits_follow_them(run: Any) -> None:
    """Four products add up, each reading 32 bytes further along K of swizzled rows."""
    a, b = operand("bf16", 128, 64), operand("bf16", 16, 64)
    image = np.zeros(BYTES, np.uint8)
    da, db = laid_out(a, A_AT, "128B", False, image), laid_out(b, B_AT, "128B", False, image)
    i = instruction(128, 16, 1, 1, 1)
    middle = f" @!%first bra ISSUED;\n mov.b32 %r200, {i};\n"
    for step in range(4):
        middle += f""" mov.b64 %rd10, {da + 2 * step}; mov.b64 %rd11, {db + 2 * step}; setp.ne.u32 %p2, {step}, 0;
 tcgen05.mma.cta_group::1.kind::f16 [%tmem], %rd10, %rd11, %r200, %p2;
"""
    middle += f""" tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [bar];
ISSUED:
{wait()} tcgen05.fence::after_thread_sync;
"""
    for schedule in ({}, {"schedule": "random", "seed": 2}, {"schedule": "adversarial"}):
        out = np.zeros((16, 128), np.float32)
        r = run((middle + columns(16)).replace(".one.b64 [bar]", ".one.shared::cluster.b64 [bar]"), out, image, **schedule)
        assert not r.findings, str(r)
        assert close(out.T, a.astype(float) @ b.astype(float).T, 1e-6)


@pytest.mark.parametrize(("bits", "message"), [
    (instruction(96, 16, 1, 0, 0),
     "simulator: .kind::f16 with .cta_group::1 has no layout for M = 96 at lane 0 of tensor memory; "
     "use M = 64 or 128 at lane 0"),
    (instruction(128, 0, 1, 0, 0),
     "simulator: N = 0 is no shape of .kind::f16 with .cta_group::1; use a multiple of 8, up to 256"),
    (instruction(128, 16, 1, 5, 0),
     "simulator: instruction descriptor 0x08040290: type 5 of A has no meaning for .kind::f16; "
     "use 0 (f16), 1 (bf16)"),
    (instruction(128, 16, 2, 0, 0),
     "simulator: instruction descriptor 0x08040020: type 2 of D has no meaning for .kind::f16; "
     "use 0 (f16), 1 (f32)"),
])  # fmt: skip
def test_wrong_instruction_descriptors(run: Any, bits: int, message: str) -> None:
    image = np.zeros(BYTES, np.uint8)
    d = laid_out(operand("f16", 128, 16), A_AT, "128B", False, image)
    with pytest.raises(CapabilityError) as caught:
        run(program("f16", 16, bits, d, d), np.zeros((16, 128), np.float32), image)
    assert str(caught.value).partition(": ")[2] == message
