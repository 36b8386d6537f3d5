"""Inputs of the scalar capture: edge values in a grid, then values from a counter-based generator (splitmix64).

Both depend on nothing but the types of an instruction's operands, so a capture stores outputs only.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.base.ptx_types import TYPES

__all__ = ["RANDOM", "code_dtype", "edge_count", "inputs", "random_values", "splitmix"]

Array = NDArray[Any]
RANDOM = 16384
"""Random values per form; a multiple of 64."""

_F32 = """
00000000 80000000 3f800000 bf800000 7f800000 ff800000 7fffffff 7f800001 00000001 807fffff 00800000 3f7fffff 7f7fffff ff7fffff
40490fdb c2f6e979 3f800001 3fc00000 40400000 3f000000 007fffff 80800000 00800001 80000001 ffc12345 7fc00000 4b000001 4b800001
cb800003 4f000000 cf000000 4effffff 4f800000 5f000000 df000000 5f800000 477fe000 477ff000 477fefff 33000000 33000001 38800000
387fc000 43e00000 43e80000 43e7ffff 47600000 3b000000 3dcccccd bf000000 40200000 42ff0000 437f8000 c3000000 7f000000 3f804000
3f80c000 3f801000 3f803000 34000000 0d800000 8b800000 41200000 3eaaaaab
"""
_F64 = """
0000000000000000 8000000000000000 3ff0000000000000 bff0000000000000 7ff0000000000000 fff0000000000000 7ff8000000000000
7ff0000000000001 0000000000000001 800fffffffffffff 0010000000000000 3fefffffffffffff 7fefffffffffffff ffefffffffffffff
400921fb54442d18 c05edd2f1a9fbe77 3ff0000000000001 3ff8000000000000 4008000000000000 3fe0000000000000 000fffffffffffff
8010000000000000 fff8123456789abc 7fffffffffffffff 41dfffffffc00000 41e0000000000000 c1e0000000000000 41efffffffe00000
41f0000000000000 43e0000000000000 c3e0000000000000 43dfffffffffffff 43f0000000000000 47efffffe0000000 47efffffefffffff
47effffff0000000 36a0000000000000 3690000000000000 3690000000000001 380fffffc0000000 3ff0000010000000 3ff0000030000000
3fb999999999999a bfe0000000000000 4004000000000000 406fe00000000000 c060200000000000 40effc0000000000 40effe0000000000
"""
_F16 = """
0000 8000 3c00 bc00 7c00 fc00 7fff 7c01 0001 83ff 0400 3bff 7bff fbff 4248 d7b7 3c01 3e00 4200 3800 03ff 8400 8001 ffff 7e00
fd55 5c00 7800 6400 6401 57f0 5bf8 d800 2e66 b800 4100
"""
_BF16 = """
0000 8000 3f80 bf80 7f80 ff80 7fff 7f81 0001 807f 0080 3f7f 7f7f ff7f 4049 c2f7 3f81 3fc0 4040 3f00 007f 8080 8001 ffff 7fc0
ffd5 4b00 4f00 cf00 437f 43e0 4780 3dcd bf00 4020 c300
"""
_INTEGERS = (0, 1, -1, 2, 3, 31, 32, 33, 0x5A, -2, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, -31, -128, 1000)
_PATTERNS = (
    0x5555555555555555,
    0xAAAAAAAAAAAAAAAA,
    0x123456789ABCDEF0,
    0x0F0F0F0FF0F0F0F0,
    0xDEADBEEFCAFEF00D,
    0x00FF00FF7F808001,
)
_GRID = {1: 10**6, 2: 64, 3: 16, 4: 9, 5: 6}
"""Number of operands -> edge values of each."""


def splitmix(seed: int, n: int, first: int = 0) -> NDArray[np.uint64]:
    """Return n 64-bit words of the stream `seed`: splitmix64's output function over a counter."""
    z = (np.arange(first, first + n, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def code_dtype(name: str) -> np.dtype[Any]:
    """Return the unsigned dtype that holds the bits of a type."""
    bits = TYPES[name].bits
    return np.dtype(f"u{max(1, next(w for w in (8, 16, 32, 64) if bits <= w) // 8)}")


def _integer_edges(bits: int) -> list[int]:
    mask, top = (1 << bits) - 1, 1 << (bits - 1)
    core = [top, top - 1, top + 1]
    values = [*_INTEGERS[:4], *core, *_INTEGERS[4:], *_PATTERNS, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
    return list(dict.fromkeys(v & mask for v in values))


@cache
def _edges(name: str) -> tuple[int, ...]:
    """Edge codes of a type, the most telling ones first."""
    texts = {"f32": _F32, "tf32": _F32, "f64": _F64, "f16": _F16, "bf16": _BF16}
    if name in texts:
        return tuple(int(w, 16) for w in texts[name].split())
    if name == "pred":
        return (0, 1)
    if name in ("f16x2", "bf16x2"):
        half = _edges(name[:-2])
        return tuple(a | half[(5 * i + 3) % len(half)] << 16 for i, a in enumerate(half))
    bits = TYPES[name].bits
    if TYPES[name].kind == "packed":
        return tuple(int(v) & ((1 << bits) - 1) for v in splitmix(bits, 40))
    return tuple(_integer_edges(bits))


def _grid(types: tuple[str, ...]) -> list[list[int]]:
    """Return the edge values used of each operand."""
    n = _GRID[len(types)]
    return [list(_edges(t)[:n]) for t in types]


def edge_count(types: tuple[str, ...]) -> int:
    """Return the number of edge combinations of operand types."""
    return int(np.prod([len(g) for g in _grid(types)]))


_FLOAT_SHAPE = {"f32": (32, 23, 127), "tf32": (32, 23, 127), "f64": (64, 52, 1023), "f16": (16, 10, 15), "bf16": (16, 7, 127)}


def _random_float(r: NDArray[np.uint64], how: NDArray[np.uint64], name: str) -> NDArray[np.uint64]:
    """Bits of floats: uniform; exponents near 1; a wide band of exponents; few significant bits."""
    bits, mantissa, bias = _FLOAT_SHAPE[name]
    u = np.uint64
    uniform = r >> u(64 - bits)
    fraction = uniform & u((1 << mantissa) - 1)
    sign = (r & u(1)) << u(bits - 1)

    def around(span: int) -> NDArray[np.uint64]:
        low = max(1, bias - span)
        return (u(low) + (how >> u(8)) % u(2 * (bias - low) + 1)) << u(mantissa)

    near, band = sign | around(6) | fraction, sign | around(40) | fraction
    short = sign | around(4) | (fraction & ~u((1 << (mantissa * 2 // 3)) - 1))
    return np.choose((how & u(3)).astype(np.int64), [uniform, near, band, short])


def _random_integer(r: NDArray[np.uint64], how: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """Bits of integers: uniform; small; small and negative; a power of two and its neighbours."""
    u = np.uint64
    shift = (how >> u(8)) % u(bits)
    uniform = r >> u(64 - bits)
    small = uniform >> shift
    power = (u(1) << shift) + (how >> u(20)) % u(3) - u(1)
    chosen = np.choose((how & u(3)).astype(np.int64), [uniform, small, ~small, power])
    return chosen & u((1 << bits) - 1)


def random_values(name: str, operand: int, n: int) -> NDArray[np.uint64]:
    """Return n random codes of a type, from streams that `operand` names."""
    r, how = splitmix(2 * operand + 1, n), splitmix(2 * operand + 2, n)
    if name == "pred":
        return r & np.uint64(1)
    if name in _FLOAT_SHAPE:
        return _random_float(r, how, name)
    bits = TYPES[name].bits
    if name in ("f16x2", "bf16x2"):
        low = _random_float(r, how, name[:-2])
        high = _random_float(splitmix(101 + operand, n), splitmix(201 + operand, n), name[:-2])
        return low | high << np.uint64(16)
    return r >> np.uint64(64 - bits) if TYPES[name].kind == "packed" else _random_integer(r, how, bits)


def inputs(types: tuple[str, ...]) -> list[Array]:
    """Return the input codes of operand types: the edge grid, then the random values.

    A lone 8- or 16-bit operand is given all its codes instead of random ones.
    """
    grid = np.meshgrid(*(np.array(g, np.uint64) for g in _grid(types)), indexing="ij")
    bits = TYPES[types[0]].bits
    exhaustive = len(types) == 1 and types[0] != "pred" and bits <= 16
    out: list[Array] = []
    for i, (name, edges) in enumerate(zip(types, grid, strict=True)):
        random = np.arange(max(64, 1 << bits), dtype=np.uint64) if exhaustive else random_values(name, i, RANDOM)
        out.append(np.concatenate([edges.ravel(), random]).astype(code_dtype(name)))
    return out
