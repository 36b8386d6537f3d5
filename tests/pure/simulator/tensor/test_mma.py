"""mma.sync of every shape and type against numpy, through registers filled by the fragment maps."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpsmith.simulator.fragments import accumulator, operand_a, operand_b

F16 = [
    ("m16n8k8.row.col.f32.f16.f16.f32", "sm_80"), ("m16n8k16.row.col.f32.f16.f16.f32", "sm_90"),
    ("m16n8k16.row.col.f16.f16.f16.f16", "sm_90"), ("m16n8k8.row.col.f32.bf16.bf16.f32", "sm_80"),
    ("m16n8k16.row.col.f32.bf16.bf16.f32", "sm_90"), ("m16n8k4.row.col.f32.tf32.tf32.f32", "sm_80"),
    ("m16n8k8.row.col.f32.tf32.tf32.f32", "sm_90"), ("m16n8k16.row.col.f32.e4m3.e5m2.f32", "sm_90"),
    ("m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_89"), ("m16n8k32.row.col.f16.e5m2.e4m3.f16", "sm_90"),
]  # fmt: skip
INTEGER = [
    "m8n8k16.row.col.s32.s8.s8.s32", "m16n8k16.row.col.s32.u8.s8.s32", "m16n8k32.row.col.satfinite.s32.u8.u8.s32",
    "m8n8k32.row.col.s32.s4.s4.s32", "m16n8k32.row.col.s32.u4.s4.s32", "m16n8k64.row.col.s32.u4.u4.s32",
    "m8n8k128.row.col.s32.b1.b1.s32.xor.popc", "m16n8k128.row.col.s32.b1.b1.s32.and.popc",
    "m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
]  # fmt: skip
DOUBLE = ["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"]
DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "tf32": np.float32, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


def shape_of(mnemonic: str) -> tuple[int, int, int]:
    m, _, rest = mnemonic.split(".", maxsplit=1)[0][1:].partition("n")
    n, _, k = rest.partition("k")
    return int(m), int(n), int(k)


def fill(values: np.ndarray, where: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Registers `[n, 32]` (uint32 or uint64) that hold a matrix by its map."""
    held = np.ascontiguousarray(values[where[0], where[1]])
    return held.view(f"u{min(8, held.dtype.itemsize * held.shape[-1])}")[..., 0]


def kernel(mnemonic: str, counts: tuple[int, int, int, int], wide: bool = False) -> str:
    """Load the registers `[n][32]` of A, B and C one after the other, multiply, store D."""
    r, unit, move = ("%fd", 8, "f64") if wide else ("%r", 4, "b32")
    d, a, b, c = (list(range(s, s + n)) for s, n in zip(np.cumsum([0, *counts[:3]]).tolist(), counts, strict=True))
    base = len(d)
    lines = [f"mul.wide.u32 %rd1, %t, {unit}; ld.param.u64 %rd2, [in]; add.u64 %rd2, %rd2, %rd1; add.u64 %out, %out, %rd1;"]
    for i in (*a, *b, *c):
        lines.append(f"ld.global.{move} {r}{i}, [%rd2+{(i - base) * 32 * unit}];")
    groups = ["{" + ", ".join(f"{r}{i}" for i in g) + "}" for g in (d, a, b, c)]
    lines.append(f"mma.sync.aligned.{mnemonic} {', '.join(groups)};")
    lines += [f"st.global.{move} [%out+{i * 32 * unit}], {r}{i};" for i in d]
    return "\n ".join(lines)


def multiply(run: Any, mnemonic: str, target: str, parts: list[np.ndarray], count: int, **options: Any) -> np.ndarray:
    wide = parts[0].dtype.itemsize == 8
    body = kernel(mnemonic, (count, *(p.shape[0] for p in parts)), wide)
    out = np.zeros((count, 32), parts[0].dtype)
    r = run(body, out, np.concatenate(parts), parameters=".param .u64 out, .param .u64 in", target=target, **options)
    assert r.completed, r.findings
    assert [str(f) for f in r.findings] == []
    return out


@pytest.mark.parametrize(("mnemonic", "target"), F16)
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_float_products(run: Any, mnemonic: str, target: str, numerics: str) -> None:
    m, n, k = shape_of(mnemonic)
    d, a, b, c = mnemonic.split(".")[3:7]
    rng = np.random.default_rng(3)
    A, B, C = (rng.standard_normal(s).astype(DTYPES[t]) for s, t in (((m, k), a), ((k, n), b), ((m, n), c)))
    width = {"tf32": 32, "e4m3": 8, "e5m2": 8}.get(a, 16)
    where = accumulator(m, n, 16 if d == "f16" else 32)
    parts = [fill(A, operand_a(m, k, width)), fill(B, operand_b(k, n, width)), fill(C, where)]
    out = multiply(run, mnemonic, target, parts, parts[2].shape[0], numerics=numerics)
    got = np.zeros((m, n))
    got[where] = out[..., None].view(DTYPES[d])
    cut = (lambda x: (x.view(np.uint32) & 0xFFFFE000).view(np.float32)) if a == "tf32" else (lambda x: x)
    want = cut(A).astype(np.float64) @ cut(B).astype(np.float64) + C.astype(np.float64)
    tolerance = 4e-3 if d == "f16" or (target == "sm_89" and width == 8) else 1e-4
    assert np.abs(got - want).max() <= tolerance * max(1.0, np.abs(want).max())


