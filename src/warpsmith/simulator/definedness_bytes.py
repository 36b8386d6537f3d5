"""Rules of instructions that move bytes, or compute the parts of packed operands apart (see `definedness`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.program import Const, Reg

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.program import Operation

    Masks = NDArray[np.uint8]

__all__ = ["ALL", "BANKS", "NONE", "byte_rule_of", "bytes_of", "whole", "widths_of"]

NONE, ALL = np.uint8(0), np.uint8(255)
"""Masks of no byte and of all."""
BANKS = {"b16": 2, "b32": 4, "b64": 8, "pred": 1}
_PACKED = {"f16x2": 2, "bf16x2": 2, "u16x2": 2, "s16x2": 2, "f32x2": 4}
"""Packed types, and the bytes of a part."""
_APART = frozenset(["add", "sub", "mul", "fma", "min", "max", "neg", "abs", "ex2", "tanh"])
"""Opcodes whose packed forms compute each part from the same parts of the operands."""
_INTEGERS = frozenset(f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64))


def widths_of(reg: Reg) -> tuple[int, int]:
    """Return the bytes of a register that an operand stands for, and all it has."""
    return np.dtype(reg.dtype).itemsize, BANKS[reg.bank]


def bytes_of(*values: Any) -> np.uint8:
    """Return the mask of all bytes of operands of one width."""
    return np.uint8((1 << max(np.asarray(v).dtype.itemsize for v in values)) - 1)


def whole(mask: Any) -> Any:
    """Return a mask of all bytes wherever there is one of any."""
    return np.negative((np.asarray(mask) != 0).view(np.uint8))


def byte_rule_of(op: Operation) -> Callable[..., None] | None:
    """Return the rule of an instruction that moves bytes or has packed operands; None: it is another."""
    words = op.text.split(".")
    if op.opcode in ("xor", "not", "lop3"):
        return _union
    if op.opcode == "prmt" and words == ["prmt", "b32"]:
        return _permuted
    if op.opcode in ("shl", "shr"):
        return _shift(op.opcode, words[-1])
    if op.opcode == "cvt" and {words[-1], words[-2]} <= _INTEGERS and len(words) == 3:
        return _converted(words[1], words[2])
    if op.opcode == "cvt" and sum(not w for w in op.written) == 2 and words[-1] == "f32" and words[-2] in _PACKED:
        return _joined
    if op.opcode in _APART and words[-1] in _PACKED and not any(w in _PACKED for w in words[1:-1]):
        return _apart(_PACKED[words[-1]])
    if op.opcode in ("bfi", "shf") and all(isinstance(o, Const) for o in _places(op)):
        return _inserted if op.opcode == "bfi" else _funnel(words)
    return None


def _places(op: Operation) -> list[Any]:
    """Return the operands of an instruction that say where bits go."""
    given = [o for o, written in zip(op.operands, op.written, strict=True) if not written]
    return given[2:]


def _masks(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return arguments[len(arguments) // 2 :]


def _union(out: Masks, *arguments: Any) -> None:
    out[...] = 0
    for mask in _masks(arguments):
        np.bitwise_or(out, mask, out)


def _apart(size: int) -> Callable[..., None]:
    part = (1 << size) - 1

    def rule(out: Masks, *arguments: Any) -> None:
        _union(out, *arguments)
        low, high = whole(out & np.uint8(part)), whole(out & np.uint8(part << size))
        out[...] = (low & np.uint8(part)) | (high & np.uint8(part << size & 0xFF))

    return rule


def _joined(out: Masks, a: Any, b: Any, ua: Any, ub: Any) -> None:
    """`cvt` of two values to the parts of one: the first is the upper one."""
    del a, b
    out[...] = (whole(ua) & np.uint8(0b1100)) | (whole(ub) & np.uint8(0b0011))


def _permuted(out: Masks, a: Any, b: Any, selector: Any, ua: Any, ub: Any, us: Any) -> None:
    del a, b
    both = (np.asarray(ua, np.uint8) & np.uint8(15)) | (np.asarray(ub, np.uint8) << np.uint8(4))
    chosen = np.asarray(selector).astype(np.uint32)
    out[...] = whole(us)
    for i in range(4):
        byte = (chosen >> np.uint32(4 * i) & np.uint32(7)).astype(np.uint8)
        out |= (both >> byte & np.uint8(1)) << np.uint8(i)


def _shift(opcode: str, type_: str) -> Callable[..., None]:
    size, signed = int(type_[1:]) // 8, type_[0] == "s" and opcode == "shr"
    full = (1 << size) - 1

    def rule(out: Masks, a: Any, by: Any, ua: Any, ub: Any) -> None:
        del a
        bits = np.minimum(np.asarray(by).astype(np.uint64), np.uint64(8 * size)).astype(np.uint32)
        mask = np.asarray(ua).astype(np.uint32) & np.uint32(full)
        low, high = bits // np.uint32(8), (bits + np.uint32(7)) // np.uint32(8)
        if opcode == "shl":
            moved = mask << low | mask << high
        else:
            if signed:  # the highest byte fills in
                mask = mask | (mask >> np.uint32(size - 1)) * np.uint32(0xFF << size)
            moved = mask >> low | mask >> high
        out[...] = (moved & np.uint32(full)).astype(np.uint8) | whole(ub)

    return rule


def _converted(to: str, of: str) -> Callable[..., None]:
    wide, narrow = int(to[1:]) // 8, int(of[1:]) // 8
    known, full = np.uint8((1 << narrow) - 1), np.uint8((1 << wide) - 1)
    upper = np.uint8(0xFF & ~((1 << narrow) - 1))

    def rule(out: Masks, a: Any, ua: Any) -> None:
        del a
        mask = np.asarray(ua, np.uint8) & known
        if of[0] == "s" and wide > narrow:  # the sign fills in
            mask = mask | (whole(mask >> np.uint8(narrow - 1)) & upper)
        out[...] = mask & full

    return rule


def _inserted(out: Masks, a: Any, b: Any, at: Any, count: Any, *masks: Any) -> None:
    """`bfi`: the low bits of `a` in `b`; a byte of which both have a part comes from both."""
    del a
    size = 8 if np.asarray(b).dtype.itemsize == 8 else 4
    first = min(int(at) & 0xFF, 8 * size)
    stop = min(first + (int(count) & 0xFF), 8 * size)
    bits = ((1 << stop) - 1) & ~((1 << first) - 1)
    touched = sum(1 << i for i in range(size) if bits >> 8 * i & 0xFF)
    filled = sum(1 << i for i in range(size) if bits >> 8 * i & 0xFF == 0xFF)
    low, high = first // 8, -(-first // 8)
    mask = np.asarray(masks[0]).astype(np.uint32)
    moved = (mask << np.uint32(low) | mask << np.uint32(high)) & np.uint32(touched)
    out[...] = moved.astype(np.uint8) | (np.asarray(masks[1], np.uint8) & np.uint8((1 << size) - 1 & ~filled))


def _funnel(words: list[str]) -> Callable[..., None]:
    """`shf` of the pair b:a by a constant."""
    left, wrap = "l" in words, "wrap" in words

    def rule(out: Masks, a: Any, b: Any, by: Any, ua: Any, ub: Any, uc: Any) -> None:
        del a, b, uc
        bits = int(by) & 31 if wrap else min(int(by), 32)
        bits = 32 - bits if left else bits
        low, high = (np.asarray(u).astype(np.uint32) & np.uint32(15) for u in (ua, ub))
        both = low | high << np.uint32(4)
        moved = both >> np.uint32(bits // 8) | both >> np.uint32(-(-bits // 8))
        out[...] = (moved & np.uint32(15)).astype(np.uint8)

    return rule
