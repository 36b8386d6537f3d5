"""Registers as Python values: `Reg`, `NegPred`, `PipeRef`, `RegArray`. `operators` says what their operators emit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Never, final, overload

from warpsmith.base.place import error
from warpsmith.dsl.operators import binary, compare, divide, extremum, invert, move, reversed_subtract, shift

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
            "write `with ptx.if_(p):` for a test at run time, and ptx.inst.and_.pred(d, p, q) for `and`",
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
        return reversed_subtract(self, other)

    def __mul__(self, other: object) -> Reg:
        return binary("*", self, other)

    def __rmul__(self, other: object) -> Reg:
        return binary("*", self, other)

    def __truediv__(self, other: object) -> Never:
        divide("/", self)

    def __floordiv__(self, other: object) -> Never:
        divide("//", self)

    def __mod__(self, other: object) -> Never:
        divide("%", self)

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
        if isinstance(other, NegPred) or (isinstance(other, Reg) and other.type == "pred"):
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
        """Emit `max` with `other` (signed for s32 and s64, NaN loses in floating point) and return the result."""
        return extremum("max", self, other)

    def min(self, other: object) -> Reg:
        """Emit `min` with `other` (signed for s32 and s64, NaN loses in floating point) and return the result."""
        return extremum("min", self, other)


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
