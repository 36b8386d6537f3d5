"""mma.sp of every shape and type: a dense A by the manual's rules, multiplied by numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sparse_operands import compress, metadata_registers
from warpsmith.assembly.ptx.isa import Row, match, rows
from warpsmith.base.errors import CapabilityError
from warpsmith.hardware.scalar_forms import mnemonics
from warpsmith.simulator.fragments import accumulator, operand_a, operand_b
from warpsmith.simulator.meanings import registry

FLOAT = [
    ("m16n8k16.row.col.f32.f16.f16.f32", "sm_80", (0, 1, 2, 3)), ("m16n8k16.row.col.f16.f16.f16.f16", "sm_90", (2,)),
    ("m16n8k32.row.col.f32.f16.f16.f32", "sm_90", (0, 1)), ("m16n8k32.row.col.f16.f16.f16.f16", "sm_80", (1,)),
    ("m16n8k16.row.col.f32.bf16.bf16.f32", "sm_90", (3,)), ("m16n8k32.row.col.f32.bf16.bf16.f32", "sm_90", (0,)),
    ("m16n8k8.row.col.f32.tf32.tf32.f32", "sm_90", (0, 1, 2, 3)), ("m16n8k16.row.col.f32.tf32.tf32.f32", "sm_80", (0, 1)),
    ("m16n8k64.row.col.f32.e4m3.e5m2.f32", "sm_90", (0,)),
    ("m16n8k64.row.col.kind::f8f6f4.f32.e5m2.e4m3.f32", "sm_120a", (0,)),
    ("m16n8k64.row.col.kind::f8f6f4.f16.e4m3.e4m3.f16", "sm_120a", (0,)),
]  # fmt: skip
INTEGER = [
    ("m16n8k32.row.col.s32.s8.u8.s32", (0, 1)), ("m16n8k64.row.col.satfinite.s32.u8.s8.s32", (0,)),
    ("m16n8k64.row.col.s32.s4.s4.s32", (0, 1)), ("m16n8k128.row.col.s32.u4.s4.s32", (0,)),
    ("m16n8k128.row.col.satfinite.s32.s4.u4.s32", (0,)),
]  # fmt: skip
DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "tf32": np.float32, "f32": np.float32,
}  # fmt: skip
WIDTH = {"tf32": 32, "f16": 16, "bf16": 16, "s4": 4, "u4": 4}
ORDERED = "sp::ordered_metadata"


def depth_of(mnemonic: str) -> int:
    return int(mnemonic.partition(".")[0].rpartition("k")[2])


def bits_of(type_: str, depth: int) -> int:
    return {"tf32": 2 * depth, "s4": depth // 2, "u4": depth // 2}.get(type_, depth)


def fill(values: np.ndarray, where: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return np.ascontiguousarray(values[where[0], where[1]]).view(np.uint32)[..., 0]


def fill_narrow(values: np.ndarray, where: tuple[np.ndarray, np.ndarray], width: int) -> np.ndarray:
    parts = (values[where[0], where[1]] & ((1 << width) - 1)).astype(np.uint64)
    return (parts << (np.arange(32 // width, dtype=np.uint64) * width)).sum(-1).astype(np.uint32)


def multiply(run: Any, variant: str, mnemonic: str, target: str, parts: list[np.ndarray], selector: int, **options: Any) -> Any:
    """Load the registers of A, B, C and the metadata, multiply, store D; return (registers of D, the result of the run)."""
    counts = [p.shape[0] for p in parts]
    numbers, at = [], 0
    for n in (counts[2], *counts):
        numbers.append([f"%r{i}" for i in range(at, at + n)])
        at += n
    first = counts[2]
    lines = ["mul.wide.u32 %rd1, %t, 4; ld.param.u64 %rd2, [in]; add.u64 %rd2, %rd2, %rd1; add.u64 %out, %out, %rd1;"]
    lines += [f"ld.global.b32 %r{i}, [%rd2+{(i - first) * 128}];" for i in range(first, at)]
    d, a, b, c = ("{" + ", ".join(g) + "}" for g in numbers[:4])
    lines.append(f"mma.{variant}.sync.aligned.{mnemonic} {d}, {a}, {b}, {c}, {numbers[4][0]}, {selector};")
    lines += [f"st.global.b32 [%out+{i * 128}], %r{i};" for i in range(first)]
    out = np.zeros((first, 32), np.uint32)
    parameters = ".param .u64 out, .param .u64 in"
    r = run("\n ".join(lines), out, np.concatenate(parts), parameters=parameters, target=target, **options)
    assert r.completed, r.findings
    assert [str(f) for f in r.findings] == []
    return out, r


def float_product(run: Any, variant: str, mnemonic: str, target: str, selector: int, **options: Any) -> Any:
    """Return (D, A with zeros, B, C, the result of the run)."""
    depth = depth_of(mnemonic)
    d, a, b, c = [w for w in mnemonic.split(".") if w in DTYPES]
    rng = np.random.default_rng(depth + selector)
    A, B, C = (rng.standard_normal(s).astype(DTYPES[t]) for s, t in (((16, depth), a), ((depth, 8), b), ((16, 8), c)))
    if a == "tf32":
        A, B = ((x.view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (A, B))
    width = WIDTH.get(a, 8)
    kept, stored, metadata = compress(rng, A, a)
    where = accumulator(16, 8, 16 if d == "f16" else 32)
    parts = [fill(stored, operand_a(16, depth // 2, width)), fill(B, operand_b(depth, 8, width)), fill(C, where)]
    parts.append(metadata_registers(rng, metadata, bits_of(a, depth), width, selector)[None])
    out, r = multiply(run, variant, mnemonic, target, parts, selector, **options)
    got = np.zeros((16, 8))
    got[where] = out[..., None].view(DTYPES[d])
    return got, kept.astype(np.float64), B.astype(np.float64), C.astype(np.float64), r


@pytest.mark.parametrize(("mnemonic", "target", "selector"), [(m, t, s) for m, t, all_ in FLOAT for s in all_])
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_float_products(run: Any, mnemonic: str, target: str, selector: int, numerics: str) -> None:
    got, a, b, c, _ = float_product(run, ORDERED, mnemonic, target, selector, numerics=numerics)
    want = a @ b + c
    assert np.abs(got - want).max() <= (4e-3 if ".f16.f" in mnemonic or ".f16.e" in mnemonic else 1e-4) * np.abs(want).max()


@pytest.mark.parametrize("variant", ["sp", ORDERED])
@pytest.mark.parametrize(("mnemonic", "selector"), [(m, s) for m, all_ in INTEGER for s in all_])
def test_integer_products_are_exact(run: Any, variant: str, mnemonic: str, selector: int) -> None:
    depth = depth_of(mnemonic)
    a, b = [w for w in mnemonic.split(".") if w in ("s8", "u8", "s4", "u4")]
    width = int(a[1:])
    rng = np.random.default_rng(depth + selector)
    low = {"s": -(1 << width - 1), "u": 0}
    A = rng.integers(low[a[0]], low[a[0]] + (1 << width), (16, depth))
    B = rng.integers(low[b[0]], low[b[0]] + (1 << width), (depth, 8))
    C = rng.integers(-(2**31), 2**31, (16, 8)).astype(np.int32)
    kept, stored, metadata = compress(rng, A, a)
    where = accumulator(16, 8, 32)
    parts = [fill_narrow(stored, operand_a(16, depth // 2, width), width), fill_narrow(B, operand_b(depth, 8, width), width)]
    parts += [fill(C, where), metadata_registers(rng, metadata, bits_of(a, depth), width, selector)[None]]
    out, _ = multiply(run, variant, mnemonic, "sm_80", parts, selector)
    got = np.zeros((16, 8), np.int32)
    got[where] = out[..., None].view(np.int32)
    total = kept @ B + C.astype(np.int64)
    want = np.clip(total, -(2**31), 2**31 - 1).astype(np.int32) if "satfinite" in mnemonic else total.astype(np.int32)
    assert (got == want).all()


def crafted(run: Any, variant: str, stored: np.ndarray, code: int, b: np.ndarray, selector: int = 0, **options: Any) -> Any:
    """m16n8k16 of f16 with every chunk's metadata `code`; return (D, the result of the run)."""
    where = accumulator(16, 8, 32)
    e = np.full((1, 32), code * 0x11111111, np.uint32)
    parts = [fill(stored, operand_a(16, 8, 16)), fill(b, operand_b(16, 8, 16)), np.zeros((4, 32), np.uint32), e]
    out, r = multiply(run, variant, "m16n8k16.row.col.f32.f16.f16.f32", "sm_90", parts, selector, **options)
    got = np.zeros((16, 8), np.float32)
    got[where] = out[..., None].view(np.float32)
    return got, r


