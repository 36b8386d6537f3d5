"""Bits: logic and shifts (PTX ISA 9.7.8), bit fields, counts, masks, permutation (9.7.1, 9.7.9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.simulator.meanings.forms import Form
from warpsmith.simulator.meanings.integer import unsigned

__all__ = ["BUILDERS"]

Array = NDArray[Any]
Fn = Callable[..., None]

_BINARY: dict[str, np.ufunc] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def binary(form: Form) -> Fn:
    """Build and, or, xor (bits or predicates)."""
    op = _BINARY[form.opcode]

    def fn(out: Array, a: Array, b: Array) -> None:
        op(a, b, out=out)

    return fn


def not_(form: Form) -> Fn:
    """Build not."""

    def fn(out: Array, a: Array) -> None:
        np.invert(a, out=out)

    return fn


def cnot(form: Form) -> Fn:
    """Build cnot: 1 where a is 0, else 0."""

    def fn(out: Array, a: Array) -> None:
        out[...] = a == 0

    return fn


def shift_left(form: Form) -> Fn:
    """Build shl; amounts beyond the width give 0."""
    bits = int(form.type[1:])

    def fn(out: Array, a: Array, b: Array) -> None:
        if bits == 32:
            np.left_shift(a, b, out=out)
        else:
            np.left_shift(a, np.minimum(b, np.uint32(bits)).astype(a.dtype), out=out)

    return fn


def shift_right(form: Form) -> Fn:
    """Build shr; signed types fill with the sign, amounts beyond the width give only fill."""
    bits = int(form.type[1:])

    def fn(out: Array, a: Array, b: Array) -> None:
        # numpy's shifts by the width or more give only fill, as these do
        amount = np.asarray(b).view(a.dtype) if bits == 32 else np.minimum(b, np.uint32(bits)).astype(a.dtype)
        np.right_shift(a, amount, out=out)

    return fn


def funnel(form: Form) -> Fn:
    """Build shf: the 64 bits b:a shifted left (upper word) or right (lower word)."""
    left, wrap = "l" in form, "wrap" in form
    limit, half = np.uint64(31 if wrap else 32), np.uint64(32)

    def fn(out: Array, a: Array, b: Array, c: Array) -> None:
        both = np.asarray(b).astype(np.uint64) << half | np.asarray(a).astype(np.uint64)
        n = np.asarray(c).astype(np.uint64)
        n = n & limit if wrap else np.minimum(n, limit)
        out[...] = ((both << n) >> half if left else (both >> n) & np.uint64(0xFFFFFFFF)).astype(np.uint32)

    return fn


def _of_two(b: Array, c: Array, table: int) -> Any:
    """Return the bitwise function of two words with truth table `table` (bit 2b+c); a lone word for constants."""
    if table >> 3:  # true for b = c = 1: the complement is one of the eight others
        r = _of_two(b, c, ~table & 15)
        return ~r
    if table == 0:
        return np.uint32(0)
    return {
        1: lambda: ~(b | c), 2: lambda: ~b & c, 3: lambda: ~b, 4: lambda: b & ~c, 5: lambda: ~c, 6: lambda: b ^ c,
        7: lambda: ~(b & c),
    }[table]()  # fmt: skip


def lookup(a: Array, b: Array, c: Array, lut: int) -> Any:
    """Return the bitwise function of three words whose truth table is `lut` (bit 4a+2b+c); a lone word for constants."""
    low, high = lut & 15, lut >> 4
    if low == high:
        return _of_two(b, c, low)
    if high == ~low & 15:
        return a ^ _of_two(b, c, low)
    if low == 0:
        return a & _of_two(b, c, high)
    if high == 15:
        return a | _of_two(b, c, low)
    return _of_two(b, c, low) ^ (a & _of_two(b, c, low ^ high))


def lop3(form: Form) -> Fn:
    """Build lop3; with a Boolean operation the second result is (d != 0) op q."""
    op = next((w for w in form.words if w in _BINARY), None)

    def plain(out: Array, a: Array, b: Array, c: Array, lut: Any) -> None:
        out[...] = lookup(a, b, c, int(lut) & 0xFF)

    if op is None:
        return plain
    combine = _BINARY[op]

    def with_predicate(out: Array | None, p: Array, a: Array, b: Array, c: Array, lut: Any, q: Array) -> None:
        d = lookup(a, b, c, int(lut) & 0xFF)
        p[...] = combine(d != 0, q)
        if out is not None:
            out[...] = d

    return with_predicate


def permute_generic(a: Array, b: Array, c: Array) -> Array:
    """Return prmt's default mode: nibble i of c picks byte 0-7 of b:a; its bit 3 replicates that byte's sign."""
    both = np.asarray(b).astype(np.uint64) << np.uint64(32) | np.asarray(a).astype(np.uint64)
    selector = np.asarray(c).astype(np.uint64)
    out = np.zeros(np.broadcast_shapes(both.shape, selector.shape), np.uint64)
    for i in range(4):
        nibble = (selector >> np.uint64(4 * i)) & np.uint64(15)
        byte = (both >> ((nibble & np.uint64(7)) * np.uint64(8))) & np.uint64(0xFF)
        sign = np.where(byte >= 128, np.uint64(0xFF), np.uint64(0))
        out |= np.where(nibble >= 8, sign, byte) << np.uint64(8 * i)
    return out.astype(np.uint32)


def permute_constant(a: Array, b: Array, selector: int) -> Array:
    """Return prmt's default mode for one selector."""
    out: Any = np.uint32(0)
    for i in range(4):
        nibble = selector >> (4 * i) & 15
        source, at = (b if nibble & 4 else a), 8 * (nibble & 3)
        if nibble >= 8:
            part = np.where((source >> np.uint32(at + 7)) & np.uint32(1) != 0, np.uint32(0xFF << 8 * i), np.uint32(0))
        else:
            move = 8 * i - at
            part = source << np.uint32(move) if move > 0 else source >> np.uint32(-move) if move else source
            part = part & np.uint32(0xFF << 8 * i)
        out = out | part
    return out