@pytest.mark.parametrize("mnemonic", INTEGER)
def test_integer_products_are_exact(run: Any, mnemonic: str) -> None:
    m, n, k = shape_of(mnemonic)
    words = mnemonic.split(".")
    a, b = [w for w in words if w in ("s8", "u8", "s4", "u4", "b1")]
    width = {"8": 8, "4": 4, "1": 1}[a[1:]]
    rng = np.random.default_rng(5)
    low, high = {"s": (-(1 << width - 1), (1 << width - 1)), "u": (0, 1 << width), "b": (0, 2)}[a[0]]
    A = rng.integers(low, high, (m, k))
    low, high = {"s": (-(1 << width - 1), (1 << width - 1)), "u": (0, 1 << width), "b": (0, 2)}[b[0]]
    B = rng.integers(low, high, (k, n))
    C = rng.integers(-(2**31), 2**31, (m, n)).astype(np.int32)
    where = accumulator(m, n, 32)

    def registers(x: np.ndarray, at: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        parts = (x[at[0], at[1]] & ((1 << width) - 1)).astype(np.uint64) << (np.arange(32 // width, dtype=np.uint64) * width)
        return parts.sum(-1).astype(np.uint32)

    parts = [registers(A, operand_a(m, k, width)), registers(B, operand_b(k, n, width)), fill(C, where)]
    out = multiply(run, mnemonic, "sm_80", parts, parts[2].shape[0])
    got = np.zeros((m, n), np.int32)
    got[where] = out[..., None].view(np.int32)
    product = (A[:, :, None] != B[None]).sum(1) if "xor" in words else A @ B
    total = product + C.astype(np.int64)
    want = np.clip(total, -(2**31), 2**31 - 1).astype(np.int32) if "satfinite" in words else total.astype(np.int32)
    assert (got == want).all()


@pytest.mark.parametrize("shape", DOUBLE)
def test_double_products_round_after_every_step(run: Any, shape: str) -> None:
    m, n, k = shape_of(shape)
    rng = np.random.default_rng(8)
    A, B, C = rng.standard_normal((m, k)), rng.standard_normal((k, n)), rng.standard_normal((m, n))
    where = accumulator(m, n, 64)
    parts = [fill(A, operand_a(m, k, 64)), fill(B, operand_b(k, n, 64)), fill(C, where)]
    out = multiply(run, f"{shape}.row.col.f64.f64.f64.f64", "sm_90", parts, parts[2].shape[0])
    got = np.zeros((m, n))
    got[where] = out[..., None].view(np.float64)
    want = C.astype(np.longdouble)
    for i in range(k):  # 64-bit significands: one rounding to 53 bits after each step is nearly always the fused one
        want = (
            (A[:, i, None].astype(np.longdouble) * B[None, i].astype(np.longdouble) + want)
            .astype(np.float64)
            .astype(np.longdouble)
        )
    assert np.abs(got - want.astype(np.float64)).max() <= np.spacing(np.abs(got).max())


def test_volta_products_of_four_quads(run: Any) -> None:
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((4, 8, 4)).astype(np.float16), rng.standard_normal((4, 4, 8)).astype(np.float16)
    a, b = np.zeros((32, 4), np.float16), np.zeros((32, 4), np.float16)
    for lane in range(32):
        q, row = lane // 4 % 4, lane % 4 + 4 * (lane // 16)
        a[lane], b[lane] = A[q, row], B[q, :, row]
    parts = [a.view(np.uint32).T.copy(), b.view(np.uint32).T.copy(), np.zeros((8, 32), np.uint32)]
    out = multiply(run, "m8n8k4.row.col.f32.f16.f16.f32", "sm_70", parts, 8, version="7.0").view(np.float32)
    want = A.astype(np.float64) @ B.astype(np.float64)
    for lane in range(32):
        for i in range(8):
            row, column = (lane & 1) + (i & 2) + 4 * (lane // 16), (i & 4) + (lane & 2) + (i & 1)
            assert abs(out[i, lane] - want[lane // 4 % 4, row, column]) < 1e-2


def test_accumulation_is_truncated_as_on_hopper(run: Any) -> None:
    """1 + 15·2^-26 with 25 kept bits below the largest exponent: each small product is lost, exactly representable or not."""
    A, B = np.zeros((16, 16), np.float16), np.zeros((16, 8), np.float16)
    A[0, :], B[:, 0] = 2.0**-13, 2.0**-13
    A[0, 15], B[15, 0] = 1, 1  # last, so that a plain sum would collect the small ones first
    C = np.zeros((16, 8), np.float32)
    where = accumulator(16, 8, 32)
    parts = [fill(A, operand_a(16, 16, 16)), fill(B, operand_b(16, 8, 16)), fill(C, where)]
    got = np.zeros((16, 8), np.float32)
    mnemonic = "m16n8k16.row.col.f32.f16.f16.f32"
    got[where] = multiply(run, mnemonic, "sm_90", parts, 4, numerics="exact")[..., None].view(np.float32)
    assert got[0, 0] == 1
    got[where] = multiply(run, mnemonic, "sm_90", parts, 4, numerics="fast")[..., None].view(np.float32)
    assert got[0, 0] > 1
