"""Arithmetic, logic, compare, select, convert, load and store, with the type as an argument."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.base.place import error
from warpsmith.base.ptx_types import PtxType
from warpsmith.dsl.address import address
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.trace import current

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["add", "and_", "cvt", "ld", "mad", "mov", "mul", "not_", "or_", "selp", "setp", "shl", "shr", "st", "sub", "xor_"]

Pred = Reg | NegPred | None


def _type(dtype: PtxType) -> PtxType:
    if not isinstance(dtype, PtxType):
        raise error(f"a type of warpsmith.types is needed, not {type(dtype).__name__}", "write e.g. ptx.add(u32, d, a, b)")
    return dtype


def _emit(mnemonic: str, dtype: PtxType, operands: Sequence[object], pred: Pred) -> None:
    current().emit(f"{mnemonic}.{_type(dtype).name}", operands, pred)


def mov(dtype: PtxType, dst: Reg, src: object, *, pred: Pred = None) -> None:
    """Emit `mov.dtype dst, src`."""
    _emit("mov", dtype, (dst, src), pred)


def add(dtype: PtxType, dst: Reg, a: object, b: object, *, pred: Pred = None) -> None:
    """Emit `add.dtype dst, a, b`."""
    _emit("add", dtype, (dst, a, b), pred)


def sub(dtype: PtxType, dst: Reg, a: object, b: object, *, pred: Pred = None) -> None:
    """Emit `sub.dtype dst, a, b`."""
    _emit("sub", dtype, (dst, a, b), pred)


def mul(dtype: PtxType, dst: Reg, a: object, b: object, *, mode: str | None = None, pred: Pred = None) -> None:
    """Emit `mul{.mode}.dtype dst, a, b`; the mode of integers is lo unless given (hi, wide)."""
    if mode is None and isinstance(dtype, PtxType) and dtype.kind in ("unsigned", "signed"):
        mode = "lo"
    _emit(f"mul.{mode}" if mode else "mul", dtype, (dst, a, b), pred)


def mad(*args: object, mode: str = "lo", pred: Pred = None) -> Reg | None:
    """Emit `mad.mode`: `mad(dtype, dst, a, b, c)`, or `d = mad(a, b, c)` into a fresh register of `a`'s type."""
    if len(args) == 5 and isinstance(args[0], PtxType):
        _emit(f"mad.{mode}", args[0], args[1:], pred)
        return None
    if len(args) != 3 or not isinstance(args[0], Reg):
        raise error("ptx.mad takes (dtype, dst, a, b, c), or (a, b, c) with a register first")
    a = args[0]
    kind = a.type.replace("b", "u")
    if mode != "lo":
        raise error(f"ptx.mad(a, b, c) computes mode lo, not {mode}", "write ptx.mad(dtype, dst, a, b, c, mode=…)")
    result = current().new(a.dtype)
    current().emit(f"mad.lo.{kind}", (result, *args), pred)
    return result


def shl(dtype: PtxType, dst: Reg, a: object, b: object, *, pred: Pred = None) -> None:
    """Emit `shl.dtype dst, a, b`; shl exists for b16, b32, b64, so other types shift as those."""
    current().emit(f"shl.b{_type(dtype).bits}", (dst, a, b), pred)


def shr(dtype: PtxType, dst: Reg, a: object, b: object, *, pred: Pred = None) -> None:
    """Emit `shr.dtype dst, a, b`: arithmetic for signed types."""
    _emit("shr", dtype, (dst, a, b), pred)


def _bits(dtype: PtxType) -> str:
    return "pred" if _type(dtype).name == "pred" else f"b{dtype.bits}"


def and_(dtype: PtxType, dst: Reg, a: object, b: object, *, pred: Pred = None) -> None:
    """Emit a bitwise `and` of the type's width."""
    current().emit(f"and.{_bits(dtype)}", (dst, a, b), pred)


def or_(dtype: PtxType, dst: Reg, a: object, b: object, *, pred: Pred = None) -> None:
    """Emit a bitwise `or` of the type's width."""
    current().emit(f"or.{_bits(dtype)}", (dst, a, b), pred)


def xor_(dtype: PtxType, dst: Reg, a: object, b: object, *, pred: Pred = None) -> None:
    """Emit a bitwise `xor` of the type's width."""
    current().emit(f"xor.{_bits(dtype)}", (dst, a, b), pred)


def not_(dtype: PtxType, dst: Reg, src: object, *, pred: Pred = None) -> None:
    """Emit a bitwise `not` of the type's width."""
    current().emit(f"not.{_bits(dtype)}", (dst, src), pred)


def setp(cmp_op: str, dtype: PtxType, pred_out: object, a: object, b: object, *, pred: Pred = None) -> None:
    """Emit `setp.cmp_op.dtype pred_out, a, b`."""
    _emit(f"setp.{cmp_op}", dtype, (pred_out, a, b), pred)


def selp(dtype: PtxType, dst: Reg, true_val: object, false_val: object, pred_reg: Reg, *, pred: Pred = None) -> None:
    """Emit `selp.dtype`: dst = pred_reg ? true_val : false_val."""
    _emit("selp", dtype, (dst, true_val, false_val, pred_reg), pred)


def cvt(
    dst_type: PtxType, src_type: PtxType, dst: Reg, *src: object, rounding: str | None = None, ftz: bool = False,
    sat: bool = False, pred: Pred = None,
) -> None:  # fmt: skip
    """Emit `cvt{.rounding}{.ftz}{.sat}.dst_type.src_type dst, src` (two sources for packed results)."""
    mods = "".join([f".{rounding}" if rounding else "", ".ftz" if ftz else "", ".sat" if sat else ""])
    _emit(f"cvt{mods}.{_type(dst_type).name}", src_type, (dst, *src), pred)


def _vector(value: object) -> str:
    return f".v{len(value)}" if hasattr(value, "__len__") else ""  # type: ignore[arg-type]


def ld(
    dtype: PtxType, dst: object, addr: object, *, space: str | None = "global", cache: str | None = None, pred: Pred = None
) -> None:
    """Emit `ld{.space}{.cache}{.vN}.dtype dst, [addr]`; a list or array as `dst` loads a vector."""
    words = "".join(f".{w}" for w in (space, cache) if w)
    _emit(f"ld{words}{_vector(dst)}", dtype, (dst, address(addr)), pred)


def st(
    dtype: PtxType, addr: object, src: object, *, space: str | None = "global", cache: str | None = None, pred: Pred = None
) -> None:
    """Emit `st{.space}{.cache}{.vN}.dtype [addr], src`; a list or array as `src` stores a vector."""
    words = "".join(f".{w}" for w in (space, cache) if w)
    _emit(f"st{words}{_vector(src)}", dtype, (address(addr), src), pred)
