"""Block-scaled mma.sync against elements and factors decoded one by one in plain Python.

Registers are filled by the manual's formulas, lane for lane, and sums are made of fractions by the published model.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from warpsmith.base.errors import CapabilityError, PtxError

FORMATS = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15), "e3m2": (3, 2, 3), "e2m3": (2, 3, 1), "e2m1": (2, 1, 1), "ue4m3": (4, 3, 7)}
SMALLEST = {"e4m3": -6, "e5m2": -14, "e3m2": -2, "e2m3": 0, "e2m1": 0, "ue4m3": -6, "ue8m0": -127}
BYTES = "m16n8k32.row.col.kind::mxf8f6f4.block_scale"
PAIRS = ("e4m3.e5m2", "e5m2.e3m2", "e3m2.e2m3", "e2m3.e2m1", "e2m1.e4m3")
FORMS = [
    *(f"{BYTES}.scale_vec::1X.f32.{pair}.f32.ue8m0" for pair in PAIRS),
    f"{BYTES}.f32.e4m3.e2m1.f32.ue8m0",
    "m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
    "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
    "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
    "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0",
    "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
]
COUNT = {"1X": 1, "2X": 2, "4X": 4}


def decode(code: int, type_: str) -> Fraction:
    """A finite element, from its bits."""
    if type_ == "ue8m0":
        return Fraction(2) ** (code - 127)
    e_bits, m_bits, bias = FORMATS[type_]
    e, m = code >> m_bits & (1 << e_bits) - 1, code & (1 << m_bits) - 1
    size = Fraction(m + ((e > 0) << m_bits), 1 << m_bits) * Fraction(2) ** (max(e, 1) - bias)
    return -size if code >> e_bits + m_bits & 1 and type_ != "ue4m3" else size


def exponent(x: Fraction, smallest: int) -> int:
    if x == 0:
        return smallest
    e = abs(x.numerator).bit_length() - x.denominator.bit_length()
    return max(e if abs(x) >= Fraction(2) ** e else e - 1, smallest)


def fused(terms: list[tuple[Fraction, int]], fraction: int) -> float:
    unit = Fraction(2) ** (max(e for _, e in terms) - fraction)
    total = sum((math.trunc(v / unit) for v, _ in terms), 0) * unit
    last = Fraction(2) ** (exponent(total, -126) - 23)
    return float(math.trunc(total / last) * last)


def expected(form: str, a: Any, b: Any, c: np.ndarray, sa: Any, sb: Any) -> np.ndarray:
    """D by the model: 32 products with 25 bits, or four sums of 16 products with 35 bits."""
    *_, at, bt, _, st = form.split(".")
    count, depth = len(sa[0]), len(a[0])
    out = np.zeros((16, 8), np.float32)
    for i in range(16):
        for j in range(8):
            zero, fraction = (-133, 25) if depth == 32 else (-139, 35)
            added = Fraction(float(c[i, j]))
            terms = [(added, exponent(added, -126) if added else zero)]
            products = [decode(int(a[i][k]), at) * decode(int(b[k][j]), bt) for k in range(depth)]
            for k in range(0, depth, 1 if depth == 32 else 16):
                x, y = (decode(int(s), st) for s in (sa[i][k * count // depth], sb[j][k * count // depth]))
                e = exponent(x, SMALLEST[st]) + exponent(y, SMALLEST[st])
                some = products[k : k + (1 if depth == 32 else 16)]
                if depth == 32:
                    e += exponent(decode(int(a[i][k]), at), SMALLEST[at]) + exponent(decode(int(b[k][j]), bt), SMALLEST[bt])
                nothing = not any(some) or x * y == 0
                terms.append((sum(some) * x * y, zero if nothing else e))
            out[i, j] = fused(terms, fraction)
    return out


def codes(rng: np.random.Generator, shape: tuple[int, int], type_: str) -> np.ndarray:
    """Bits of finite elements."""
    e_bits, m_bits, _ = FORMATS[type_]
    found = rng.integers(0, 1 << 1 + e_bits + m_bits, shape)
    found[(found & 0x7F) >= (0x7C if type_ == "e5m2" else 0x7F)] = 0
    return found


def registers(element: Any, count: int, width: int, shift: int) -> np.ndarray:
    """Registers `[count, 32]` of elements `element(lane, i)`, `width` bits each, from the low bits up."""
    per = 32 // width
    held = np.zeros((count, 32), np.uint32)
    for lane in range(32):
        for i in range(count * per):
            held[i // per, lane] |= np.uint32(int(element(lane, i)) << shift << width * (i % per))
    return held


def operands(a: np.ndarray, b: np.ndarray, c: np.ndarray, types: tuple[str, str]) -> list[np.ndarray]:
    """Registers of A, B and C by the formulas of 9.7.14.5: m16n8k32 with bytes, m16n8k64 with four bits."""
    width = 8 if a.shape[1] == 32 else 4
    per = 32 // width

    def of_a(lane: int, i: int) -> int:
        return a[lane // 4 + 8 * (i // per % 2), lane % 4 * per + i % per + 4 * per * (i // (2 * per))]

    def of_b(lane: int, i: int) -> int:
        return b[lane % 4 * per + i % per + 4 * per * (i // per), lane // 4]

    shifts = [2 if width == 8 and t == "e2m1" else 0 for t in types]
    third = np.array([[c[lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2] for lane in range(32)] for i in range(4)], np.float32)
    return [registers(of_a, 4, width, shifts[0]), registers(of_b, 2, width, shifts[1]), third.view(np.uint32)]


def scales(rng: np.random.Generator, factors: np.ndarray, byte: int, thread: int, *, b: bool) -> np.ndarray:
    """A register `[1, 32]` with the factors where the selector says, and noise elsewhere."""
    held = rng.integers(0, 256, (32, 4)).astype(np.uint8)
    for row, some in enumerate(factors):
        lane = 4 * row + thread if b else 4 * (row % 8) + 2 * thread + row // 8
        held[lane, byte : byte + len(some)] = some
    return held.view(np.uint32).T.copy()


def run_one(run: Any, form: str, parts: list[np.ndarray], ids: tuple[Any, Any, Any, Any], **options: Any) -> Any:
    """Load the registers of A, B, C and the factors, multiply, and return D and the result of the run."""
    lines = ["mul.wide.u32 %rd1, %t, 4; ld.param.u64 %rd2, [in]; add.u64 %rd2, %rd2, %rd1; add.u64 %out, %out, %rd1;"]
    lines.append("cvt.u16.u32 %h0, %t; mov.b16 %h1, 1; mov.b16 %h2, 2; mov.b16 %h4, 4;")
    lines += [f"ld.global.b32 %r{i}, [%rd2+{128 * i}];" for i in range(12)]
    a, b, c, d = ("{" + ", ".join(f"%r{i}" for i in r) + "}" for r in (range(4), (4, 5), range(6, 10), range(20, 24)))
    lines.append(f"mma.sync.aligned.{form} {d}, {a}, {b}, {c}, %r10, {{{ids[0]}, {ids[1]}}}, %r11, {{{ids[2]}, {ids[3]}}};")
    lines += [f"st.global.b32 [%out+{128 * i}], %r{20 + i};" for i in range(4)]
    out = np.zeros((4, 32), np.uint32)
    names = ".param .u64 out, .param .u64 in"
    version = "9.1" if "4X" in form else "8.7"
    result = run("\n ".join(lines), out, np.concatenate(parts), parameters=names, target="sm_120a", version=version, **options)
    got = np.zeros((16, 8), np.float32)
    for lane in range(32):
        for i in range(4):
            got[lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2] = out[i, lane : lane + 1].view(np.float32)[0]
    return got, result


def problem(form: str, seed: int, ids: tuple[int, int, int, int]) -> tuple[list[np.ndarray], tuple[Any, ...]]:
    """Registers and matrices of a random product."""
    rng = np.random.default_rng(seed)
    *_, at, bt, _, st = form.split(".")
    depth = 64 if "k64" in form else 32
    count = next((n for x, n in COUNT.items() if x in form), depth // 32)
    a, b = codes(rng, (16, depth), at), codes(rng, (depth, 8), bt)
    a[3], b[:, 5] = 0, 0
    c = (rng.standard_normal((16, 8)) * 2.0 ** rng.integers(-20, 12, (16, 8))).astype(np.float32)
    c[2:5] = 0
    low, high = (119, 136) if st == "ue8m0" else (0, 127)
    sa, sb = (rng.integers(low, high, (n, count)).astype(np.uint8) for n in (16, 8))
    held = [scales(rng, sa, ids[0], ids[1], b=False), scales(rng, sb, ids[2], ids[3], b=True)]
    return [*operands(a, b, c, (at, bt)), *held], (a, b, c, sa, sb)


def selectors(form: str) -> list[tuple[int, int, int, int]]:
    if "k32" in form:
        return [(3, 1, 2, 3), (1, 0, 3, 1)]
    return [(0, 0, 0, 0), (0, 1, 0, 2)] if "4X" in form else [(2, 1, 0, 3), (0, 0, 2, 1)]


@pytest.mark.parametrize("form", FORMS)
def test_products_are_those_of_the_model_bit_for_bit(run: Any, form: str) -> None:
    for seed, ids in enumerate(selectors(form)):
        parts, matrices = problem(form, seed, ids)
        got, result = run_one(run, form, parts, ids, numerics="exact")
        assert [str(f) for f in result.findings] == []
        assert got.tobytes() == expected(form, *matrices).tobytes()
        assert "published model" in str(result.fidelity)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_products_are_near_float64(run: Any, form: str, numerics: str) -> None:
    ids = selectors(form)[-1]
    parts, (a, b, c, sa, sb) = problem(form, 7, ids)
    *_, at, bt, _, st = form.split(".")

    def decoded(x: np.ndarray, t: str) -> np.ndarray:
        return np.array([[float(decode(int(v), t)) for v in row] for row in x])

    each = a.shape[1] // sa.shape[1]
    left = decoded(a, at) * np.repeat(decoded(sa, st), each, axis=1)
    right = decoded(b, bt) * np.repeat(decoded(sb, st), each, axis=1).T
    got, _ = run_one(run, form, parts, ids, numerics=numerics)
    room = np.abs(left) @ np.abs(right) + np.abs(c)
    assert (np.abs(got - (left @ right + c)) <= 4e-6 * room).all()


@pytest.mark.parametrize(("form", "nan"), [(FORMS[0], 255), (FORMS[-1], 0x7F), (FORMS[-1], 0xFF)])
def test_a_factor_that_is_no_number_spoils_its_row(run: Any, form: str, nan: int) -> None:
    parts, _ = problem(form, 2, (0, 0, 0, 0))
    held = parts[3].T.copy().view(np.uint8)
    held[4 * 6 + 1, 0] = nan  # row 14
    parts[3] = held.view(np.uint32).T.copy()
    got, _ = run_one(run, form, parts, (0, 0, 0, 0))
    assert (got[14].view(np.uint32) == 0x7FFFFFFF).all()
    assert np.isfinite(np.delete(got, 14, 0)).all()


def test_the_sign_bit_of_ue4m3_is_ignored(run: Any) -> None:
    parts, _ = problem(FORMS[-1], 4, (0, 0, 0, 0))
    plain, _ = run_one(run, FORMS[-1], parts, (0, 0, 0, 0))
    parts[3] = parts[3] ^ np.uint32(0x80808080)
    assert run_one(run, FORMS[-1], parts, (0, 0, 0, 0))[0].tobytes() == plain.tobytes()


def test_thirty_five_bits_are_kept_of_packed_sums_and_twenty_five_of_bytes(run: Any) -> None:
    """2^0 − 2^0 + 2^-30: lost below 25 bits, kept among 35."""
    for form, kept in ((FORMS[0].replace("e4m3.e5m2", "e5m2.e5m2"), 0.0), (FORMS[6], 2.0**-30)):
        packed = "k64" in form
        one, depth = (2, 64) if packed else (0x3C, 32)
        a, b = np.zeros((16, depth), int), np.zeros((depth, 8), int)
        sa, sb = np.full((16, depth // 32), 127, np.uint8), np.full((8, depth // 32), 127, np.uint8)
        c = np.full((16, 8), -1, np.float32)
        a[0, 0], b[0, 0] = one, one
        if packed:  # the second block is 2^-30 by its factors
            a[0, 32], b[32, 0], sa[0, 1] = one, one, 97
        else:
            a[0, 2], b[2, 0] = 4, 1  # 2^-14 · 2^-16
        rng = np.random.default_rng(0)
        types = ("e2m1", "e2m1") if packed else ("e5m2", "e5m2")
        parts = [*operands(a, b, c, types), scales(rng, sa, 0, 0, b=False), scales(rng, sb, 0, 0, b=True)]
        got, _ = run_one(run, form, parts, (0, 0, 0, 0), numerics="exact")
        assert got[0, 0] == kept


@pytest.mark.parametrize(
    ("form", "ids", "message"),
    [
        (FORMS[7], ("%h1", 0, 0, 0), r"byte-id-a 1 has no meaning for scale_vec::2X; use one of 0, 2"),
        (FORMS[-1], (0, 0, "%h2", 0), r"byte-id-b 2 has no meaning for scale_vec::4X; use one of 0"),
        (FORMS[0], (0, "%h2", 0, 0), r"thread-id-a 2 has no meaning for scale_A; use one of 0, 1"),
        (FORMS[0], (0, 0, 0, "%h4"), r"thread-id-b 4 has no meaning for scale_B; use one of 0, 1, 2, 3"),
        (FORMS[0], (0, 0, "%h0", "%h1"), r"byte-id-b or thread-id-b differs between lanes of a warp; use one value"),
    ],
)
def test_a_selector_without_meaning_is_refused(run: Any, form: str, ids: tuple[Any, ...], message: str) -> None:
    parts, _ = problem(form, 0, (0, 0, 0, 0))
    with pytest.raises(CapabilityError, match=message):
        run_one(run, form, parts, ids)


@pytest.mark.parametrize(
    ("form", "ids", "message"),
    [
        (FORMS[7], (1, 0, 0, 0), "1 is no byte that holds scale factors here"),
        (FORMS[-1], (0, 0, 2, 0), "2 is no byte that holds scale factors here"),
        (FORMS[0], (0, 2, 0, 0), "2 is no thread that holds scale factors here"),
        (FORMS[0], (0, 0, 0, 4), "4 is no thread that holds scale factors here"),
    ],
)
def test_a_constant_selector_without_meaning_is_refused_by_the_checker(
    run: Any, form: str, ids: tuple[int, ...], message: str
) -> None:
    parts, _ = problem(form, 0, (0, 0, 0, 0))
    with pytest.raises(PtxError) as refused:
        run_one(run, form, parts, ids)
    assert [p.message for p in refused.value.problems] == [message]


def test_a_selector_may_be_in_a_register(run: Any) -> None:
    parts, matrices = problem(FORMS[0], 9, (1, 1, 1, 1))
    got, _ = run_one(run, FORMS[0], parts, ("%h1", "%h1", "%h1", "%h1"), numerics="exact")
    assert got.tobytes() == expected(FORMS[0], *matrices).tobytes()