@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_what_a_row_leaves_out_takes_no_part(run: Any, numerics: str) -> None:
    """Infinities and NaNs of B that no row names do not reach the result."""
    b = np.ones((16, 8), np.float16)
    b[0::4], b[3::4] = np.inf, np.nan
    got, _ = crafted(run, ORDERED, np.ones((16, 8), np.float16), 0b1001, b, numerics=numerics)
    assert (got == 8).all()


def test_unordered_indices_have_a_meaning_without_the_qualifier_only(run: Any) -> None:
    """The first stored element meets the element that the first index names, whatever their order."""
    stored = np.tile(np.array([1, 2], np.float16), (16, 4))
    b = np.repeat(np.array([1, 10, 100, 1000] * 4, np.float16)[:, None], 8, axis=1)
    got, r = crafted(run, "sp", stored, 0b0011, b)
    assert (got == 4 * (1 * 1000 + 2 * 1)).all()
    assert not any(level == "not modelled" for level, _ in r.fidelity.notes.values())
    for variant, code, sum_ in ((ORDERED, 0b0011, 4 * 1002), ("sp", 0b0101, 4 * 30)):
        got, r = crafted(run, variant, stored, code, b)
        assert (got == sum_).all()
        assert r.fidelity.notes["metadata of sparse f16 operands"][0] == "not modelled"


