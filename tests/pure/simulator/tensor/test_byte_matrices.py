"""ldmatrix of 8-, 6- and 4-bit elements and stmatrix of 8-bit ones against plain indexing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsmith.assembly.ptx.isa import Row, match, rows
from warpsmith.hardware.scalar_forms import mnemonics
from warpsmith.simulator.fragments import accumulator, operand_a
from warpsmith.simulator.meanings import registry

BITS = {"b8": 8, "b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4}
PARAMETERS = ".param .u64 out, .param .u64 in"
# 32 rows of 16 bytes in shared memory; lane i points at row i
HEAD = """ .shared .align 16 .b8 buf[512];
 mov.u32 %r50, buf; shl.b32 %r51, %t, 4; add.u32 %r52, %r50, %r51; mul.wide.u32 %rd3, %t, 16; add.u64 %out, %out, %rd3;
 ld.param.u64 %rd1, [in]; add.u64 %rd1, %rd1, %rd3; ld.global.v4.b32 {%r40,%r41,%r42,%r43}, [%rd1];
"""
FILL = " st.shared.v4.b32 [%r52], {%r40,%r41,%r42,%r43}; bar.warp.sync 0xffffffff;\n"


def launch(run: Any, body: str, data: np.ndarray, head: str = HEAD + FILL) -> np.ndarray:
    """Run `body`; return the bytes `[lane, register, byte]` of %r0 to %r3."""
    out = np.zeros((32, 4, 4), np.uint8)
    tail = " st.global.v4.b32 [%out], {%r0,%r1,%r2,%r3};"
    zero = " mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0;\n"
    r = run(head + zero + body + tail, out, data, parameters=PARAMETERS, target="sm_100a")
    assert r.completed
    assert [str(f) for f in r.findings] == []
    return out


def pack(matrix: np.ndarray, bits: int, noise: np.random.Generator) -> np.ndarray:
    """Rows of sixteen elements of `bits` bits, from the lowest bit on; the padding is noise."""
    packed = noise.integers(0, 256, (matrix.shape[0], 16)).astype(np.uint8)
    for row, values in zip(packed, matrix.tolist(), strict=True):
        word = sum(v << bits * i for i, v in enumerate(values))
        row[: 2 * bits] = list(word.to_bytes(2 * bits, "little"))
    return packed


def elements(bits: int) -> np.ndarray:
    return np.random.default_rng(bits).integers(0, 1 << bits, (32, 16))


@pytest.mark.parametrize("form", list(BITS))
@pytest.mark.parametrize("count", [1, 2])
def test_m16n16(run: Any, form: str, count: int) -> None:
    """Byte p of register r: row 4·(lane % 4) + p of column lane / 4 + 8·r."""
    matrix = elements(BITS[form])
    registers = ", ".join(f"%r{i}" for i in range(2 * count))
    body = f" ldmatrix.sync.aligned.m16n16.x{count}.trans.shared.{form} {{{registers}}}, [%r52];\n"
    out = launch(run, body, pack(matrix, BITS[form], np.random.default_rng(1)))
    want = np.zeros((32, 4, 4), np.uint8)
    for lane in range(32):
        for i in range(2 * count):
            for p in range(4):
                want[lane, i, p] = matrix[16 * (i // 2) + 4 * (lane % 4) + p, lane // 4 + 8 * (i % 2)]
    assert (out == want).all()


@pytest.mark.parametrize("form", ["b8x16.b6x16_p32", "b8x16.b4x16_p64"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_m8n16(run: Any, form: str, count: int) -> None:
    """Byte p: column 4·(lane % 4) + p of row lane / 4."""
    matrix = elements(BITS[form])
    registers = ", ".join(f"%r{i}" for i in range(count))
    body = f" ldmatrix.sync.aligned.m8n16.x{count}.shared::cta.{form} {{{registers}}}, [%r52];\n"
    out = launch(run, body, pack(matrix, BITS[form], np.random.default_rng(2)))
    want = np.zeros((32, 4, 4), np.uint8)
    for lane in range(32):
        for i in range(count):
            for p in range(4):
                want[lane, i, p] = matrix[8 * i + lane // 4, 4 * (lane % 4) + p]
    assert (out == want).all()


def test_m16n16_gives_the_fragment_of_a_transposed_operand(run: Any) -> None:
    matrix = elements(8)
    body = " ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0,%r1}, [%r52];\n"
    out = launch(run, body, matrix.astype(np.uint8))
    assert (out[:, :2].transpose(1, 0, 2) == matrix[:16].T[operand_a(16, 16, 8)]).all()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_stores_columns_of_accumulators(run: Any, count: int) -> None:
    """A 16x8 matrix held as accumulators: column c goes to the address of lane c (of lane 8·i + c for matrix i)."""
    held = np.random.default_rng(3).integers(0, 256, (count, 16, 8))
    row, column = accumulator(16, 8, 32)
    data = np.zeros((32, 4, 4), np.uint8)
    for i in range(count):
        data[:, i] = held[i][row[..., 0], column[..., 0]].T
    registers = ", ".join(f"%r{40 + i}" for i in range(count))
    body = f""" mov.b32 %r9, 0; st.shared.v4.b32 [%r52], {{%r9,%r9,%r9,%r9}}; bar.warp.sync 0xffffffff;
 stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8 [%r52], {{{registers}}}; bar.warp.sync 0xffffffff;
 ld.shared.v4.b32 {{%r0,%r1,%r2,%r3}}, [%r52];
