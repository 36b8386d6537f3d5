"""Registers as Python values: `Reg`, `NegPred`, `PipeRef`, `RegArray`, and what Python's operators on them emit.

One instruction each, where they are written, by the register's type:

    u32 b32   a >> 1  →  shr.u32      a < b  →  setp.lt.u32
    s32       a >> 1  →  shr.s32      a < b  →  setp.lt.s32      64-bit likewise
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, final, overload

from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from warpsmith.base.ptx_types import PtxType
    from warpsmith.dsl.protocols import ScopeView

__all__ = ["NegPred", "PipeRef", "Reg", "RegArray", "move"]


class Reg:
    """One PTX register: `.name`, `.dtype`. Comparisons give a predicate register, arithmetic a new register."""

    __slots__ = ("dtype", "name", "scope", "type")

    def __init__(self, name: str, dtype: PtxType, scope: ScopeView) -> None:
        self.name = name
        self.dtype = dtype
        self.scope = scope
        self.type = dtype.reg
        """Name of the type it is declared with."""

    def __repr__(self) -> str:
        return f"Reg({self.name}, {self.dtype})"

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise error(
            f"the register {self.name} has no value while the kernel is traced, so Python cannot test it",
            "write `with ptx.if_(p):` for a test at run time",
        )

    def __index__(self) -> int:
        raise error(f"the register {self.name} has no value while the kernel is traced; an integer is needed here")

    # comparisons
    def __lt__(self, other: object) -> Reg:
        return compare("lt", self, other)

    def __le__(self, other: object) -> Reg:
        return compare("le", self, other)

    def __gt__(self, other: object) -> Reg:
        return compare("gt", self, other)

    def __ge__(self, other: object) -> Reg:
        return compare("ge", self, other)

    def __eq__(self, other: object) -> Reg:  # type: ignore[override]
        return compare("eq", self, other)

    def __ne__(self, other: object) -> Reg:  # type: ignore[override]
        return compare("ne", self, other)

    # arithmetic: new register
    def __add__(self, other: object) -> Reg:
        return binary("+", self, other)

    def __radd__(self, other: object) -> Reg:
        return binary("+", self, other)

    def __sub__(self, other: object) -> Reg:
        return binary("-", self, other)

    def __rsub__(self, other: object) -> Reg:
        return _reversed_subtract(self, other)

    def __mul__(self, other: object) -> Reg:
        return binary("*", self, other)

    def __rmul__(self, other: object) -> Reg:
        return binary("*", self, other)

    def __lshift__(self, other: object) -> Reg:
        return shift("<<", self, other)

    def __rshift__(self, other: object) -> Reg:
        return shift(">>", self, other)

    def __and__(self, other: object) -> Reg:
        return binary("&", self, other)

    def __rand__(self, other: object) -> Reg:
        return binary("&", self, other)

    @overload
    def __or__(self, other: Reg) -> Reg: ...
    @overload
    def __or__(self, other: object) -> Reg: ...
    def __or__(self, other: object) -> Reg | PipeRef:
        if isinstance(other, (Reg, NegPred)) and self.type == "pred":
            return PipeRef(self, other)
        return binary("|", self, other)

    def __ror__(self, other: object) -> Reg:
        return binary("|", self, other)

    def __xor__(self, other: object) -> Reg:
        return binary("^", self, other)

    def __rxor__(self, other: object) -> Reg:
        return binary("^", self, other)

    def __invert__(self) -> Reg | NegPred:
        if self.type == "pred":
            return NegPred(self)
        return invert(self)

    # arithmetic: in place
    def __iadd__(self, other: object) -> Reg:
        return binary("+", self, other, self)

    def __isub__(self, other: object) -> Reg:
        return binary("-", self, other, self)

    def __imul__(self, other: object) -> Reg:
        return binary("*", self, other, self)

    def __ilshift__(self, other: object) -> Reg:
        return shift("<<", self, other, self)

    def __irshift__(self, other: object) -> Reg:
        return shift(">>", self, other, self)

    def __iand__(self, other: object) -> Reg:
        return binary("&", self, other, self)

    def __ior__(self, other: object) -> Reg:
        return binary("|", self, other, self)

    def __ixor__(self, other: object) -> Reg:
        return binary("^", self, other, self)

    def max(self, other: object) -> Reg:
        """Emit an integer `max` with `other` (signed for s32 and s64) and return the result."""
        return binary("max", self, other)

    def min(self, other: object) -> Reg:
        """Emit an integer `min` with `other` (signed for s32 and s64) and return the result."""
        return binary("min", self, other)


@final
class NegPred:
    """A negated predicate, `~p`: `@!p` as a guard, `!p` as an operand."""

    __slots__ = ("reg",)

    def __init__(self, reg: Reg) -> None:
        self.reg = reg

    def __invert__(self) -> Reg:
        return self.reg

    def __or__(self, other: Reg | NegPred) -> PipeRef:
        return PipeRef(self, other)

    def __repr__(self) -> str:
        return f"~{self.reg!r}"

    def __bool__(self) -> bool:
        return bool(self.reg)


@final
class PipeRef:
    """A pair operand, `p | q`: the two destinations of `setp`, `shfl.sync`, `elect.sync`, `match.all`."""

    __slots__ = ("left", "right")

    def __init__(self, left: Reg | NegPred, right: Reg | NegPred) -> None:
        self.left = left
        self.right = right

    def __repr__(self) -> str:
        return f"{self.left!r} | {self.right!r}"


class RegArray:
    """Registers declared together, `.reg .f32 %acc<n>`: indexable, iterable, sized; whole it is a vector operand."""

    __slots__ = ("_regs", "base", "count", "dtype")

    def __init__(self, base: str, dtype: PtxType, regs: list[Reg]) -> None:
        self.base = base
        self.dtype = dtype
        self.count = len(regs)
        self._regs = regs

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Reg]:
        return iter(self._regs)

    @overload
    def __getitem__(self, index: int) -> Reg: ...
    @overload
    def __getitem__(self, index: slice) -> list[Reg]: ...
    def __getitem__(self, index: int | slice) -> Reg | list[Reg]:
        if isinstance(index, Reg):
            raise error(
                f"a register array is indexed while tracing, and {index.name} has no value then",
                "registers cannot be addressed at run time; use shared or local memory",
            )
        try:
            return self._regs[index]
        except IndexError:
            raise error(f"index {index} is outside the register array {self.base} of {self.count}") from None

    def __setitem__(self, index: int, value: object) -> None:
        """Move `value` into element `index`; the declaration stays. An in-place operator's own result needs no move."""
        target = self[index]
        if value is not target:
            move(target, value)

    def regs(self) -> list[Reg]:
        """Return the registers as a list."""
        return list(self._regs)

    def hw_order(self, reverse: bool = False) -> list[Reg]:
        """Return the registers in ascending order, or descending with `reverse`."""
        return self._regs[::-1] if reverse else list(self._regs)

    def __repr__(self) -> str:
        return f"RegArray({self.base}<{self.count}>, {self.dtype})"


