"""Block-scaled products of a sparse A: by the model of dense products over what each row keeps."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparse_operands import compress, metadata_registers

DENSE = runpy.run_path(str(Path(__file__).with_name("test_mma_block_scaled.py")))
COUNT, codes, expected, packed, scales = (DENSE[n] for n in ("COUNT", "codes", "expected", "registers", "scales"))
HEAD = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale"
FORMS = [f"{HEAD}.scale_vec::1X.f32.{pair}.f32.ue8m0" for pair in ("e4m3.e5m2", "e2m1.e3m2")] + [
    f"{HEAD}.f32.e5m2.e2m3.f32.ue8m0",
    "mma.sync.aligned.kind::mxf8f6f4.sp::ordered_metadata.block_scale.scale_vec::1X.m16n8k64.row.col.f32.e4m3.e2m1.f32.ue8m0",
]
"""The last is spelled as CuTe does."""
FOUR = "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind"
FOUR_BITS = [
    f"{FOUR}::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
    f"{FOUR}::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
    f"{FOUR}::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
    f"{FOUR}::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    "mma.sync.aligned.kind::mxf4nvf4.sp::ordered_metadata.block_scale.scale_vec::4X.m16n8k128.row.col.f32.e2m1.e2m1.f32.ue4m3",
]
"""The last is spelled as CuTe does."""


def fragments(stored: np.ndarray, b: np.ndarray, c: np.ndarray, types: list[str]) -> list[np.ndarray]:
    """Registers of the stored half of A, of B (64 or 128 rows) and of C, by the formulas of 9.7.16.6.2."""
    width = 8 if len(b) == 64 else 4
    per = 32 // width
    shift = [2 if width == 8 and t == "e2m1" else 0 for t in types]

    def of_a(lane: int, i: int) -> int:
        return stored[lane // 4 + 8 * (i // per % 2), lane % 4 * per + i % per + 4 * per * (i // (2 * per))]

    def of_b(lane: int, i: int) -> int:
        return b[lane % 4 * per + i % per + 4 * per * (i // per), lane // 4]

    third = np.array([[c[lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2] for lane in range(32)] for i in range(4)], np.float32)
    return [packed(of_a, 4, width, shift[0]), packed(of_b, 4, width, shift[1]), third.view(np.uint32)]


def run_one(run: Any, form: str, parts: list[np.ndarray], ids: tuple[int, ...]) -> tuple[np.ndarray, Any]:
    """Load registers of A, B, C, metadata and factors, multiply, and return D and the result of the run."""
    lines = ["mul.wide.u32 %rd1, %t, 4; ld.param.u64 %rd2, [in]; add.u64 %rd2, %rd2, %rd1; add.u64 %out, %out, %rd1;"]
    lines += [f"ld.global.b32 %r{i}, [%rd2+{128 * i}];" for i in range(15)]
    a, b, c, d = ("{" + ", ".join(f"%r{i}" for i in r) + "}" for r in (range(4), range(4, 8), range(8, 12), range(20, 24)))
    lines.append(f"{form} {d}, {a}, {b}, {c}, %r12, 0, %r13, {{{ids[0]}, {ids[1]}}}, %r14, {{{ids[2]}, {ids[3]}}};")
    lines += [f"st.global.b32 [%out+{128 * i}], %r{20 + i};" for i in range(4)]
    out = np.zeros((4, 32), np.uint32)
    names = ".param .u64 out, .param .u64 in"
    result = run("\n ".join(lines), out, np.concatenate(parts), parameters=names, target="sm_120a", version="9.1")
    got = np.zeros((16, 8), np.float32)
    for lane in range(32):
        for i in range(4):
            got[lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2] = out[i, lane : lane + 1].view(np.float32)[0]
    return got, result


def problem(form: str, seed: int, ids: tuple[int, ...]) -> tuple[list[np.ndarray], tuple[Any, ...], np.ndarray]:
    """Registers, and what the model of a dense product of each row is given."""
    rng = np.random.default_rng(seed)
    at, bt, _, st = form.split(".")[-4:]
    four = "k128" in form
    depth = 128 if four else 64
    count = next((n for x, n in COUNT.items() if x in form), 2 if four else 1)
    dense, b = codes(rng, (16, depth), at), codes(rng, (depth, 8), bt)
    _, stored, metadata = compress(rng, dense, "u4" if four else at)
    together = 2 if four else 1  # elements that one index names
    columns = np.array(
        [
            [
                4 * together * (k // (2 * together)) + together * (word >> 2 * (k // together) & 3) + k % together
                for k in range(depth // 2)
            ]
            for word in metadata
        ]
    )  # fmt: skip
    c = (rng.standard_normal((16, 8)) * 2.0 ** rng.integers(-20, 12, (16, 8))).astype(np.float32)
    low, high = (0x20, 0x50) if st == "ue4m3" else (119, 136)
    sa, sb = (rng.integers(low, high, (n, count)).astype(np.uint8) for n in (16, 8))
    held = [scales(rng, sa, ids[0], ids[1], b=False), scales(rng, sb, ids[2], ids[3], b=True)]
    e = metadata_registers(rng, metadata, 64, 4 if four else 8, 0)[None]
    return [*fragments(stored, b, c, [at, bt]), e, *held], (stored, b, c, sa, sb), columns


def check(run: Any, form: str, seed: int, ids: tuple[int, ...]) -> None:
    """Compare every row with the model of a dense product of what the row keeps and meets."""
    parts, (stored, b, c, sa, sb), columns = problem(form, seed, ids)
    got, result = run_one(run, form, parts, ids)
    assert [str(f) for f in result.findings] == []
    for row in range(16):
        rows = np.repeat(stored[row : row + 1], 16, axis=0)
        want = expected(form, rows, b[columns[row]], np.repeat(c[row : row + 1], 16, axis=0), [sa[row]] * 16, sb)
        assert got[row].tobytes() == want[0].tobytes(), row
    terms = "sums of 16 stored products" if "k128" in form else "stored products"
    assert f"the model of dense products over the stored elements, {terms} as its terms: no source covers" in str(
        result.fidelity
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("seed", "ids"), [(0, (3, 1, 2, 3)), (1, (0, 0, 1, 2))])
def test_each_row_meets_the_elements_it_names(run: Any, form: str, seed: int, ids: tuple[int, ...]) -> None:
    check(run, form, seed, ids)


@pytest.mark.parametrize("form", FOUR_BITS)
def test_pairs_of_four_bit_elements(run: Any, form: str) -> None:
    check(run, form, 2, (0, 1, 0, 3) if "4X" in form else (2, 1, 0, 3))


@pytest.mark.parametrize("lane", range(4))
def test_each_lane_of_a_quad_holds_metadata_of_pairs(run: Any, lane: int) -> None:
    """Lanes 0 and 2 hold those of row g, 1 and 3 of row g + 8 (CuTe: ELayout of SM120_SPARSE_16x8x128_TN_VS)."""
    form, ids = FOUR_BITS[3], (0, 0, 0, 0)
    parts, _, _ = problem(form, 3, ids)
    plain, _ = run_one(run, form, parts, ids)
    e = parts[3][0]
    e[4 * 5 + lane] = 0x44444444 if e[4 * 5 + lane] != 0x44444444 else 0xEEEEEEEE
    got, _ = run_one(run, form, parts, ids)
    assert np.flatnonzero((got != plain).any(axis=1)).tolist() == [5 + 8 * (lane % 2)]


def test_what_a_row_leaves_out_takes_no_part(run: Any) -> None:
    form = FORMS[0]
    parts, (_, b, c, _, _), columns = problem(form, 5, (0, 0, 0, 0))
    plain, _ = run_one(run, form, parts, (0, 0, 0, 0))
    unused = [k for k in range(64) if k not in columns[2]]
    b[unused[0]] = 0x7F  # a NaN of e5m2 in a row of B that row 2 of A leaves out
    parts[1] = fragments(np.zeros((16, 32), int), b, c, ["e4m3", "e5m2"])[1]
    got, _ = run_one(run, form, parts, (0, 0, 0, 0))
    assert got[2].tobytes() == plain[2].tobytes()
    assert np.isnan(got).any()