"""
    out = launch(run, body, data, HEAD).reshape(32, 16)
    want = np.zeros((32, 16), np.uint8)
    want[: 8 * count] = held.transpose(0, 2, 1).reshape(8 * count, 16)
    assert (out == want).all()


def test_a_load_is_undone_by_a_store_after_exchanging_bytes(run: Any) -> None:
    """Lane i loads row 0, 1, 8, 9, 2, 3, 10, 11 …; halves of the two registers change places; the store restores memory."""
    body = """ and.b32 %r10, %t, 1; bfe.u32 %r11, %t, 1, 1; bfe.u32 %r12, %t, 2, 2;
 mad.lo.u32 %r10, %r11, 8, %r10; mad.lo.u32 %r10, %r12, 2, %r10; shl.b32 %r10, %r10, 4; add.u32 %r10, %r10, %r50;
 ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r20,%r21}, [%r10];
 prmt.b32 %r22, %r20, %r21, 0x5410; prmt.b32 %r23, %r20, %r21, 0x7632;
 mov.b32 %r9, 0; bar.warp.sync 0xffffffff; st.shared.v4.b32 [%r52], {%r9,%r9,%r9,%r9}; bar.warp.sync 0xffffffff;
 stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r52], {%r22,%r23}; bar.warp.sync 0xffffffff;
 ld.shared.v4.b32 {%r0,%r1,%r2,%r3}, [%r52];
"""
    data = elements(8).astype(np.uint8)
    assert (launch(run, body, data).reshape(32, 16)[:16] == data[:16]).all()


@pytest.mark.parametrize(("form", "more"), [("b8x16.b4x16_p64", ""), ("b8x16.b6x16_p32", " st.shared.b32 [%r52+8], %r42;")])
def test_padding_need_not_be_written(run: Any, form: str, more: str) -> None:
    text = " st.shared.v2.b32 [%r52], {%r40,%r41};" + more
    matrix = elements(BITS[form])
    body = f" ldmatrix.sync.aligned.m8n16.x1.shared.{form} {{%r0}}, [%r52];\n"
    packed = pack(matrix, BITS[form], np.random.default_rng(4))
    out = launch(run, body, packed, HEAD + text + " bar.warp.sync 0xffffffff;\n")
    assert (out[:, 0].reshape(8, 16) == matrix[:8]).all()


def test_elements_nobody_wrote_are_undefined(run: Any) -> None:
    """Eight of the twelve bytes of sixteen 6-bit elements are written: the last six elements are not."""
    text = HEAD + " st.shared.v2.b32 [%r52], {%r40,%r41}; bar.warp.sync 0xffffffff;\n"
    text += " ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%r0}, [%r52];\n and.b32 %r9, %t, 3;"
    for limit, kinds in ((2, []), (3, ["uninitialised-read"])):
        store = f" setp.lt.u32 %p1, %r9, {limit}; @%p1 st.global.b32 [%out], %r0;"
        args = (np.zeros((32, 4), np.uint32), np.zeros((32, 16), np.uint8))
        r = run(text + store, *args, parameters=PARAMETERS, target="sm_100a")
        assert [f.kind for f in r.findings] == kinds


@pytest.mark.parametrize("instruction", [
    "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0,%r1}, [%r52]",
    "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r52], {%r40}",
])  # fmt: skip
def test_a_row_address_must_be_aligned(run: Any, instruction: str) -> None:
    body = HEAD + FILL + f" add.u32 %r52, %r52, 8; {instruction};"
    r = run(body, np.zeros(128, np.uint32), np.zeros((32, 16), np.uint8), parameters=PARAMETERS, target="sm_100a")
    (finding,) = r.findings
    assert finding.kind == "out-of-bounds"
    assert "which is no multiple of 16" in finding.message


@pytest.mark.parametrize("row", [r for r in rows() if r.opcode in ("ldmatrix", "stmatrix")], ids=lambda r: r.id)
def test_a_declared_row_has_a_meaning(row: Row) -> None:
    for mnemonic in mnemonics(row):
        assert isinstance(registry.build(next(m for m in match(mnemonic) if m.row is row)), registry.Built)