SUMS = "truncated fused dot products: {} stored terms, {} bits below the largest exponent"


@pytest.mark.parametrize(
    ("target", "note"),
    [
        ("sm_80", ("published model", SUMS.format(8, 24))),
        ("sm_90", ("hardware-checked", f"bit for bit what an H200 gave: {SUMS.format(16, 25)}")),
        ("sm_100", ("published model", SUMS.format(16, 25))),
        ("sm_120", ("published model", SUMS.format(16, 25))),
    ],
)
def test_the_report_says_whether_sums_were_seen_on_hardware(run: Any, target: str, note: tuple[str, str]) -> None:
    *_, r = float_product(run, ORDERED, "m16n8k32.row.col.f32.f16.f16.f32", target, 0, numerics="exact")
    assert r.fidelity.notes["sparse f16 tensor cores"] == note


def test_a_block_holds_as_many_stored_products_as_a_dense_one(run: Any) -> None:
    """k32 stores sixteen products a row, one block of Hopper's: 1 + 15 · 2^-26 loses the small ones wherever 1 stands."""
    for at in (0, 15):
        stored, b = np.full((16, 16), 2.0**-13, np.float16), np.full((32, 8), 2.0**-13, np.float16)
        stored[:, at], b[4 * (at // 2) + at % 2] = 1, 1
        where = accumulator(16, 8, 32)
        e = np.full((1, 32), 0x44444444, np.uint32)
        parts = [fill(stored, operand_a(16, 16, 16)), fill(b, operand_b(32, 8, 16)), np.zeros((4, 32), np.uint32), e]
        out, _ = multiply(run, ORDERED, "m16n8k32.row.col.f32.f16.f16.f32", "sm_90", parts, 0, numerics="exact")
        got = np.zeros((16, 8), np.float32)
        got[where] = out[..., None].view(np.float32)
        assert (got == 1).all()


@pytest.mark.parametrize("mnemonic", ["m16n8k32.row.col.f32.f16.f16.f32", "m16n8k32.row.col.f16.f16.f16.f16"])
def test_an_infinity_elsewhere_changes_no_bit(run: Any, mnemonic: str) -> None:
    """Sums of tiny, zero and large products are the same bits whether some other column of B is finite or not."""
    rng = np.random.default_rng(6)
    A = (rng.standard_normal((16, 32)) * 2.0 ** rng.integers(-20, 1, (16, 32))).astype(np.float16)
    B = (rng.standard_normal((32, 8)) * 2.0 ** rng.integers(-20, 1, (32, 8))).astype(np.float16)
    B[rng.integers(0, 4, B.shape) == 0] = 0
    B[:, 2] = 0
    dtype = DTYPES[mnemonic.rpartition(".")[2]]
    C = (rng.standard_normal((16, 8)) * 2.0 ** rng.integers(-20, 1, (16, 8)) * rng.integers(0, 2, (16, 8))).astype(dtype)
    _, stored, metadata = compress(rng, A, "f16")
    e = metadata_registers(rng, metadata, 32, 16, 0)[None]
    where = accumulator(16, 8, 8 * C.dtype.itemsize)
    results = []
    for last in (1, np.inf):
        B[:, 7] = last
        parts = [fill(stored, operand_a(16, 16, 16)), fill(B, operand_b(32, 8, 16)), fill(C, where), e]
        out, _ = multiply(run, ORDERED, mnemonic, "sm_90", parts, 0, numerics="exact")
        got = np.zeros((16, 8), dtype)
        got[where] = out[..., None].view(dtype)
        results.append(got)
    assert results[0][:, :7].tobytes() == results[1][:, :7].tobytes()
    assert not np.isfinite(results[1][:, 7]).any()


def test_a_selector_without_meaning_is_refused(run: Any) -> None:
    """ptxas takes 2 and 3 for this form; the manual gives only 0 and 1 a meaning."""
    parts = [np.zeros((n, 32), np.uint32) for n in (4, 4, 4, 1)]
    with pytest.raises(CapabilityError, match=r"sparsity selector 2 has no meaning for f16 and k32; use 0 to 1"):
        multiply(run, ORDERED, "m16n8k32.row.col.f32.f16.f16.f32", "sm_90", parts, 2)


@pytest.mark.parametrize("row", [r for r in rows() if r.opcode == "mma" and r.section.endswith(".6.3")], ids=lambda r: r.id)
def test_a_declared_row_has_a_meaning(row: Row) -> None:
    for mnemonic in mnemonics(row):
        built = registry.build(next(m for m in match(mnemonic) if m.row is row))
        assert isinstance(built, registry.Built)
