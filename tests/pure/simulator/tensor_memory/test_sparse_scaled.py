"""Block-scaled products of a sparse A: metadata in tensor memory, factors for twice as many elements.

Elements are small and factors powers of two, so that every product and sum is exact however it is grouped.
"""

from __future__ import annotations

import runpy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcgen05_program import A_AT, B_AT, BYTES, laid_out, module, wait
from warpsmith.assembly.ptx import parse
from warpsmith.base.errors import CapabilityError
from warpsmith.simulator.api import simulate

HERE = Path(__file__).parent
BLOCK, DENSE, PAIRS = (runpy.run_path(str(HERE / f"test_{name}.py")) for name in ("block_scaling", "products", "pairs"))
SA_AT, SB_AT, E_AT, A_WORDS_AT = 65536, 73728, 81920, 83968
SA, SB, E, A_WORDS = 256, 288, 320, 340
"""Columns of the factors, of the metadata, and of an A in tensor memory."""
NARROW = {
    "e4m3": (ml_dtypes.float8_e4m3fn, 8, 0), "e5m2": (ml_dtypes.float8_e5m2, 8, 1), "e2m3": (ml_dtypes.float6_e2m3fn, 6, 3),
    "e3m2": (ml_dtypes.float6_e3m2fn, 6, 4), "e2m1": (ml_dtypes.float4_e2m1fn, 4, 5),
}  # fmt: skip
"""Element type of .kind::mxf8f6f4 -> dtype, bits, number in the instruction descriptor."""
CODES = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110)


