"""ldmatrix, stmatrix, movmatrix and wmma against plain indexing."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from warpsmith.base.errors import CapabilityError

# 32 rows of 16 bytes in shared memory; lane i points at row i
LOAD = """ .shared .align 16 .b8 buf[512];
 mov.u32 %r50, buf; shl.b32 %r51, %t, 4; add.u32 %r52, %r50, %r51;
 ld.param.u64 %rd1, [in]; cvt.u64.u32 %rd2, %r51; add.u64 %rd1, %rd1, %rd2;
 ld.global.v4.b32 {%r40,%r41,%r42,%r43}, [%rd1]; st.shared.v4.b32 [%r52], {%r40,%r41,%r42,%r43};
 bar.sync 0;
"""
STORE = """ mul.wide.u32 %rd3, %t, 4; add.u64 %out, %out, %rd3;
"""


def launch(run: Any, body: str, rows: np.ndarray, count: int) -> np.ndarray:
    out = np.zeros((count, 32, 2), np.uint16)
    stores = "".join(f" st.global.b32 [%out+{128 * i}], %r{i};\n" for i in range(count))
    r = run(LOAD + STORE + body + stores, out, rows, parameters=".param .u64 out, .param .u64 in")
    assert r.completed
    assert [str(f) for f in r.findings] == []
    return out


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix(run: Any, count: int, trans: bool) -> None:
    rows = np.arange(256, dtype=np.uint16).reshape(4, 8, 8) + 1
    registers = ", ".join(f"%r{i}" for i in range(count))
    body = f" ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if trans else ''}.shared.b16 {{{registers}}}, [%r52];\n"
    out = launch(run, body, rows, count)
    for i in range(count):
        matrix = rows[i].T if trans else rows[i]
        want = [[matrix[lane // 4, 2 * (lane % 4)], matrix[lane // 4, 2 * (lane % 4) + 1]] for lane in range(32)]
        assert out[i].tolist() == np.array(want).tolist()


@pytest.mark.parametrize("trans", [False, True])
def test_stmatrix_undoes_ldmatrix(run: Any, trans: bool) -> None:
    rows = np.arange(256, dtype=np.uint16).reshape(4, 8, 8) + 7
    t = ".trans" if trans else ""
    body = f""" ldmatrix.sync.aligned.m8n8.x4{t}.shared.b16 {{%r10,%r11,%r12,%r13}}, [%r52];
 mov.b32 %r14, 0; st.shared.v4.b32 [%r52], {{%r14,%r14,%r14,%r14}};
 bar.sync 0;
 stmatrix.sync.aligned.m8n8.x4{t}.shared.b16 [%r52], {{%r10,%r11,%r12,%r13}};
 bar.sync 0;
 ld.shared.v4.b32 {{%r0,%r1,%r2,%r3}}, [%r52];