# --- what the operators emit ---

_INTEGERS = {"b32": "u32", "u32": "u32", "s32": "s32", "b64": "u64", "u64": "u64", "s64": "s64"}
"""register type -> the type arithmetic on it uses."""

_MNEMONICS = {"+": "add.{t}", "-": "sub.{t}", "*": "mul.lo.{t}", "max": "max.{t}", "min": "min.{t}",
              "&": "and.b{n}", "|": "or.b{n}", "^": "xor.b{n}"}  # fmt: skip

_COMPARABLE = _INTEGERS | {t: t for t in ("u16", "s16", "f16", "f16x2", "f32", "f64")} | {"b16": "u16"}

_FLOAT_HINT = "write the instruction: ptx.inst.{name}.rn.{type}(d, a, b) says how it rounds"


def _is_reg(value: object) -> bool:
    return isinstance(value, Reg)


def _integer_type(symbol: str, a: Reg) -> str:
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


def _other(symbol: str, a: Reg, b: object) -> object:
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
        raise error(f"the dimension {b!r} has no value in this trace", f"give it one: k.ptx({b}=…)")
    raise error(f"`{symbol}` needs a register or an int at its right, not {type(b).__name__}")


def widen(a: Reg, to: str) -> Reg:
    """Return a 32-bit register converted to the 64-bit type `to` (sign-extended if it is signed)."""
    result = a.scope.trace.new(TYPES[to])
    source = _INTEGERS[a.type]
    a.scope.trace.emit(f"cvt.{'s64' if source == 's32' else 'u64'}.{source}", (result, a))
    return result


def binary(symbol: str, a: Reg, b: object, into: Reg | None = None) -> Reg:
    """Emit `into = a symbol b`; a new register of `a`'s type when `into` is None."""
    trace = a.scope.trace
    if a.type == "pred" and symbol in "&^" and (_is_reg(b) or hasattr(b, "reg")):
        result = trace.new(a.dtype) if into is None else into
        trace.emit({"&": "and.pred", "^": "xor.pred"}[symbol], (result, a, b))
        return result
    kind = _integer_type(symbol, a)
    b = _other(symbol, a, b)
    if not isinstance(b, int):
        right: Reg = b  # type: ignore[assignment]
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


def _reversed_subtract(a: Reg, b: object) -> Reg:
    """Emit `b - a` for an integer `b`."""
    kind = _integer_type("-", a)
    result = a.scope.trace.new(a.dtype)
    a.scope.trace.emit(f"sub.{kind}", (result, _other("-", a, b), a))
    return result


def shift(symbol: str, a: Reg, b: object, into: Reg | None = None) -> Reg:
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


def invert(a: Reg) -> Reg:
    """Emit the bitwise complement."""
    kind = _integer_type("~", a)
    result = a.scope.trace.new(a.dtype)
    a.scope.trace.emit(f"not.b{kind[1:]}", (result, a))
    return result


def compare(op: str, a: Reg, b: object) -> Reg:
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


def move(target: Reg, value: object) -> None:
    """Emit `mov` of a register, number, vector (packs) or address into `target`."""
    kind = _MOVES.get(target.type, target.type)
    if not kind:
        raise error(f"there is no mov for the 8-bit register {target.name}", "8-bit registers are for ld, st and cvt")
    if isinstance(value, (list, tuple)) and kind[0] in "us":
        kind = "b" + kind[1:]
    target.scope.trace.emit(f"mov.{kind}", (target, value))
