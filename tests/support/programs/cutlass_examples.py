"""tests/data/cutlass/examples: attention of CUTLASS's examples 77 and 88, products of CuTe's tutorials, launched as they do.

Parameters are structures with pointers and tensor maps inside, taken down when they were compiled. What is found in the
kernels is in CUTLASS or nvcc (docs/design/programs.md).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from programs.captured import Arrays, launches
from programs.program import Collection, Judge

_F16, _BF16, _E4M3, _E5M2 = np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
_TENSOR_MEMORY = ("missing-tcgen05-fence", "missing-tcgen05-wait", "tmem-lifetime")
_ROLES = (*_TENSOR_MEMORY, "setmaxnreg-budget")
_TUTORIAL = ("missing-tcgen05-fence", "missing-tcgen05-wait", "uninitialised-barrier")
_LATENT = ("missing-tcgen05-fence", "missing-tcgen05-wait", "shared-race", "named-barrier", "leftover")
program = Collection("cutlass", "", ("sm_90a",))
PROGRAMS = program.programs
_faulty = Collection("cutlass", "", ("sm_100a",))
FAULTY = _faulty.programs
"""Whose results are right under some schedules only (tests/slow/simulator/test_cutlass_faults.py)."""


def _run(name: str, arrays: Arrays) -> Judge:
    """Yield the launches of an example one after the other."""
    yield from launches("cutlass/examples", name, arrays)


def _attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, *, causal: bool = False) -> tuple[Any, Any]:
    """Return O `[h, m, d]` and the logarithms of the sums `[h, m]` of Q `[h, m, e]`, K `[h, n, e]`, V `[h, n, d]`."""
    q, k, v = (x.astype(float) for x in (q, k, v))
    scores = np.einsum("hme,hne->hmn", q, k) * scale
    if causal:
        m, n = scores.shape[1:]
        scores = np.where(np.arange(n) > np.arange(m)[:, None], -np.inf, scores)
    most = scores.max(-1, keepdims=True)
    e = np.exp(scores - most)
    total = e.sum(-1, keepdims=True)
    return np.einsum("hmn,hnd->hmd", e / total, v), (most + np.log(total))[..., 0]


def _close(got: np.ndarray, want: np.ndarray, ulps: float, dtype: Any) -> None:
    """Compare to some units in the last place of the greatest value: probabilities are rounded to `dtype`, too."""
    allowed = ulps * float(ml_dtypes.finfo(dtype).eps) * np.abs(want).max()
    assert np.abs(got.astype(float) - want).max() <= allowed, float(np.abs(got.astype(float) - want).max())


def _hopper(
    rng: np.random.Generator, name: str, shape: tuple[int, int, int, int], dtype: Any, *, causal: bool, columns: bool = False,
    out: Any = None,
) -> Judge:  # fmt: skip
    heads, m, n, d = shape
    q, k, v = (rng.standard_normal((heads, rows, d)).astype(dtype) for rows in (m, n, n))
    o, sums = np.zeros((heads, m, d), out or dtype), np.zeros((heads, m), np.float32)
    held = np.ascontiguousarray(v.swapaxes(1, 2)) if columns else v
    yield from _run(name, {"q": q, "k": k, "v": held, "o": o, "sums": sums})
    want, logs = _attention(q, k, v, d**-0.5, causal=causal)
    _close(o, want, 2 if dtype != _E4M3 else 0.5, dtype)
    exact = 1e-5 if dtype != _E4M3 else 1e-4  # sums of products of fp8 are kept to 14 bits
    assert np.abs(sums - logs).max() < exact * np.abs(logs).max(), np.abs(sums - logs).max()


@program("attention_pingpong", source="attention_pingpong", slow=True)
def pingpong(rng: np.random.Generator) -> Judge:
    """Attention, causal: two consumer warpgroups in turns, persistent; a length that fills no tile"""
    yield from _hopper(rng, "attention_pingpong", (3, 200, 200, 64), _F16, causal=True)


@program("attention_cooperative", source="attention_cooperative", remarks=("async-overwrite",), slow=True)
def cooperative(rng: np.random.Generator) -> Judge:
    """Attention of bfloats, head dimension 128: two consumer warpgroups side by side; lengths that fill no tile"""
    yield from _hopper(rng, "attention_cooperative", (2, 200, 170, 128), _BF16, causal=False)


@program("attention_fp8", source="attention_fp8", remarks=("async-overwrite",), slow=True)
def fp8(rng: np.random.Generator) -> Judge:
    """Attention of e4m3, head dimension 128, tiles of 256 keys; V by columns"""
    yield from _hopper(rng, "attention_fp8", (1, 128, 512, 128), _E4M3, causal=False, columns=True)


def _gradients(rng: np.random.Generator, name: str, heads: int, groups: int, n: int, d: int, work: int) -> Judge:
    """Causal; `work`: floats of workspace for each row."""
    q, do = (rng.standard_normal((heads, n, d)).astype(_F16) for _ in range(2))
    k, v = (rng.standard_normal((groups, n, d)).astype(_F16) for _ in range(2))
    full = [np.repeat(x, heads // len(x), axis=0) for x in (q, k, v)]
    o, sums = (x.astype(t) for x, t in zip(_attention(*full, d**-0.5, causal=True), (_F16, np.float32), strict=True))
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    inputs = {"q": q, "k": k, "v": v, "o": o, "sums": sums, "do": do}
    yield from _run(name, {**inputs, "dq": dq, "dk": dk, "dv": dv, "work": np.zeros(heads * n * work, np.float32)})
    q, k, v, o, do = (x.astype(float) for x in (*full, o, do))
    scores = np.where(np.arange(n) > np.arange(n)[:, None], -np.inf, np.einsum("hmd,hnd->hmn", q, k) * d**-0.5)
    p = np.exp(scores - sums[..., None])
    ds = p * (np.einsum("hmd,hnd->hmn", do, v) - (o * do).sum(-1, keepdims=True)) * d**-0.5
    _close(dq, np.einsum("hmn,hnd->hmd", ds, k), 2, _F16)
    for got, want in ((dk, np.einsum("hmn,hmd->hnd", ds, q)), (dv, np.einsum("hmn,hmd->hnd", p, do))):
        _close(got, want.reshape(groups, -1, n, d).sum(1), 2, _F16)


@program("attention_gradients", source="attention_gradients", remarks=("shared-race", "async-overwrite"), slow=True)
def attention_gradients(rng: np.random.Generator) -> Judge:
    """Gradients of attention, causal, by three kernels; dQ is added up by tensor copies that reduce"""
    yield from _gradients(rng, "attention_gradients", 2, 2, 128, 64, 65)


@program("gradients", source="gradients", archs=("sm_100a",), remarks=_TENSOR_MEMORY, ordered=False, slow=True)
def gradients(rng: np.random.Generator) -> Judge:
    """Gradients of attention on Blackwell, causal, five products of a tile in tensor memory; a length that fills no tile"""
    yield from _gradients(rng, "gradients", 2, 1, 200, 64, 66)


def _blackwell(rng: np.random.Generator, name: str, shape: tuple[int, ...], dtype: Any, *, causal: bool) -> Judge:
    b, heads, groups, m, n, d = shape
    q = rng.standard_normal((b, m, heads, d)).astype(dtype)
    k, v = (rng.standard_normal((b, n, groups, d)).astype(dtype) for _ in range(2))
    o, sums, none = np.zeros(q.shape, _F16), np.zeros((b, heads, m), np.float32), np.zeros(1, np.int32)
    yield from _run(name, {"q": q, "k": k, "v": v, "o": o, "sums": sums, "first_q": none, "first_k": none})
    for i in range(b):
        by_head = [np.repeat(x[i].swapaxes(0, 1), heads // x.shape[2], axis=0) for x in (q, k, v)]
        want, logs = _attention(*by_head, scale=d**-0.5, causal=causal)
        _close(o[i].swapaxes(0, 1), want, 2 if dtype != _E4M3 else 0.5, dtype)
        assert np.abs(sums[i] - logs).max() < 1e-5 * np.abs(logs).max()


@program("attention", source="attention", archs=("sm_100a",), remarks=_ROLES, slow=True)
def attention(rng: np.random.Generator) -> Judge:
    """Attention, causal, by sixteen warps in six roles; two heads of queries share one of keys; lengths fill no tile"""
    yield from _blackwell(rng, "attention", (1, 4, 2, 300, 300, 64), _F16, causal=True)


@program("attention_residual", source="attention_residual", archs=("sm_100a",), remarks=_ROLES, slow=True)
def attention_residual(rng: np.random.Generator) -> Judge:
    """The same of e4m3, head dimension 128, a CTA for each tile of queries"""
    yield from _blackwell(rng, "attention_residual", (2, 1, 1, 200, 150, 128), _E4M3, causal=False)


@program("attention_lengths", source="attention_lengths", archs=("sm_100a",), remarks=_ROLES, slow=True)
def attention_lengths(rng: np.random.Generator) -> Judge:
    """The same of sequences of their own lengths, one behind the other, whose starts are in memory"""
    heads, d, first_q, first_k = 2, 64, np.array([0, 260, 330], np.int32), np.array([0, 70, 240], np.int32)
    q = rng.standard_normal((first_q[-1], heads, d)).astype(_F16)
    k, v = (rng.standard_normal((first_k[-1], 1, d)).astype(_F16) for _ in range(2))
    o, sums = np.zeros((2, *q.shape), _F16), np.zeros((heads, len(q)), np.float32)
    arrays = {"q": q, "k": k, "v": v, "o": o, "sums": sums, "first_q": first_q, "first_k": first_k}
    yield from _run("attention_lengths", arrays)
    assert not o[0].any()
    for a, b, c, e in zip(first_q, first_q[1:], first_k, first_k[1:], strict=False):
        keys, values = (np.repeat(x[c:e].swapaxes(0, 1), heads, axis=0) for x in (k, v))
        want, logs = _attention(q[a:b].swapaxes(0, 1), keys, values, d**-0.5)
        _close(o[1, a:b].swapaxes(0, 1), want, 2, _F16)
        assert np.abs(sums[:, a:b] - logs).max() < 1e-5 * np.abs(logs).max()


@program("generation", source="generation", archs=("sm_100a",), remarks=_ROLES, slow=True)
def generation(rng: np.random.Generator) -> Judge:
    """One query of each head against a cache of e5m2, which the kernel extends by the new key and value"""
    b, heads, groups, most, d = 2, 4, 2, 160, 128
    q, new_k, new_v = (rng.standard_normal((b, n, d)).astype(_E5M2) for n in (heads, groups, groups))
    k, v = (rng.standard_normal((b, most, groups, d)).astype(_E5M2) for _ in range(2))
    o, lengths, places = np.zeros((b, heads, d), _F16), np.array([150, 70], np.int32), np.array([1, 0], np.int32)
    longer = k.copy(), v.copy()
    for i, (n, at) in enumerate(zip(lengths, places, strict=True)):
        longer[0][at, n], longer[1][at, n] = new_k[i], new_v[i]
    arrays = {"lengths": lengths, "places": places, "q": q, "new_k": new_k, "new_v": new_v, "k": k, "v": v, "o": o}
    yield from _run("generation", arrays)
    assert (k.view(np.uint8) == longer[0].view(np.uint8)).all()
    assert (v.view(np.uint8) == longer[1].view(np.uint8)).all()
    for i, (n, at) in enumerate(zip(lengths, places, strict=True)):
        keys, values = (np.repeat(x[at, : n + 1].swapaxes(0, 1), heads // groups, axis=0) for x in longer)
        _close(o[i, :, None], _attention(q[i, :, None], keys, values, d**-0.5)[0], 0.5, _E5M2)


def _latent(rng: np.random.Generator, name: str, b: int, n: int) -> Judge:
    q, c = rng.standard_normal((b, 128, 576)).astype(_F16), rng.standard_normal((b, n, 576)).astype(_F16)
    o, sums, none = np.zeros((b, 128, 512), _F16), np.zeros((b, 128), np.float32), np.zeros(1, np.int32)
    work = np.zeros(4 * b * 128 * 513, np.float32)
    yield from _run(name, {"q": q, "c": c, "o": o, "sums": sums, "lengths": none, "pages": none, "work": work})
    want, logs = _attention(q, c, c[..., :512], 192**-0.5)
    _close(o, want, 2, _F16)
    assert np.abs(sums - logs).max() < 1e-5 * np.abs(logs).max()


@program("latent", source="latent", archs=("sm_100a",), remarks=_LATENT, slow=True)
def latent(rng: np.random.Generator) -> Judge:
    """Latent attention of 128 heads to one cache by pairs of CTAs; a length that fills no tile"""
    yield from _latent(rng, "latent", 1, 200)


@program("latent_split", source="latent", archs=("sm_100a",), remarks=_LATENT, slow=True)
def latent_split(rng: np.random.Generator) -> Judge:
    """The same, keys of two sequences in two parts each, which a second kernel joins"""
    yield from _latent(rng, "latent_split", 2, 300)


def _tutorial(rng: np.random.Generator, name: str, m: int, n: int, k: int) -> Judge:
    """D = A Bᵀ + C / 2, and what the first thread prints of layouts."""
    a, b = rng.standard_normal((m, k)).astype(_F16), rng.standard_normal((n, k)).astype(_F16)
    c, d = rng.standard_normal((m, n)).astype(np.float32), np.zeros((m, n), np.float32)
    for launch in _run(name, {"a": a, "b": b, "c": c, "d": d}):
        result = yield launch
        assert result is not None
        assert "mA:\t" in result.printed
    want = a.astype(float) @ b.astype(float).T + c / 2
    assert np.abs(d - want).max() < k * 2.0**-20 * np.abs(want).max()


@program("tutorial_1", source="tutorial_1", archs=("sm_100a",), remarks=(*_TUTORIAL, "missing-proxy-fence"), slow=True)
def tutorial_1(rng: np.random.Generator) -> Judge:
    """A product whose threads copy the operands; it prints the layouts of CuTe's tutorial"""
    yield from _tutorial(rng, "tutorial_1", 128, 256, 128)