"""
    out = launch(run, body, rows, 4)  # [word, row, half]
    assert (out.transpose(1, 0, 2).reshape(32, 8) == rows.reshape(32, 8)).all()


def test_movmatrix_transposes(run: Any) -> None:
    rows = np.arange(256, dtype=np.uint16).reshape(4, 8, 8)
    body = " ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r52]; movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r10;\n"
    out = launch(run, body, rows, 1)[0].reshape(8, 8)
    assert (out == rows[0].T).all()


def test_a_row_address_must_be_aligned(run: Any) -> None:
    rows = np.zeros((4, 8, 8), np.uint16)
    body = LOAD + " add.u32 %r52, %r52, 8; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r52];"
    r = run(body, np.zeros(1, np.uint32), rows, parameters=".param .u64 out, .param .u64 in")
    (finding,) = r.findings
    assert finding.kind == "out-of-bounds"
    assert "which is no multiple of 16" in finding.message


@pytest.mark.parametrize("count", [1, 2, 4])
def test_signed_four_bit_elements_are_extended(run: Any, count: int) -> None:
    """Byte p of register i: element 4·(lane % 4) + p of row lane / 4 of matrix i, from the lowest bits of its 8 bytes on."""
    values = np.random.default_rng(4).integers(-8, 8, (32, 16))
    rows = np.full((32, 16), 0xEE, np.uint8)
    for row, elements in zip(rows, values.tolist(), strict=True):
        row[:8] = list(sum((v & 15) << 4 * i for i, v in enumerate(elements)).to_bytes(8, "little"))
    registers = ", ".join(f"%r{i}" for i in range(count))
    body = LOAD + f" ldmatrix.sync.aligned.m8n16.x{count}.shared.s8.s4 {{{registers}}}, [%r52];\n"
    body += "".join(f" st.global.b32 [%out+{128 * i}], %r{i};" for i in range(count))
    body = body.replace(" st.global", " mul.wide.u32 %rd9, %t, 4; add.u64 %out, %out, %rd9;\n st.global", 1)
    out = np.zeros((count, 32), np.uint32)
    r = run(body, out, rows, parameters=".param .u64 out, .param .u64 in", target="sm_90a", version="9.4")
    assert [str(f) for f in r.findings] == []
    got = out.view(np.int8).reshape(count, 8, 16)
    assert (got == values[: 8 * count].reshape(count, 8, 16)).all()


def test_rows_of_eight_bytes_between_those_of_sixteen_are_refused(run: Any) -> None:
    """The manual gives no alignment of rows of eight bytes."""
    body = LOAD + " add.u32 %r52, %r52, 8; ldmatrix.sync.aligned.m8n16.x1.shared.s8.s4 {%r0}, [%r52];"
    parameters, nothing = ".param .u64 out, .param .u64 in", np.zeros(512, np.uint8)
    with pytest.raises(CapabilityError, match=r"ldmatrix of \.s4 from rows at odd multiples of 8 bytes is not modelled$"):
        run(body, np.zeros(1, np.uint32), nothing, parameters=parameters, target="sm_100a", version="9.4")


@pytest.mark.parametrize(("a_layout", "b_layout"), [("row", "col"), ("row", "row"), ("col", "col"), ("col", "row")])
@pytest.mark.parametrize("shape", ["m16n16k16", "m32n8k16", "m8n32k16"])
def test_wmma(run: Any, shape: str, a_layout: str, b_layout: str) -> None:
    m, n, k = {"m16n16k16": (16, 16, 16), "m32n8k16": (32, 8, 16), "m8n32k16": (8, 32, 16)}[shape]
    rng = np.random.default_rng(2)
    A, B = rng.integers(-8, 8, (m, k)).astype(np.float16), rng.integers(-8, 8, (k, n)).astype(np.float16)
    C = rng.integers(-8, 8, (m, n)).astype(np.float32)
    a = np.ascontiguousarray(A if a_layout == "row" else A.T)
    b = np.ascontiguousarray(B if b_layout == "row" else B.T)
    regs = [", ".join(f"%{t}{i + s}" for i in range(8)) for t, s in (("r", 0), ("r", 8), ("f", 0), ("f", 8))]
    body = f""" ld.param.u64 %rd1, [pa]; ld.param.u64 %rd2, [pb]; ld.param.u64 %rd3, [pc];
 wmma.load.a.sync.aligned.{a_layout}.{shape}.global.f16 {{{regs[0]}}}, [%rd1];
 wmma.load.b.sync.aligned.{b_layout}.{shape}.global.f16 {{{regs[1]}}}, [%rd2];
 wmma.load.c.sync.aligned.row.{shape}.global.f32 {{{regs[2]}}}, [%rd3], {n};
 wmma.mma.sync.aligned.{a_layout}.{b_layout}.{shape}.f32.f32 {{{regs[3]}}}, {{{regs[0]}}}, {{{regs[1]}}}, {{{regs[2]}}};
 wmma.store.d.sync.aligned.row.{shape}.global.f32 [%out], {{{regs[3]}}}, {n};"""
    out = np.zeros((m, n), np.float32)
    parameters = ".param .u64 out, .param .u64 pa, .param .u64 pb, .param .u64 pc"
    r = run(body, out, a, b, C, parameters=parameters, target="sm_80")
    assert r.completed
    assert [str(f) for f in r.findings] == []
    assert (out == A.astype(np.float32) @ B.astype(np.float32) + C).all()


def rounded(exact: Fraction, mode: str) -> float:
    """The f64 of an exact value in a directed mode; float() of a fraction rounds to nearest."""
    near = float(exact)
    below = near if Fraction(near) <= exact else math.nextafter(near, -math.inf)
    above = near if Fraction(near) >= exact else math.nextafter(near, math.inf)
    return {"rn": near, "rm": below, "rp": above, "rz": below if exact > 0 else above}[mode]


@pytest.mark.parametrize("mode", ["", "rn", "rz", "rm", "rp"])
def test_wmma_of_doubles(run: Any, mode: str) -> None:
    rng = np.random.default_rng(5)
    A, B, C = rng.standard_normal((8, 4)), rng.standard_normal((4, 8)), rng.standard_normal((8, 8))
    body = f""" .reg .f64 %v<6>; ld.param.u64 %rd1, [pa]; ld.param.u64 %rd2, [pb]; ld.param.u64 %rd3, [pc];
 wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {{%v0}}, [%rd1];
 wmma.load.b.sync.aligned.row.m8n8k4.global.f64 {{%v1}}, [%rd2];
 wmma.load.c.sync.aligned.row.m8n8k4.global.f64 {{%v2,%v3}}, [%rd3];
 wmma.mma.sync.aligned.row.row.m8n8k4{mode and "."}{mode}.f64.f64.f64.f64 {{%v4,%v5}}, {{%v0}}, {{%v1}}, {{%v2,%v3}};
 wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [%out], {{%v4,%v5}};"""
    out = np.zeros((8, 8))
    parameters = ".param .u64 out, .param .u64 pa, .param .u64 pb, .param .u64 pc"
    r = run(body, out, A, B, C, parameters=parameters, target="sm_80")
    assert r.completed
    for i, j in np.ndindex(8, 8):
        total = float(C[i, j])
        for k in range(4):
            total = rounded(Fraction(float(A[i, k])) * Fraction(float(B[k, j])) + Fraction(total), mode or "rn")
        assert out[i, j] == total


def test_wmma_of_bits(run: Any) -> None:
    rng = np.random.default_rng(4)
    A, B = rng.integers(0, 2, (8, 128)), rng.integers(0, 2, (128, 8))
    C = rng.integers(-5, 5, (8, 8)).astype(np.int32)
    a, b = (np.packbits(np.ascontiguousarray(x), axis=1, bitorder="little") for x in (A, B.T))
    body = """ ld.param.u64 %rd1, [pa]; ld.param.u64 %rd2, [pb]; ld.param.u64 %rd3, [pc];
 wmma.load.a.sync.aligned.row.m8n8k128.global.b1 {%r0}, [%rd1];
 wmma.load.b.sync.aligned.col.m8n8k128.global.b1 {%r1}, [%rd2];
 wmma.load.c.sync.aligned.row.m8n8k128.global.s32 {%r2,%r3}, [%rd3];
 wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r4,%r5}, {%r0}, {%r1}, {%r2,%r3};
 wmma.store.d.sync.aligned.row.m8n8k128.global.s32 [%out], {%r4,%r5};"""
    out = np.zeros((8, 8), np.int32)
    parameters = ".param .u64 out, .param .u64 pa, .param .u64 pb, .param .u64 pc"
    r = run(body, out, a, b, C, parameters=parameters, target="sm_80")
    assert r.completed
    assert (out == (A[:, :, None] != B[None]).sum(1) + C).all()
