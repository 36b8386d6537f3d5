"""Memory operands: `ptx.addr(base, offset)` and everything that knows where it lives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.registers import Reg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.dsl.protocols import TraceView

__all__ = ["Address", "TensorAddress", "address", "in_register", "locate", "symbol_register"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Address:
    """`[base+offset]`: `base` is a register or the name of a variable or parameter; `offset` in bytes."""

    base: Reg | str
    offset: int = 0

    def location(self) -> tuple[Reg | str, int]:
        """Return (base, byte offset)."""
        return self.base, self.offset


@final
@dataclass(frozen=True, slots=True, eq=False)
class TensorAddress:
    """`[descriptor, {c0, c1}]`: a place in a tensor."""

    base: Reg | str
    offset: int
    coordinates: tuple[int | Reg, ...]

    def location(self) -> tuple[Reg | str, int]:
        """Return (base, byte offset) of the descriptor."""
        return self.base, self.offset


def locate(value: object) -> tuple[Reg | str, int]:
    """Return (base, byte offset) of `value`: a register, a name, or anything with a `location()`:
    allocations, slices, barriers, kernel parameters, descriptors.
    """
    if isinstance(value, Reg):
        if value.dtype.bits not in (32, 64) or value.dtype.kind in ("float", "packed"):
            raise error(
                f"{value.name} of type {value.dtype} cannot hold an address",
                "an address is a 32-bit (shared) or 64-bit (global) integer register",
            )
        return value, 0
    if isinstance(value, str):
        return value, 0
    location = getattr(value, "location", None)
    if location is not None:
        return location()
    raise error(
        f"{type(value).__name__} is not an address",
        "give a register, an allocation, a barrier, ptx.addr(base, offset) or the name of a variable",
    )


def address(base: object, offset: object = None, coordinates: Sequence[int | Reg] | None = None) -> Address | TensorAddress:
    """Return the memory operand `[base+offset]`; a register as `offset` is added by an instruction first.

    With `coordinates` it is a place in a tensor, `[base, {c0, c1}]`.
    """
    if coordinates is None and isinstance(base, (Address, TensorAddress)) and offset is None:
        return base
    where, start = locate(base)
    start = start if offset is None else start + _constant(offset) if not isinstance(offset, Reg) else start
    if isinstance(offset, Reg):
        if isinstance(where, str):
            where = symbol_register(offset.scope.trace, where)
        where = where + offset
    if coordinates is not None:
        return TensorAddress(where, start, tuple(coordinates))
    return Address(where, start)


def _constant(offset: object) -> int:
    if isinstance(offset, bool) or not hasattr(offset, "__index__"):
        hint = "coordinates in a tensor, the innermost first, are written ptx.addr(descriptor, coordinates=(c0, c1))"
        raise error(
            f"an address offset is a number of bytes, not {offset!r}", hint if isinstance(offset, (tuple, list)) else ""
        )
    value = int(offset)  # type: ignore[call-overload]
    if not -(1 << 31) <= value < 1 << 31:
        raise error(f"the address offset {value} does not fit 32 bits", "add it to the base register instead")
    return value


def symbol_register(trace: TraceView, name: str) -> Reg:
    """Emit `mov` of a variable's address into a fresh register: 32-bit in shared memory, else 64-bit."""
    wide = trace.space_of(name) not in ("shared",)
    result = trace.new(TYPES["u64" if wide else "u32"])
    trace.emit(f"mov.{result.type}", (result, name))
    return result


def in_register(trace: TraceView, value: object) -> Reg:
    """Return a register holding the address of `value`, emitting what that takes."""
    base, offset = locate(value)
    result = symbol_register(trace, base) if isinstance(base, str) else base
    if offset == 0:
        return result
    if isinstance(base, str):
        result += offset
        return result
    return result + offset
