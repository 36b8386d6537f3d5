"""tests/data/cuda/numbers.cu: 128-bit integers, bit fields, libdevice, halves, complex numbers."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from programs.program import Collection, Judge, Launch

program = Collection("nvcc", "numbers", ("sm_80", "sm_90a.lines", "sm_120a", "sm_80.next"))
N = 32


def _wide(values: list[int]) -> np.ndarray:
    """128-bit integers as pairs of 64-bit words."""
    return np.array([[v & (2**64 - 1), v >> 64 & (2**64 - 1)] for v in values], np.uint64)


def _signed(words: np.ndarray) -> list[int]:
    values = [int(low) | int(high) << 64 for low, high in words]
    return [v - (v >> 127 << 128) for v in values]


@program()
def int128(rng: np.random.Generator) -> Judge:
    """Products, quotients, shifts and conversions of __int128"""
    bits = rng.integers(1, 127, 2 * N)
    draw = [int.from_bytes(rng.bytes(16), "little", signed=True) >> int(b) for b in bits]
    a, b = draw[:N], [v or 3 for v in draw[N:]]
    out = np.zeros((7 * N, 2), np.uint64)
    yield Launch([out, _wide(a), _wide(b)])
    got = [_signed(out[k * N : k * N + N]) for k in range(7)]

    def wrap(v: int) -> int:
        return (v + 2**127) % 2**128 - 2**127

    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        unsigned = (x % 2**128) // (y % 2**128)
        low = (y + 2**63) % 2**64 - 2**63
        shifts = wrap(x << (i & 127)) ^ (y >> (i * 3 & 127))
        want = [x * y, quotient, x - quotient * y, unsigned, shifts, -x if x < y else ~y, int(float(x)) + low]
        assert [g[i] for g in got] == [wrap(w) for w in want], i


@program()
def bit_fields(rng: np.random.Generator) -> Judge:
    """Bit fields across words, of signed, unsigned, bool and 64-bit types"""
    layout = {"a": (0, 3, 0), "b": (3, 7, 1), "c": (10, 13, 0), "d": (23, 41, 1), "e": (64, 1, 0)}
    p, out = rng.integers(0, 256, (N, 16)).astype(np.uint8), np.zeros(N, np.int64)
    p[:, 8] &= 1

    def read(row: np.ndarray) -> dict[str, int]:
        whole = int.from_bytes(row.tobytes(), "little")
        fields = {name: whole >> at & (1 << size) - 1 for name, (at, size, _) in layout.items()}
        return {n: v - (v >> layout[n][1] - 1 << layout[n][1]) * layout[n][2] for n, v in fields.items()}

    before = p.copy()
    yield Launch([p, out])
    for i in range(N):
        x, y = read(before[i]), read(p[i])
        assert out[i] == x["a"] + 10 * x["b"] + 100000 * x["c"] + x["d"] + x["e"]
        want = {"a": x["a"] + 3, "b": x["b"] - 5, "c": x["c"] ^ 0x155, "d": x["d"] * 3, "e": 1 - x["e"]}
        for name, value in want.items():
            assert (y[name] - value) % (1 << layout[name][1]) == 0, (i, name)


def _each(function, *arrays: np.ndarray) -> np.ndarray:
    return np.array([function(*map(float, values)) for values in zip(*arrays, strict=True)])


def _inverse_erf(y: float) -> float:
    low, high = -6.0, 6.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < y else (low, middle)
    return (low + high) / 2


def _judged(out: np.ndarray, wanted: dict[int, tuple[np.ndarray, float]]) -> None:
    """Rows of `out` against a reference in double precision, to a relative and absolute bound each."""
    for row, (want, bound) in wanted.items():
        error = np.abs(out[row].astype(float) - want)
        assert np.all(error <= bound * np.maximum(np.abs(want), 1e-3)), (row, float(error.max()), bound)


@program()
def floats_of_libdevice(rng: np.random.Generator) -> Judge:
    """36 functions of floats, against double precision to a few units in the last place"""
    a, b, out = (
        rng.standard_normal(N).astype(np.float32),
        rng.standard_normal(N).astype(np.float32),
        np.zeros((36, N), np.float32),
    )
    yield Launch([out, a, b])
    x, y, u = a.astype(float), b.astype(float), 4e-7
    size, big = np.abs(x), (a * np.float32(1e7)).astype(float)
    exact = {
        12: np.floor(np.log2(np.abs(y))),
        14: _each(math.remainder, a * np.float32(50), b),
        15: np.fmod((a * np.float32(1e6)).astype(float), y),
        16: np.nextafter(a, b).astype(float),
        17: np.maximum(a - b, 0).astype(float),
        24: x * 8,
        31: np.floor(np.log2(np.abs(y))),
        25: (a * np.float32(7)).astype(float),
        33: np.rint((a * np.float32(9)).astype(float)),
    }
    wanted = {row: (want, 1e-7) for row, want in exact.items()}
    close = {
        0: np.sin(x),
        1: np.cos(x),
        2: np.tan(x),
        3: np.arcsin(x / 8),
        4: np.arccos(x / 8),
        5: np.arctan2(x, y),
        6: np.sinh(x),
        7: np.arccosh(1 + size),
        8: np.arctanh(x / 8),
        9: 10**x,
        10: np.log10(np.abs(y)),
        11: np.log2(np.abs(y)),
        13: np.hypot(x, y),
        18: _each(math.erfc, x),
        19: _each(_inverse_erf, (a / 8).astype(float)),
        20: _each(math.gamma, (np.abs(a) + 1).astype(float)),
        26: np.sign(x) / np.cbrt(size),
        27: np.sqrt(x * x + y * y + 4),
        28: np.sin(np.pi * x),
        29: np.cos(np.pi * y),
        30: x**3,
        32: np.sin(big),
        34: np.i0(x),
        35: _each(lambda v: math.erfc(-v / 2**0.5) / 2, x),
    }
    wanted |= {row: (want, 3 * u) for row, want in close.items()}
    wanted[7] = (close[7], 1e-5)  # acosh of the rounded 1 + |x|
    fraction, power = np.frexp(a)
    wanted[23] = ((fraction + power.astype(np.float32)).astype(float), 1e-7)
    _judged(out, wanted)
    assert np.all(np.isfinite(out[[21, 22]]))  # Bessel functions have no reference here


@program()
def doubles_of_libdevice(rng: np.random.Generator) -> Judge:
    """34 functions of doubles, against the C library to a few units in the last place"""
    x, y, out = rng.standard_normal(N), rng.standard_normal(N), np.zeros((34, N))
    yield Launch([out, x, y])
    size, u = np.abs(x), 1.2e-15
    close = {
        0: np.sin(x),
        1: np.cos(x),
        2: np.tan(x),
        3: np.arcsin(x / 8),
        4: np.arccos(x / 8),
        5: np.arctan(x),
        6: np.sinh(x),
        7: np.cosh(x),
        8: np.tanh(x),
        9: np.arcsinh(x),
        10: np.arccosh(1 + size),
        11: np.arctanh(x / 8),
        12: np.exp2(x),
        13: 10**x,
        14: np.expm1(x),
        15: np.log(np.abs(y)),
        16: np.log2(np.abs(y)),
        17: np.log10(np.abs(y)),
        18: _each(math.erfc, x),
        19: _each(math.lgamma, size + 0.5),
        20: _each(_inverse_erf, x / 8),
        24: np.sign(x) / np.cbrt(size),
        29: np.sin(x * 1e15),
        30: np.abs(y) ** x,
    }
    exact = {
        21: np.fmod(x * 1e9, y),
        22: _each(math.remainder, x * 99, y),
        23: np.sqrt(size),
        25: x / y,
        26: np.trunc(x * 5 + np.copysign(0.5, x)),
        27: x / 16,
        28: np.nextafter(x, y),
        31: np.rint(x * 7),
        32: np.sqrt(size),
        33: x / y,
    }
    wanted = {row: (want, 5 * u) for row, want in close.items()} | {row: (want, 3e-16) for row, want in exact.items()}
    wanted |= {19: (close[19], 1e-12), 20: (close[20], 1e-14)}
    _judged(out, wanted)
    for row in (21, 22, 23, 25, 26, 27, 28, 31):
        assert np.array_equal(out[row], exact[row]), row


@program()
def half_math(rng: np.random.Generator) -> Judge:
    """Functions of halves and bfloats, against the rounded exact value to one unit in the last place"""
    a, b = rng.standard_normal(N).astype(np.float16), rng.standard_normal(N).astype(ml_dtypes.bfloat16)
    o, p = np.zeros((12, N), np.float16), np.zeros((6, N), ml_dtypes.bfloat16)
    yield Launch([o, a, p, b])
    x, z = a.astype(float), b.astype(float)
    half = {
        0: np.sin(x),
        1: np.cos(x),
        2: np.exp(x),
        3: np.log(np.abs(x)),
        4: 1 / x,
        5: 1 / np.sqrt(np.abs(x)),
        6: np.floor(x),
        7: np.rint(x),
        8: np.log2(np.abs(x)),
        9: 10**x,
        11: np.clip(x * x + x, 0, 1),
    }
    _judged(o, {row: (want, 2.0**-10) for row, want in half.items()})
    bfloat = {0: np.sin(z), 1: np.exp2(z), 2: np.log(np.abs(z)), 3: np.sqrt(np.abs(z)), 4: z / 3, 5: np.abs(z)}
    _judged(p, {row: (want, 2.0**-7) for row, want in bfloat.items()})


@program()
def complex_numbers(rng: np.random.Generator) -> Judge:
    """cuda::std::complex of floats and doubles"""
    f = (rng.standard_normal(N) + 1j * rng.standard_normal(N)).astype(np.complex64)
    d = rng.standard_normal(N) + 1j * rng.standard_normal(N)
    x, y = f.astype(complex), d.copy()
    yield Launch([f, d])
    assert np.allclose(f, x * x / (x + (1 + 2j)) + x.conj() * np.abs(x), rtol=1e-5)
    assert np.allclose(d, np.exp(y) + np.sqrt(y) * np.log(y) / y, rtol=1e-13)


PROGRAMS = program.programs
