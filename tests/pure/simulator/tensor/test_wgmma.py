"""wgmma of every type and layout against numpy: operands laid out in shared memory by the descriptor's own rules."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpsmith.base.errors import CapabilityError
from warpsmith.simulator.fragments import wgmma_a, wgmma_accumulator
from warpsmith.simulator.matrix_descriptor import MatrixDescriptor, encode, offsets

TYPES: dict[str, tuple[Any, int]] = {
    "f16": (np.float16, 16), "bf16": (ml_dtypes.bfloat16, 16), "tf32": (np.float32, 8), "e4m3": (ml_dtypes.float8_e4m3fn, 32),
    "e5m2": (ml_dtypes.float8_e5m2, 32), "s8": (np.int8, 32), "u8": (np.uint8, 32),
}  # fmt: skip
"""Element dtype and K."""
A_AT, B_AT, BYTES = 0, 16384, 49152


def tile(matrix: np.ndarray, start: int, swizzle: str, mn_major: bool, memory: np.ndarray) -> int:
    """Lay a matrix `[mn, k]` out in the image of shared memory; return its descriptor."""
    mn, k = matrix.shape
    size = matrix.dtype.itemsize
    span = {"none": 16, "32B": 32, "64B": 64, "128B": 128}[swizzle]
    if mn_major:
        leading, stride = (128 * (mn * size // 16), 128) if swizzle == "none" else (16 * span, 8 * span)
        if swizzle != "none" and k > 16:
            leading = k * span
    else:
        leading, stride = 128, max(8 * span, 256) if swizzle == "none" else 8 * span
    d = MatrixDescriptor(start, leading, stride, swizzle)
    at = offsets(d, mn, k, size, mn_major=mn_major)[..., None] + np.arange(size) - 1024
    memory[at] = np.ascontiguousarray(matrix)[..., None].view(np.uint8).reshape(mn, k, size)
    return encode(d)


def body(instruction: str, n_registers: int, a_registers: int, tail: str, repeats: int = 1) -> str:
    d = ", ".join(f"%r{i}" for i in range(n_registers))
    a = "{" + ", ".join(f"%r{200 + i}" for i in range(a_registers)) + "}" if a_registers else "%rd10"
    loads = "".join(f" ld.global.b32 %r{200 + i}, [%rd6+{512 * i}];\n" for i in range(a_registers))
    zero = "".join(f" mov.b32 %r{i}, 0;\n" for i in range(n_registers))
    stores = "".join(f" st.global.b32 [%out+{512 * i}], %r{i};\n" for i in range(n_registers))
    multiply = f" wgmma.mma_async.sync.aligned.{instruction} {{{d}}}, {a}, %rd11, %p2{tail};\n" * repeats
    return f""" .shared .align 1024 .b8 buf[{BYTES}];
 ld.param.u64 %rd1, [image]; ld.param.u64 %rd10, [da]; ld.param.u64 %rd11, [db]; ld.param.u64 %rd6, [fragment];
 mov.u32 %r250, buf; shl.b32 %r251, %t, 4; add.u32 %r252, %r250, %r251; cvt.u64.u32 %rd2, %r251; add.u64 %rd3, %rd1, %rd2;
 mov.u32 %r253, 0;
FILL:
 ld.global.v4.b32 {{%r254,%r255,%r256,%r257}}, [%rd3]; st.shared.v4.b32 [%r252], {{%r254,%r255,%r256,%r257}};
 add.u32 %r252, %r252, 2048; add.u64 %rd3, %rd3, 2048; add.u32 %r253, %r253, 1;
 setp.lt.u32 %p1, %r253, {BYTES // 2048}; @%p1 bra FILL;
 fence.proxy.async.shared::cta; bar.sync 0;
 mul.wide.u32 %rd4, %t, 4; add.u64 %out, %out, %rd4; add.u64 %rd6, %rd6, %rd4;
{loads}{zero} setp.eq.u32 %p2, 0, 0;
 wgmma.fence.sync.aligned;
{multiply} wgmma.commit_group.sync.aligned;
 wgmma.wait_group.sync.aligned 0;
{stores}"""


PARAMETERS = ".param .u64 out, .param .u64 image, .param .u64 da, .param .u64 db, .param .u64 fragment"


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


def test_sparse_products_are_refused_by_name(run: Any) -> None:
    text = body("m64n8k16.f32.f16.f16", 4, 0, ", 1, 1, 0, 0")
    text = text.replace("mma_async.sync.aligned.m64n8k16", "mma_async.sp.sync.aligned.m64n8k32")
    text = text.replace("%rd11, %p2", "%rd11, %r0, 0, %p2")
    args = (np.zeros((4, 128), np.float32), np.zeros(BYTES, np.uint8), 0, 0, np.zeros(512, np.uint32))
    with pytest.raises(CapabilityError, match=r"sparse matrix products are not modelled"):
        run(text, *args, parameters=PARAMETERS, block=128)