@dataclass
class Case:
    """A problem of `m` rows and `n` columns; factors `[rows, count]` are exponents of ue8m0."""

    form: str
    types: tuple[str, str] = ("e2m1", "e2m1")
    count: int = 1
    ids: tuple[int, int] = (0, 0)
    m: int = 128
    n: int = 16
    ue4m3: bool = False
    seed: int = 1
    codes: np.ndarray = field(init=False)
    """The code of each chunk `[m, 16]`."""

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.packed = "mxf4" in self.form
        self.k = 128 if self.packed else 64
        self.stored, self.b = (self.elements(rng, t, s) for t, s in zip(self.types, self.shapes(), strict=True))
        self.codes = rng.choice(CODES, (self.m, 16)).astype(np.uint64)
        low, high = (6, 9) if self.ue4m3 else (125, 130)
        self.sa, self.sb = (rng.integers(low, high, (rows, self.count)).astype(np.uint8) for rows in (self.m, self.n))
        if self.ue4m3:  # exponent in bits 6:3
            self.sa, self.sb = self.sa << 3, self.sb << 3

    def shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return (self.m, self.k // 2), (self.n, self.k)

    @staticmethod
    def elements(rng: np.random.Generator, type_: str, shape: tuple[int, int]) -> np.ndarray:
        values = rng.choice([-3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3], shape)
        return values.astype(NARROW[type_][0])

    def factors(self, codes: np.ndarray, each: int) -> np.ndarray:
        bias, shift = (7, 3) if self.ue4m3 else (127, 0)
        return np.repeat(2.0 ** ((codes >> shift).astype(float) - bias), each, axis=1)

    def want(self) -> np.ndarray:
        """D in float64: A with its zeros, times its factors, times B."""
        wide = 2 if self.packed else 1
        full = np.zeros((self.m, self.k))
        for r in range(self.m):
            for chunk in range(16):
                low, high = int(self.codes[r, chunk]) & 3, int(self.codes[r, chunk]) >> 2
                for j, index in enumerate((low, high)):
                    for w in range(wide):
                        full[r, wide * (4 * chunk + index) + w] = self.stored[r, wide * (2 * chunk + j) + w]
        each = self.k // self.count
        return (full * self.factors(self.sa, each)) @ (self.b.astype(float) * self.factors(self.sb, each)).T

    def bytes_of(self, matrix: np.ndarray, type_: str) -> np.ndarray:
        """Rows as they stand in shared memory."""
        bits = matrix.view(np.uint8)
        if self.packed:
            return (bits[:, ::2] & 15) | bits[:, 1::2] << 4
        width = NARROW[type_][1]
        if width == 8:
            return bits
        out = np.zeros_like(bits)
        for row, some in enumerate(bits):
            for at in range(0, len(some), 16):
                word = sum(int(c) << width * j for j, c in enumerate(some[at : at + 16]))
                out[row, at : at + 16] = np.frombuffer(word.to_bytes(16, "little"), np.uint8)
        return out

    def instruction(self) -> int:
        numbers = (1, 1) if self.packed else tuple(NARROW[t][2] for t in self.types)
        bits = BLOCK["instruction"]("", self.n, *numbers, factor=int(not self.ue4m3), ids=self.ids, m=self.m)
        return bits | 1 << 2

    def metadata(self) -> np.ndarray:
        """Words `[2, m]`: 64 bits a row, the first chunk lowest."""
        bits = (self.codes << 4 * np.arange(16, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        return np.ascontiguousarray(bits.view(np.uint32).reshape(-1, 2).T)


def image_of(case: Case, rank: int, image: np.ndarray) -> tuple[int, int]:
    """Fill the shared memory of one CTA; return the descriptors of A and B."""
    ctas = case.m // 128
    rows, columns = slice(128 * rank, 128 * rank + 128), case.n // ctas
    a = case.bytes_of(case.stored, case.types[0])[rows]
    b = case.bytes_of(case.b, case.types[1])[columns * rank : columns * (rank + 1)]
    image[E_AT : E_AT + 1024] = np.ascontiguousarray(case.metadata()[:, rows]).view(np.uint8).reshape(-1)
    in_tensor_memory = a if case.packed else case.stored.view(np.uint8)[rows] << (2 if case.types[0] == "e2m1" else 0)
    words = np.ascontiguousarray(np.ascontiguousarray(in_tensor_memory).view(np.uint32).T)
    image[A_WORDS_AT : A_WORDS_AT + 4096] = words.view(np.uint8).reshape(-1)
    for factors, id_, at in ((case.sa[rows], case.ids[0], SA_AT), (case.sb, case.ids[1], SB_AT)):
        whole = np.zeros((32, 4), np.uint32)
        some = BLOCK["factor_words"](factors, id_)
        whole[:, : some.shape[1]] = some
        laid_out(whole.view(np.uint8), at, "none", False, image)
    return laid_out(a, A_AT, "128B", False, image), laid_out(b, B_AT, "128B", False, image)


def middle_of(case: Case, da: int, db: int, *, a_words: bool, e: int = E, enable: int = 0) -> str:
    """Copy factors and metadata (and A) to tensor memory, multiply, and store D."""
    group = case.m // 128
    scratch = np.zeros(BYTES, np.uint8)
    copies = ""
    for column, at in ((SA, SA_AT), (SB, SB_AT)):
        d = laid_out(np.zeros((32, 16), np.uint8), at, "none", False, scratch)
        copies += f" mov.b64 %rd12, {d}; add.u32 %r232, %tmem, {column};\n"
        copies += f" tcgen05.cp.cta_group::{group}.32x128b.warpx4 [%r232], %rd12;\n"
    text = DENSE["loaded"](2, E_AT, E) + (DENSE["loaded"](8, A_WORDS_AT, A_WORDS) if a_words else "")
    commit = (
        PAIRS["COMMIT"] if group == 2 else " tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n"
    )
    alone = " .reg .b16 %h<4>;\n setp.ne.u32 %p3, %r300, 0;\n @%p3 bra ISSUED;\n" if group == 2 else ""
    a = "[%r234]" if a_words else "%rd10"
    meet = PAIRS["MEET"] + " tcgen05.fence::after_thread_sync;\n" if group == 2 else ""
    text += f"""{meet}{alone} @!%first bra ISSUED;
{copies} add.u32 %r230, %tmem, {SA}; add.u32 %r231, %tmem, {SB}; add.u32 %r233, %tmem, {e}; add.u32 %r234, %tmem, {A_WORDS};
 mov.b64 %rd10, {da}; mov.b64 %rd11, {db}; mov.b32 %r200, {case.instruction()}; setp.ne.u32 %p2, {enable}, 0;
 tcgen05.mma.sp.cta_group::{group}.{case.form} [%tmem], {a}, %rd11, [%r233], %r200, [%r230], [%r231], %p2;
{commit}ISSUED:
{wait()} tcgen05.fence::after_thread_sync;
"""
    registers = ", ".join(f"%r{j}" for j in range(case.n))
    text += f" tcgen05.ld.sync.aligned.32x32b.x{case.n}.b32 {{{registers}}}, [%mine];\n tcgen05.wait::ld.sync.aligned;\n"
    return text + "".join(f" st.global.b32 [%out+{512 * group * j}], %r{j};\n" for j in range(case.n))


def launch(case: Case, *, a_words: bool = False, e: int = E, **options: Any) -> tuple[Any, np.ndarray]:
    group = case.m // 128
    images = np.zeros((group, BYTES), np.uint8)
    da, db = [image_of(case, rank, images[rank]) for rank in range(group)][-1]
    meet = PAIRS["MEET"] if group == 2 else ""
    text = module(middle_of(case, da, db, a_words=a_words, e=e), group=group, head=meet, tail=meet)
    out = np.zeros((case.n, group, 128), np.float32)
    shape = {"grid": (group, 1, 1), "cluster": (group, 1, 1), "block": (128, 1, 1)}
    r = simulate(parse(text), kernel="k", args=[out, images.reshape(-1)], **shape, **options)
    return r, out.transpose(1, 2, 0).reshape(case.m, case.n)


FORMS = [
    Case("kind::mxf8f6f4.block_scale", ("e4m3", "e5m2"), ids=(2, 1)),
    Case("kind::mxf8f6f4.block_scale.scale_vec::1X", ("e2m1", "e4m3"), ids=(3, 3)),
    Case("kind::mxf8f6f4.block_scale.block32", ("e3m2", "e2m3")),
    Case("kind::mxf4.block_scale", count=2, ids=(0, 2)),
    Case("kind::mxf4nvf4.block_scale.scale_vec::2X", count=2, ids=(2, 0)),
    Case("kind::mxf4nvf4.block_scale.scale_vec::4X", count=4, ue4m3=True),
    Case("kind::mxf4nvf4.block_scale.block16", count=4),
]


@pytest.mark.parametrize("case", FORMS, ids=lambda c: c.form[6:])
def test_each_kind(case: Case) -> None:
    r, got = launch(case)
    assert r.completed
    assert not r.findings, str(r)
    assert np.array_equal(got, case.want())
    terms = "sums of 16 stored products" if case.packed else "stored products"
    assert f"the model of dense products over the stored elements, {terms} as its terms" in str(r.fidelity)
    assert "metadata of sparse" not in str(r.fidelity)


@pytest.mark.parametrize("case", [FORMS[0], FORMS[1], FORMS[5]], ids=lambda c: c.form[6:])
def test_a_in_tensor_memory(case: Case) -> None:
    """An e2m1 of mxf8f6f4 stands in bits 5:2 of its byte there (9.7.18.10.4.3)."""
    r, got = launch(case, a_words=True)
    assert not r.findings, str(r)
    assert np.array_equal(got, case.want())


@pytest.mark.parametrize("options", [{}, {"schedule": "adversarial"}])
@pytest.mark.parametrize(("form", "types", "count"), [
    ("kind::mxf8f6f4.block_scale", ("e5m2", "e4m3"), 1), ("kind::mxf4nvf4.block_scale.scale_vec::4X", ("e2m1", "e2m1"), 4),
])  # fmt: skip
def test_pairs(form: str, types: tuple[str, str], count: int, options: dict[str, Any]) -> None:
    """Each CTA has 128 rows of A, their metadata and factors, and the factors of all columns."""
    case = Case(form, types, count, m=256, n=32)
    r, got = launch(case, **options)
    assert r.completed
    assert not r.findings, str(r)
    assert np.array_equal(got, case.want())


@pytest.mark.parametrize("case", [FORMS[0], FORMS[5]], ids=lambda c: c.form[6:])
@pytest.mark.parametrize("chunk", [0, 7, 8, 15])
def test_where_a_code_stands(case: Case, chunk: int) -> None:
    """Another code of one chunk in one row changes that row alone, as it would change A."""
    other = Case(case.form, case.types, case.count, case.ids, ue4m3=case.ue4m3)
    other.stored[37, 2 * chunk * (2 if case.packed else 1)] = 2
    other.b[5] = 1
    other.b[5, 4 * chunk * (2 if case.packed else 1)] = 3
    other.codes[37, chunk] = 0b0100
    first = other.want()
    other.codes[37, chunk] = 0b1001
    r, got = launch(other)
    assert not r.findings, str(r)
    assert np.array_equal(got, other.want())
    assert got[37, 5] != first[37, 5]


def test_codes_without_meaning_are_told() -> None:
    case = Case("kind::mxf4.block_scale", count=2)
    case.codes[3, 3] = 0b1111
    case.stored[3, 12:16] = 0
    r, got = launch(case)
    assert np.array_equal(got, case.want())
    assert "metadata that the manual calls undefined were used" in str(r.fidelity)


@pytest.mark.parametrize(("e", "where"), [(E + 1, f"lane 0 and column {E + 1}"), (E + (16 << 16), f"lane 16 and column {E}")])
def test_metadata_begin_at_lane_0_and_an_even_column(e: int, where: str) -> None:
    with pytest.raises(CapabilityError) as caught:
        launch(FORMS[3], e=e)
    assert str(caught.value).partition("simulator: ")[2] == (
        f"sparsity metadata of .kind::mxf4 with .cta_group::1 at {where} of tensor memory are not modelled: published layouts "
        "begin at lane 0 and an even column; put them there"
    )