_PERMUTE_MODES: dict[str, tuple[int, ...]] = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
"""Mode -> selector by c's low two bits (PTX ISA 9.7.9, prmt, second table)."""


def prmt(form: Form) -> Fn:
    """Build prmt."""
    table = next((np.array(v, np.uint32) for k, v in _PERMUTE_MODES.items() if k in form), None)

    def fn(out: Array, a: Array, b: Array, c: Array) -> None:
        if table is None and np.ndim(c) == 0:
            out[...] = permute_constant(np.asarray(a), np.asarray(b), int(c))
            return
        selector = np.asarray(c) if table is None else table[np.asarray(c) & np.uint32(3)]
        out[...] = permute_generic(a, b, selector)

    return fn


def _positions(b: Array, bits: int) -> Array:
    """Return positions and lengths: 32-bit forms take eight bits of them, 64-bit ones all (as the H200 does)."""
    wide = np.asarray(b).astype(np.int64)
    return wide & 0xFF if bits == 32 else wide


def extract(form: Form) -> Fn:
    """Build bfe: `c & 255` bits of a from position `b & 255`, filled with the field's top bit for signed types."""
    bits = int(form.type[1:])
    signed = form.type[0] == "s"

    def fn(out: Array, a: Array, b: Array, c: Array) -> None:
        pos, length = _positions(b, bits), _positions(c, bits)
        word = unsigned(np.asarray(a))
        one = word.dtype.type(1)
        shifted = np.right_shift(word, np.minimum(pos, bits).astype(word.dtype))
        keep = np.clip(np.minimum(length, bits - pos), 0, bits)
        mask = np.left_shift(one, keep.astype(word.dtype)) - one
        field = shifted & mask
        if signed:
            top = np.minimum(pos + length - 1, bits - 1)
            sign = np.right_shift(word, np.maximum(top, 0).astype(word.dtype)) & one
            field = np.where((sign != 0) & (length > 0), field | ~mask, field)
        out[...] = field.view(out.dtype)

    return fn


def insert(form: Form) -> Fn:
    """Build bfi: the low `d & 255` bits of a go into b at position `c & 255`."""
    bits = int(form.type[1:])

    def fn(out: Array, a: Array, b: Array, c: Array, d: Array) -> None:
        pos, length = _positions(c, bits), _positions(d, bits)
        one = a.dtype.type(1)
        mask = np.left_shift(one, np.minimum(length, bits).astype(a.dtype)) - one
        at = np.minimum(pos, bits).astype(a.dtype)
        out[...] = (b & ~np.left_shift(mask, at)) | np.left_shift(a & mask, at)

    return fn


def highest_bit(a: Array) -> Array:
    """Return the position of the most significant 1 as int64, -1 for 0 (a is uint32 or uint64)."""
    word = np.asarray(a).astype(np.uint64)
    upper = (word >> np.uint64(32)).astype(np.float64)
    lower = (word & np.uint64(0xFFFFFFFF)).astype(np.float64)
    in_upper, in_lower = np.frexp(upper)[1] + 31, np.frexp(lower)[1] - 1
    return np.where(upper > 0, in_upper, np.where(lower > 0, in_lower, -1)).astype(np.int64)


