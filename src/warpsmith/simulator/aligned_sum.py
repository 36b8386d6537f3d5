"""One block of a truncated fused dot product in single precision, where every step of that is exact.

The model (see `tensorcore`): align all products of the block and C to the largest exponent, truncate each to `fraction` bits
below it, add without error, round once. Two devices make it few passes over memory:

* The largest of the sums of exponents comes out of a matrix product: sum over k of (2^ea · 2^eb)^8 lies between 2^(8·max)
  and 2^(8·max + 5) for blocks of up to 32 products, whatever a float64 sum rounds off, so its exponent / 8 is the maximum.
* Products stand in units of their last kept bit: a float32 product times a power of two, converted to int32, is truncated.

Exponents are handled where they lie in the bits of a float32: `(e + 127) << 23`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.tensor_rounding import round_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.tensorcore import Rule

    F32 = NDArray[np.float32]
    F64 = NDArray[np.float64]

__all__ = ["Operands", "add_block", "prepare"]

_FIELD = 0x7F800000
"""The exponent of a float32; also, of the high word of 2^(8·e - 7) … 2^(8·e), the bits that hold e + 127."""
_ONE = 1 << 23
_POWER = 8
_HIGHEST = 247
"""Largest biased exponent of a block: 2^120 and the sum of its terms stay finite."""
_LIMIT = 60
"""Operands from 2^-50 to 2^60: no product leaves the normal numbers. Others get infinite powers: their blocks are refused."""


@final
@dataclass(frozen=True, slots=True)
class Operands:
    """A `[i, m, k]` and B `[i, k, n]` with 2^(8·exponent) of every element (B's divided by 2^7); zeros have zero."""

    a: F32
    b: F32
    powers_a: F64
    powers_b: F64


def prepare(a: F32, b: F32, rule: Rule) -> Operands | None:
    """Return operands ready for `add_block`; None where single precision may not be exact."""
    powers_a, powers_b = _powers(a, rule.min_a, 0), _powers(b, rule.min_b, _POWER - 1)
    if rule.block > 32 or powers_a is None or powers_b is None:
        return None
    return Operands(a, b, powers_a, powers_b)


def _powers(x: F32, smallest: int, less: int) -> F64 | None:
    """Return 2^(8·e - less) for the exponents of `x`, 0 for zeros, infinity for what is out of range; None: subnormals."""
    bits = np.ascontiguousarray(x).view(np.uint32) << np.uint32(1)
    if smallest == -126 and int((bits - np.uint32(1)).min(initial=1 << 24)) < (1 << 24) - 1:
        return None
    bits >>= np.uint32(24)
    return _table(smallest, less).take(bits)


@lru_cache(maxsize=32)
def _table(smallest: int, less: int) -> F64:
    """Return the powers by the exponent field of a float32."""
    e = np.maximum(np.arange(256) - 127, smallest)
    out = np.ldexp(1.0, np.clip(_POWER * e - less, -1022, 1023))
    out[0] = 0
    out[(e > _LIMIT) | ((e < -50) & (np.arange(256) > 0))] = np.inf
    return out


@final
class _Room:
    """Memory for blocks of one shape, kept between calls: fresh memory would cost more than the arithmetic."""

    __slots__ = ("left", "product", "right", "sums", "units")

    def __init__(self, k: int, i: int, m: int, n: int) -> None:
        self.left = np.zeros((k, i, m, 2), np.float32)
        self.right = np.zeros((k, i, 2, n), np.float32)
        self.product = np.empty((k, i, m, n), np.float32)
        self.units = np.empty((k, i, m, n), np.int32)
        self.sums = np.empty((i, m, n), np.float64)


class _Rooms(threading.local):
    """Memory of each thread by shape, the latest last."""

    def __init__(self) -> None:
        self.kept: dict[tuple[int, int, int, int], _Room] = {}


_rooms = _Rooms()
_KEPT = 24


def _room(k: int, i: int, m: int, n: int) -> _Room:
    rooms = _rooms.kept
    found = rooms.get((k, i, m, n))
    if found is None:
        if len(rooms) >= _KEPT:
            del rooms[next(iter(rooms))]
        found = rooms[k, i, m, n] = _Room(k, i, m, n)
    return found


def add_block(some: slice, part: slice, x: Operands, c: F32, rule: Rule) -> bool:
    """Add the products `part` of the matrices `some` to `c[i, m, n]` in place; False, and nothing done, if out of range."""
    a, b = x.a[some, :, part], x.b[some, part]
    room = _room(a.shape[2], *c.shape)
    sums = np.matmul(x.powers_a[some, :, part], x.powers_b[some, part], out=room.sums)
    largest = sums.view(np.int32)[..., 1::2] & _FIELD
    np.maximum(largest, _exponents_of_c(c, rule), out=largest)
    lowest = (rule.fraction + 1) * _ONE
    if int(largest.max()) > _HIGHEST * _ONE:
        return False
    if int(largest.min()) < lowest:
        low = largest < lowest
        if sums[low].any() or c[low].any():
            return False
        np.maximum(largest, lowest, out=largest)  # zeros alone: any unit will do
    scale = (np.uint32((rule.fraction + 254) * _ONE) - largest.view(np.uint32)).view(np.float32)
    total = _units(a, b, scale, room)
    own = c * scale
    total += np.trunc(own, out=own)
    largest -= rule.fraction * _ONE
    unit = largest.view(np.float32)
    if rule.rounding == "rne16":
        c[...] = round_sums(total * unit, rule.rounding)
        return True
    words = total.view(np.int64)
    words &= -1 << (29 if rule.rounding == "rz32" else 39)
    np.copyto(c, total, casting="same_kind")
    c *= unit
    return True


def _exponents_of_c(c: F32, rule: Rule) -> NDArray[np.int32]:
    bits = c.view(np.int32)
    if rule.min_c < -60:
        return bits & _FIELD  # zeros and subnormals: below every exponent in range
    smallest, nothing = (rule.min_c + 127) * _ONE, max(rule.zero + 127, 0) * _ONE
    return np.where(c == 0, nothing, np.maximum(bits & _FIELD, smallest)).astype(np.int32)


def _units(a: F32, b: F32, scale: F32, room: _Room) -> F64:
    """Return the sum of truncated products in units of the last kept bit.

    A product is below 4·2^fraction ≤ 2^27, so at most 15.99 units of 2^27 add up in 16 terms: int32 holds them.
    """
    # the outer products as a batch of matrix products two deep (second term zero): much faster than broadcasting
    room.left[..., 0] = np.moveaxis(a, 2, 0)
    room.right[:, :, 0, :] = np.moveaxis(b, 1, 0)
    np.matmul(room.left, room.right, out=room.product)
    np.multiply(room.product, scale, out=room.product)
    np.copyto(room.units, room.product, casting="unsafe")
    total: Any = room.units[:16].sum(0, dtype=np.int32).astype(np.float64)
    for at in range(16, len(room.units), 16):
        total += room.units[at : at + 16].sum(0, dtype=np.int32)
    return total