@program("tutorial_3", source="tutorial_3", archs=("sm_100a",), remarks=_TUTORIAL, slow=True)
def tutorial_3(rng: np.random.Generator) -> Judge:
    """A product of a cluster of sixteen CTAs that share operands by multicast"""
    yield from _tutorial(rng, "tutorial_3", 512, 1024, 128)


@program("tutorial_4", source="tutorial_4", archs=("sm_100a",), remarks=_TUTORIAL, slow=True)
def tutorial_4(rng: np.random.Generator) -> Judge:
    """A product of eight pairs of CTAs (cta_group::2) in a cluster"""
    yield from _tutorial(rng, "tutorial_4", 512, 1024, 128)


@program("tutorial_5", source="tutorial_5", archs=("sm_100a",), remarks=_TUTORIAL, slow=True)
def tutorial_5(rng: np.random.Generator) -> Judge:
    """A product whose results come and go by tensor copies"""
    yield from _tutorial(rng, "tutorial_5", 512, 1024, 128)


@program("hopper_tutorial", source="hopper_tutorial", remarks=("uninitialised-barrier", "leftover"), slow=True)
def hopper_tutorial(rng: np.random.Generator) -> Judge:
    """A product of CuTe's tutorial for Hopper: three stages of tensor copies, operands by columns"""
    m, n, k = 256, 128, 320
    a, b = rng.standard_normal((k, m)).astype(_F16), rng.standard_normal((k, n)).astype(_F16)
    c = np.zeros((n, m), _F16)
    yield from _run("hopper_tutorial", {"a": a, "b": b, "c": c})
    want = b.astype(float).T @ a.astype(float)
    assert (np.abs(c - want) <= 2.0**-10 * np.abs(want) + 1e-2 * np.sqrt(k)).all()