def find(form: Form) -> Fn:
    """Build bfind; for signed types the highest bit that differs from the sign; `.shiftamt` counts from the top."""
    bits = int(form.type[1:])

    def fn(out: Array, a: Array) -> None:
        word = unsigned(np.asarray(a))
        if form.type[0] == "s":
            word = np.where(np.asarray(a) < 0, ~word, word)
        at = highest_bit(word)
        if "shiftamt" in form:
            at = np.where(at < 0, -1, bits - 1 - at)
        out[...] = (at & 0xFFFFFFFF).astype(np.uint32)

    return fn


def clz(form: Form) -> Fn:
    """Build clz."""
    bits = int(form.type[1:])

    def fn(out: Array, a: Array) -> None:
        out[...] = (bits - 1 - highest_bit(a)).astype(np.uint32)

    return fn


def popc(form: Form) -> Fn:
    """Build popc."""

    def fn(out: Array, a: Array) -> None:
        out[...] = np.bitwise_count(a)

    return fn


def brev(form: Form) -> Fn:
    """Build brev."""
    bits = int(form.type[1:])
    masks = [(1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F)]

    def fn(out: Array, a: Array) -> None:
        w = np.asarray(a)
        for n, m in masks:
            mask, by = w.dtype.type(m & ((1 << bits) - 1)), w.dtype.type(n)
            w = (w >> by) & mask | (w & mask) << by
        out[...] = w.byteswap()

    return fn


def fns(form: Form) -> Fn:
    """Build fns: the offset-th 1 from position base (upwards for positive, downwards for negative offsets), else all ones."""

    def fn(out: Array, mask: Array, base: Array, offset: Array) -> None:
        mask, base, offset = np.broadcast_arrays(mask, base, offset)
        start, count = base.astype(np.int64), offset.astype(np.int32).astype(np.int64)
        here = np.minimum(start, 32).astype(np.uint32)
        result = np.where((count == 0) & ((mask >> here) & np.uint32(1) == 1), start, -1)
        for step in (1, -1):
            left = np.where(count * step > 0, np.abs(count), -1)
            for k in range(32):
                at = start + step * k
                ok = (at >= 0) & (at < 32)
                bit = (mask >> np.clip(at, 0, 31).astype(np.uint32)) & np.uint32(1)
                left = left - (ok & (bit == 1) & (left > 0))
                result = np.where((left == 0) & ok, at, result)
                left = np.where(left == 0, -1, left)
        result = np.where(start > 31, -1, result)
        result = np.where(count == -(2**31), 0, result)  # as the H200 does
        out[...] = (result & 0xFFFFFFFF).astype(np.uint32)

    return fn


def bmsk(form: Form) -> Fn:
    """Build bmsk: b ones from position a."""
    clamp = "clamp" in form

    def fn(out: Array, a: Array, b: Array) -> None:
        start, width = np.asarray(a).astype(np.int64), np.asarray(b).astype(np.int64)
        if clamp:
            start, width = np.minimum(start, 32), np.minimum(width, 32)
        else:
            start, width = start & 31, width & 31
        out[...] = ((((1 << width) - 1) << start) & 0xFFFFFFFF).astype(np.uint32)

    return fn


def szext(form: Form) -> Fn:
    """Build szext: extend the low b bits of a."""
    clamp, signed = "clamp" in form, form.type == "s32"

    def fn(out: Array, a: Array, b: Array) -> None:
        word = unsigned(np.asarray(a)).astype(np.int64)
        width = np.asarray(unsigned(np.asarray(b))).astype(np.int64)
        width = np.minimum(width, 32) if clamp else width & 31
        kept = word & ((1 << width) - 1)
        if signed:
            sign = (kept >> np.maximum(width - 1, 0)) & 1
            kept = np.where((sign != 0) & (width > 0), kept - (1 << width), kept)
        out[...] = (kept & 0xFFFFFFFF).astype(np.uint32).view(out.dtype)

    return fn


BUILDERS: dict[str, Callable[[Form], Fn]] = {
    "and": binary, "or": binary, "xor": binary, "not": not_, "cnot": cnot, "shl": shift_left, "shr": shift_right,
    "shf": funnel, "lop3": lop3, "prmt": prmt, "bfe": extract, "bfi": insert, "bfind": find, "clz": clz, "popc": popc,
    "brev": brev, "fns": fns, "bmsk": bmsk, "szext": szext,
}  # fmt: skip
