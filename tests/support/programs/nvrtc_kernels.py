"""tests/data/cuda/runtime.cu, by NVRTC 11.8 (`-G`), 12.4 (relocatable) and 13.5 (`-lineinfo`)."""

from __future__ import annotations

import numpy as np

from programs.program import Collection, Judge, Launch

program = Collection("nvrtc", "runtime", ("sm_80.debug", "sm_80.relocatable", "sm_90a.lines"))


def _of_operation(op: int, a: int, b: int, table: list[int]) -> int:
    """What `dense` of the source gives, before it is cut to 32 bits."""
    ua, shift = a & 0xFFFFFFFF, b & 31
    quotient = 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    whole = {
        0: a + b, 1: a - b, 2: a * b, 3: quotient, 4: 0 if b == 0 else a - quotient * b, 5: a & b, 6: a | b, 7: a ^ b,
        8: a << shift, 9: a >> shift, 10: min(a, b), 11: max(a, b), 12: (a * b) >> 32, 13: ua.bit_count() + b,
        14: 32 - ua.bit_length() - b, 15: int(f"{ua:032b}"[::-1], 2) ^ b, 16: table[a & 15], 17: 3 + a, 18: a == b, 19: a < b,
    }  # fmt: skip
    return whole.get(op, -1)


@program()
def switches(rng: np.random.Generator) -> Judge:
    """A switch of twenty cases (brx.idx)"""
    n = 120
    op = rng.integers(0, 23, n, dtype=np.int32)
    a, b = (rng.integers(-(1 << 31), 1 << 31, n).astype(np.int32) >> rng.integers(0, 31, n, dtype=np.int32) for _ in range(2))
    out = np.zeros(n, np.int32)
    yield Launch([op, a, b, out, n], grid=2, block=64)
    table = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]
    want = [_of_operation(int(o), int(x), int(y), table) & 0xFFFFFFFF for o, x, y in zip(op, a, b, strict=True)]
    assert out.view(np.uint32).tolist() == want


@program()
def by_value(rng: np.random.Generator) -> Judge:
    """Functions that take and return structures by value"""
    n = 50
    out = np.zeros(n)
    yield Launch([out, n], grid=2)
    for i in range(n):
        char = (i * 7 + 128) % 256 - 128
        total = sum(i * 1.5 + k % 5 for k in range(i % 6))
        assert out[i] == total + 0.5 * i + 3 + char + (i + 1 if i & 1 else i + 2)


@program()
def functions(rng: np.random.Generator) -> Judge:
    """Sine (also of large floats), exponential, logarithm, power, arc tangent"""
    n = 64
    x = rng.normal(size=n) * 500
    out = np.zeros((n, 6))
    yield Launch([x, out, n], block=64)
    v = np.abs(x)
    large = np.sin((x.astype(np.float32) * np.float32(100)).astype(np.float64))
    want = np.stack([np.sin(x), np.exp(x * 0.01), np.log(v + 1), (v + 0.5) ** 1.25, np.arctan2(x, 2), large], 1)
    np.testing.assert_allclose(out[:, :5], want[:, :5], rtol=4e-16)
    np.testing.assert_allclose(out[:, 5], want[:, 5], rtol=0, atol=2.5e-7)


PROGRAMS = program.programs