@_faulty("latent_paged", source="latent_paged", archs=("sm_100a",), remarks=(*_LATENT, "async-read-before-complete"))
def latent_paged(rng: np.random.Generator) -> Judge:
    """Latent attention to pages of 64 keys in any order, by cp.async, each sequence of its own length"""
    b, page, pages = 2, 64, 10
    lengths, table = np.array([300, 130], np.int32), rng.permutation(b * pages).astype(np.int32).reshape(b, pages) % pages
    q, c = rng.standard_normal((b, 128, 576)).astype(_F16), rng.standard_normal((pages, page, 576)).astype(_F16)
    o, sums, work = np.zeros((b, 128, 512), _F16), np.zeros((b, 128), np.float32), np.zeros(4 * b * 128 * 513, np.float32)
    yield from _run("latent_paged", {"q": q, "c": c, "o": o, "sums": sums, "lengths": lengths, "pages": table, "work": work})
    for i, n in enumerate(lengths):
        keys = c[table[i]].reshape(-1, 576)[:n]
        want, logs = _attention(q[i : i + 1], keys[None], keys[None, :, :512], 192**-0.5)
        _close(o[i : i + 1], want, 2, _F16)
        assert np.abs(sums[i] - logs[0]).max() < 1e-5 * np.abs(logs).max()
