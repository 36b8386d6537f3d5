"""What Python's operators on registers emit: one instruction each, by the register's type.

u32 b32   a >> 1  →  shr.u32      a < b  →  setp.lt.u32
s32       a >> 1  →  shr.s32      a < b  →  setp.lt.s32      64-bit likewise
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Never

from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.dimension import valueless

if TYPE_CHECKING:
    from warpsmith.dsl.protocols import RegView

__all__ = ["binary", "compare", "divide", "extremum", "invert", "move", "reversed_subtract", "shift"]

_INTEGERS = {"b32": "u32", "u32": "u32", "s32": "s32", "b64": "u64", "u64": "u64", "s64": "s64"}
"""register type -> the type arithmetic on it uses."""

_MNEMONICS = {"+": "add.{t}", "-": "sub.{t}", "*": "mul.lo.{t}", "max": "max.{t}", "min": "min.{t}",
              "&": "and.b{n}", "|": "or.b{n}", "^": "xor.b{n}"}  # fmt: skip

_COMPARABLE = _INTEGERS | {t: t for t in ("u16", "s16", "f16", "f16x2", "f32", "f64")} | {"b16": "u16"}

_FLOAT_HINT = "write the instruction: ptx.inst.{name}.rn.{type}(d, a, b) says how it rounds"


_EXTREMES = frozenset({"f16", "bf16", "f16x2", "bf16x2", "f32", "f64"})


def _is_reg(value: object) -> bool:
    return hasattr(value, "scope") and hasattr(value, "dtype")


def divide(symbol: str, a: RegView) -> Never:
    """Refuse a division: PTX divides integers towards zero, where Python rounds down, and floats in several ways."""
    if a.dtype.kind in ("float", "packed"):
        hint = f"write the instruction: ptx.inst.div.rn.{a.dtype}(d, a, b) says how it rounds"
    else:
        hint = "write ptx.inst.div.u32(d, a, b) or rem, which round towards zero; for powers of two `>>` and `&` cost less"
    raise error(f"`{symbol}` is not defined for {a.name} of type {a.dtype}", hint)


def _integer_type(symbol: str, a: RegView) -> str:
    kind = _INTEGERS.get(a.type)
    if kind is None or a.dtype.kind in ("float", "packed"):
        words = {"+": "add", "-": "sub", "*": "mul"}
        if a.dtype.kind in ("float", "packed") and symbol in words:
            hint = _FLOAT_HINT.format(name=words[symbol], type=a.dtype)
        elif a.type == "pred":
            hint = "combine predicates with ptx.inst.and_.pred(d, p, q), or_.pred, xor.pred"
        else:
            hint = "operators work on 32- and 64-bit integer registers; write the instruction with ptx.inst"
        raise error(f"`{symbol}` is not defined for {a.name} of type {a.dtype}", hint)
    return kind


def _other(symbol: str, a: RegView, b: object) -> object:
    """Check the right operand against `a`; return it, or the register it was widened into."""
    if isinstance(b, int):
        bits = TYPES[a.type].bits
        if not -(1 << (bits - 1)) <= b < 1 << bits:
            raise error(f"the integer {b} does not fit the {bits} bits of {a.name}")
        return int(b)
    if isinstance(b, float):
        raise error(f"a float ({b}) in the integer operation `{symbol}` on {a.name} of type {a.dtype}", "write an int")
    if _is_reg(b):
        return b
    if isinstance(b, str):
        raise valueless(b)
    hint = ""
    if hasattr(type(b), "location"):  # what ptx.addr takes: shared memory, a barrier, a tensor
        hint = "an address is written ptx.addr(what, bytes): the bytes are an int or a 32-bit register"
    raise error(f"`{symbol}` on {a.name} takes a register or an int, not {type(b).__name__}", hint)


def widen(a: RegView, to: str) -> Any:
    """Return a 32-bit register converted to the 64-bit type `to` (sign-extended if it is signed)."""
    result = a.scope.trace.new(TYPES[to])
    source = _INTEGERS[a.type]
    a.scope.trace.emit(f"cvt.{'s64' if source == 's32' else 'u64'}.{source}", (result, a))
    return result


def binary(symbol: str, a: RegView, b: object, into: Any = None) -> Any:
    """Emit `into = a symbol b`; a new register of `a`'s type when `into` is None."""
    trace = a.scope.trace
    if a.type == "pred" and symbol in "&^" and (_is_reg(b) or hasattr(b, "reg")):
        result = trace.new(a.dtype) if into is None else into
        trace.emit({"&": "and.pred", "^": "xor.pred"}[symbol], (result, a, b))
        return result
    kind = _integer_type(symbol, a)
    b = _other(symbol, a, b)
    if not isinstance(b, int):
        right: RegView = b  # type: ignore[assignment]
        other = _integer_type(symbol, right)
        if other[1:] != kind[1:]:
            if kind.endswith("32") and into is not None:
                raise error(
                    f"`{symbol}=` would put the 64-bit {right.name} into the 32-bit {a.name}",
                    "convert first: ptx.cvt(u32, u64, d, s)",
                )
            if kind.endswith("32"):
                a, kind = widen(a, "u64" if kind == "u32" else "s64"), ("u64" if kind == "u32" else "s64")
            else:
                b = widen(right, kind)
    result = trace.new(a.dtype) if into is None else into
    trace.emit(_MNEMONICS[symbol].format(t=kind, n=kind[1:]), (result, a, b))
    return result


