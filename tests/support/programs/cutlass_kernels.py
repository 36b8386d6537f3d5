"""tests/data/cutlass/gemm.cu: GEMMs of CUTLASS 3 for Hopper and Blackwell, D = A Bᵀ + C, launched as CUTLASS does.

Their parameters are structures with pointers and tensor maps inside, taken down when they were compiled. What is found in
them is in CUTLASS or nvcc (docs/design/programs.md).
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from programs.program import Collection, Judge, Launch
from ptx_corpus import DATA, sample
from warpsmith.simulator.tensormap import TensorMap

_HERE = DATA.parent / "cutlass"
_FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
_F16, _BF16, _E4M3, _E5M2 = np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
_UE8M0 = ml_dtypes.float8_e8m0fnu
_PLAIN = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_TENSOR_MEMORY = ("missing-tcgen05-fence", "missing-tcgen05-wait")
_PAIR = (*_TENSOR_MEMORY, "uninitialised-barrier")
program = Collection("cutlass", "", ("sm_90a",))
PROGRAMS = program.programs


@cache
def _launches() -> dict[str, Any]:
    return json.loads((_HERE / "launches.json").read_text())


def _places(name: str) -> np.ndarray:
    return np.load(_HERE / "layouts.npz")[name].cumsum(axis=0).cumsum(axis=1)


def _launch(name: str, arch: str, arrays: dict[str, np.ndarray]) -> Launch:
    """Put arrays into the parameters of a launch."""
    how = _launches()[name]
    pieces: list[Any] = []
    for kind, piece in how["params"]:
        pieces.append(bytes.fromhex(piece) if kind == "bytes" else arrays[piece] if kind == "pointer" else _map(piece, arrays))
    kernel = next(f.name for f in sample(f"cutlass/{name}.{arch}").functions() if f.kind == "entry")
    return Launch([tuple(pieces)], kernel, tuple(how["grid"]), tuple(how["block"]), tuple(how["cluster"]), how["shared"])


def _map(fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> TensorMap:
    memory, element = arrays[fields["array"]], fields["element"]
    size = 8 if element == "u64" else memory.itemsize
    view = memory.reshape(-1).view(_PLAIN[size])
    dims = list(fields["dims"])
    if element.startswith("b4"):
        dims[0] //= 2
    shaped = np.lib.stride_tricks.as_strided(view, dims[::-1], [*fields["strides"][::-1], size])
    options = {k: tuple(fields[k][::-1]) for k in ("box", "element_strides")}
    return TensorMap(shaped, element=element, swizzle=fields["swizzle"], l2=fields["l2"], memory=view, **options)


def _outputs(rng: np.random.Generator, m: int, n: int, dtype: Any, *, columns: bool) -> tuple[np.ndarray, np.ndarray, Any, Any]:
    """Return the memory of C and of D, the values of C, and a function that reads those of D."""
    c = rng.standard_normal((m, n)).astype(dtype)
    bits = _PLAIN[np.dtype(dtype).itemsize]
    held = np.ascontiguousarray(c.T if columns else c).view(bits)
    d = np.zeros_like(held)
    return held, d, c.astype(float), lambda: (d.view(dtype).T if columns else d.view(dtype)).astype(float)


def _close(got: np.ndarray, want: np.ndarray, dtype: Any, k: int) -> None:
    """Compare but for the rounding of the result and what sums of k products lose."""
    rounding = 2.0**-24 if dtype == np.float32 else float(ml_dtypes.finfo(dtype).eps) / 2
    allowed = rounding * np.abs(want) + k * 2.0**-20 * np.abs(want).max()
    assert (np.abs(got - want) <= allowed).all(), float(np.abs(got - want).max())


def _dense(
    rng: np.random.Generator, name: str, arch: str, problem: tuple[int, int, int], types: Any, *, columns: bool
) -> Judge:
    (m, n, k), (ta, tb, tc) = problem, types
    a, b = rng.standard_normal((m, k)).astype(ta), rng.standard_normal((n, k)).astype(tb)
    c, d, added, result = _outputs(rng, m, n, tc, columns=columns)
    yield _launch(name, arch, {"a": a.view(_PLAIN[a.itemsize]), "b": b.view(_PLAIN[b.itemsize]), "c": c, "d": d})
    _close(result(), a.astype(float) @ b.astype(float).T + added, tc, k)


def _placed(rng: np.random.Generator, name: str, stored: np.ndarray, wide: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose the column of each stored element of A `[m, k / 2]`: of every four (runs of `wide` elements), two.

    Return the columns, and the elements and their metadata in the order that CUTLASS has for them.
    """
    m, chunk = len(stored), 4 * wide
    k = 2 * stored.shape[1]
    kept = np.sort(np.argsort(rng.random((m, k // chunk, 4)), axis=-1)[..., :2], axis=-1)
    codes = (kept[..., 0] | kept[..., 1] << 2).astype(np.uint8)
    columns = (kept[..., None] * wide + np.arange(wide)).reshape(m, k // chunk, -1) + chunk * np.arange(k // chunk)[:, None]
    where_a = (_places(f"{name}_a")[:, ::chunk, None] // 2 + np.arange(chunk // 2)).reshape(m, -1)
    where_e = _places(f"{name}_e")[:, ::chunk] // chunk
    a, e = np.zeros(stored.size, stored.dtype), np.zeros(-(-(int(where_e.max()) // 2 + 1) // 8) * 8, np.uint8)
    a[where_a] = stored
    np.bitwise_or.at(e, where_e // 2, codes << (where_e % 2 * 4).astype(np.uint8))
    return columns.reshape(m, -1), a, e


def _sparse(rng: np.random.Generator, name: str, arch: str, problem: tuple[int, int, int]) -> Judge:
    """Two of four elements of A, in the order that CUTLASS has for them and their metadata."""
    m, n, k = problem
    stored, b = rng.standard_normal((m, k // 2)).astype(_F16), rng.standard_normal((n, k)).astype(_F16)
    columns, a, e = _placed(rng, name, stored, 1)
    whole = np.zeros((m, k))
    np.put_along_axis(whole, columns, stored.astype(float), -1)
    c, d, added, result = _outputs(rng, m, n, np.float32, columns=True)
    yield _launch(name, arch, {"a": a.view(np.uint16), "b": b.view(np.uint16), "c": c, "d": d, "e": e})
    _close(result(), whole @ b.astype(float).T + added, np.float32, k)


def _scaled(rng: np.random.Generator, name: str, arch: str, problem: tuple[int, int, int]) -> Judge:
    """Elements of four bits, two to a byte, and a factor of type e4m3 for every sixteen along K."""
    m, n, k = problem
    arrays: dict[str, np.ndarray] = {}
    operands: list[np.ndarray] = []
    for matrix, factors, rows in (("a", "f", m), ("b", "g", n)):
        codes = rng.integers(0, 16, (rows, k)).astype(np.uint8)
        places = _places(f"{name}_{factors}")
        scale = (rng.random(int(places.max()) + 1) * 2 + 0.25).astype(_E4M3)
        arrays[matrix] = codes[:, ::2] | codes[:, 1::2] << 4
        arrays[factors] = np.zeros(-(-scale.size // 512) * 512, np.uint8)
        arrays[factors][: scale.size] = scale.view(np.uint8)
        operands.append(_FP4[codes] * scale.astype(float)[places])
    c, d, added, result = _outputs(rng, m, n, _BF16, columns=False)
    yield _launch(name, arch, {**arrays, "c": c, "d": d})
    _close(result(), operands[0] @ operands[1].T + added, _BF16, k)


def _sparse_scaled(
    rng: np.random.Generator, name: str, arch: str, problem: tuple[int, int, int], kind: tuple[int, int, Any]
) -> Judge:  # fmt: skip
    """Two of four elements of A (4-bit floats: pairs), and a factor for so many along K; `kind` is bits, that, and its type.

    Elements and factors are such that all sums are exact, however they are grouped.
    """
    (m, n, k), (bits, each, factor) = problem, kind
    table = _FP4 if bits == 4 else np.arange(256, dtype=np.uint8).view(_E4M3).astype(float)
    usable = np.flatnonzero(np.isfinite(table) & (np.abs(table) <= 6) & (table * 2 == np.round(table * 2)))
    stored, b = rng.choice(usable, (m, k // 2)).astype(np.uint8), rng.choice(usable, (n, k)).astype(np.uint8)
    columns, a, e = _placed(rng, name, stored, 2 if bits == 4 else 1)
    whole = np.zeros((m, k))
    np.put_along_axis(whole, columns, table[stored], -1)
    arrays = {"a": a, "b": b, "e": e}
    if bits == 4:
        arrays["a"], arrays["b"] = a[::2] | a[1::2] << 4, b[:, ::2] | b[:, 1::2] << 4
    operands = [whole, table[b]]
    for which, factors in enumerate("fg"):
        places = _places(f"{name}_{factors}")
        assert (places[:, ::each].repeat(each, axis=1) == places).all()
        scale = 2.0 ** rng.integers(-1, 2, int(places.max()) + 1)
        arrays[factors] = np.zeros(-(-scale.size // 512) * 512, np.uint8)
        arrays[factors][: scale.size] = scale.astype(factor).view(np.uint8)
        operands[which] = operands[which] * scale[places]
    c, d, added, result = _outputs(rng, m, n, _BF16, columns=False)
    c[:] = np.round(added * 2).astype(_BF16).view(np.uint16)
    yield _launch(name, arch, {**arrays, "c": c, "d": d})
    want = (operands[0] @ operands[1].T + np.round(added * 2)).astype(_BF16).astype(float)
    assert np.array_equal(result(), want), int((result() != want).sum())


@program("cooperative", source="cooperative", slow=True)
def cooperative(rng: np.random.Generator) -> Judge:
    """A producer and two consumer warpgroups, pairs of CTAs that share tiles by multicast"""
    yield from _dense(rng, "cooperative", "sm_90a", (256, 128, 192), (_F16, _F16, _F16), columns=False)


@program("pingpong", source="pingpong", slow=True)
def pingpong(rng: np.random.Generator) -> Judge:
    """Two consumer warpgroups in turns; e4m3 times e5m2"""
    yield from _dense(rng, "pingpong", "sm_90a", (128, 256, 256), (_E4M3, _E5M2, _BF16), columns=False)


@program("sparse", source="sparse", slow=True)
def sparse(rng: np.random.Generator) -> Judge:
    """wgmma.sp: two of four elements of A, metadata by tensor copies"""
    yield from _sparse(rng, "sparse", "sm_90a", (128, 256, 256))


@program("pair", source="pair", archs=("sm_100a",), remarks=_PAIR, slow=True)
def pair(rng: np.random.Generator) -> Judge:
    """Pairs of CTAs (cta_group::2), multicast to both, tiles by cluster launch control"""
    yield from _dense(rng, "pair", "sm_100a", (512, 256, 192), (_F16, _F16, np.float32), columns=True)


@program("sparse_pair", source="sparse_pair", archs=("sm_100a",), remarks=_PAIR, slow=True)
def sparse_pair(rng: np.random.Generator) -> Judge:
    """tcgen05.mma.sp of pairs, with both sparsity selectors"""
    yield from _sparse(rng, "sparse_pair", "sm_100a", (256, 128, 256))


@program("nvfp4", source="nvfp4", archs=("sm_100a",), remarks=_PAIR, slow=True)
def nvfp4(rng: np.random.Generator) -> Judge:
    """Block-scaled products of elements of four bits, scale factors by tcgen05.cp"""
    yield from _scaled(rng, "nvfp4", "sm_100a", (256, 128, 512))


@program("ultra", source="ultra", archs=("sm_103a",), remarks=_TENSOR_MEMORY, slow=True)
def ultra(rng: np.random.Generator) -> Judge:
    """Products of depth 96 (sm_103), whose rows go on in the next buffer"""
    yield from _scaled(rng, "ultra", "sm_103a", (128, 128, 1536))


@program("geforce", source="geforce", archs=("sm_120a",), slow=True)
def geforce(rng: np.random.Generator) -> Judge:
    """Block-scaled mma.sync of elements of four bits"""
    yield from _scaled(rng, "geforce", "sm_120a", (128, 128, 256))


@program("sparse_nvfp4", source="sparse_nvfp4", archs=("sm_100a",), remarks=_PAIR, slow=True)
def sparse_nvfp4(rng: np.random.Generator) -> Judge:
    """Sparse block-scaled products of pairs of CTAs: pairs of four-bit elements, a factor of type e4m3 for 32 of them"""
    yield from _sparse_scaled(rng, "sparse_nvfp4", "sm_100a", (256, 128, 512), (4, 32, _E4M3))


@program("sparse_mxf4", source="sparse_mxf4", archs=("sm_100a",), remarks=_TENSOR_MEMORY, slow=True)
def sparse_mxf4(rng: np.random.Generator) -> Judge:
    """Sparse block-scaled products of pairs of four-bit elements, a factor of type ue8m0 for 64 of them"""
    yield from _sparse_scaled(rng, "sparse_mxf4", "sm_100a", (128, 128, 512), (4, 64, _UE8M0))


@program("sparse_mxfp8", source="sparse_mxfp8", archs=("sm_100a",), remarks=_TENSOR_MEMORY, slow=True)
def sparse_mxfp8(rng: np.random.Generator) -> Judge:
    """Sparse block-scaled products of e4m3, a factor of type ue8m0 for 64 of them"""
    yield from _sparse_scaled(rng, "sparse_mxfp8", "sm_100a", (128, 128, 512), (8, 64, _UE8M0))


@program("sparse_geforce", source="sparse_geforce", archs=("sm_120a",), slow=True)
def sparse_geforce(rng: np.random.Generator) -> Judge:
    """mma.sp with block scaling: pairs of four-bit elements"""
    yield from _sparse_scaled(rng, "sparse_geforce", "sm_120a", (128, 128, 512), (4, 32, _E4M3))