def extremum(symbol: str, a: RegView, b: object) -> Any:
    """Emit `max` or `min`: no rounding is open in them, so they are there for floating point as well (a NaN loses)."""
    if a.dtype.name not in _EXTREMES:
        return binary(symbol, a, b)
    result = a.scope.trace.new(a.dtype)
    a.scope.trace.emit(f"{symbol}.{a.dtype}", (result, a, b))
    return result


def reversed_subtract(a: RegView, b: object) -> Any:
    """Emit `b - a` for an integer `b`."""
    kind = _integer_type("-", a)
    result = a.scope.trace.new(a.dtype)
    a.scope.trace.emit(f"sub.{kind}", (result, _other("-", a, b), a))
    return result


def shift(symbol: str, a: RegView, b: object, into: Any = None) -> Any:
    """Emit a shift: `>>` is arithmetic on signed registers, logical on the others."""
    trace = a.scope.trace
    kind = _integer_type(symbol, a)
    if isinstance(b, int):
        if not 0 <= b < int(kind[1:]):
            raise error(f"a shift of a {kind[1:]}-bit register by {b}", f"shift by 0 to {int(kind[1:]) - 1}")
    elif _is_reg(b):
        if _integer_type(symbol, b)[1:] != "32":  # type: ignore[arg-type]
            raise error("a shift amount is a 32-bit register", "convert it first: ptx.cvt(u32, u64, d, s)")
    else:
        raise error(f"`{symbol}` needs a register or an int at its right, not {type(b).__name__}")
    result = trace.new(a.dtype) if into is None else into
    trace.emit(f"shl.b{kind[1:]}" if symbol == "<<" else f"shr.{kind}", (result, a, b))
    return result


def invert(a: RegView) -> Any:
    """Emit the bitwise complement."""
    kind = _integer_type("~", a)
    result = a.scope.trace.new(a.dtype)
    a.scope.trace.emit(f"not.b{kind[1:]}", (result, a))
    return result


def compare(op: str, a: RegView, b: object) -> Any:
    """Emit `setp.op` by `a`'s type (b32 compares as u32) and return the predicate."""
    trace = a.scope.trace
    kind = _COMPARABLE.get(a.type)
    if kind is None or a.dtype.name in ("bf16", "tf32") or a.dtype.kind == "packed":
        hint = "combine predicates with ptx.inst.xor.pred" if a.type == "pred" else "write it with ptx.inst.setp"
        raise error(f"registers of type {a.dtype} are not compared by operators ({a.name})", hint)
    if kind in ("f16", "f32", "f64"):
        if not isinstance(b, (int, float)) and not _is_reg(b):
            raise error(f"a comparison needs a register or a number at its right, not {type(b).__name__}")
        b = float(b) if isinstance(b, int) else b
    else:
        b = _other(op, a, b)
        if not isinstance(b, int) and b.type in _INTEGERS and _INTEGERS[b.type][1:] != kind[1:]:  # type: ignore[union-attr]
            raise error(
                f"{a.name} has {kind[1:]} bits and {b.name} has {_INTEGERS[b.type][1:]}",  # type: ignore[union-attr]
                "convert one of them: ptx.cvt(u64, u32, d, s)",
            )
    result = trace.new(TYPES["pred"])
    trace.emit(f"setp.{op}.{kind}", (result, a, b))
    return result


_MOVES = {"b8": "", "u8": "", "s8": "", "b128": "b128", "f16": "b16", "f16x2": "b32", "pred": "pred"}


def _half_bits(value: float, kind: str) -> int:
    """Bits of a number as f16 or bf16, rounded to nearest even."""
    if kind == "f16":
        try:
            return int.from_bytes(struct.pack("<e", value), "little")
        except OverflowError:
            raise error(f"{value!r} is outside the range of f16", "write float('inf') for infinity") from None
    if value != value:
        return 0x7FFF
    try:
        bits = int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:
        raise error(f"{value!r} is outside the range of bf16", "write float('inf') for infinity") from None
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def move(target: RegView, value: object) -> None:
    """Emit `mov` of a register, number, vector (packs) or address into `target`; f16 and bf16 take the bits of a number."""
    kind = _MOVES.get(target.type, target.type)
    if not kind:
        raise error(f"there is no mov for the 8-bit register {target.name}", "8-bit registers are for ld, st and cvt")
    if isinstance(value, (list, tuple)) and kind[0] in "us":
        kind = "b" + kind[1:]
    if target.dtype.name in ("f16", "bf16") and isinstance(value, (int, float)):
        value = _half_bits(float(value), target.dtype.name)
    target.scope.trace.emit(f"mov.{kind}", (target, value))
