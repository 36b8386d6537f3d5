"""Memory operands: `ptx.addr(base, offset)` and everything that knows where it lives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final, runtime_checkable

from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.registers import Reg

if TYPE_CHECKING:
    from warpsmith.dsl.protocols import TraceView

__all__ = ["Address", "Located", "TensorAddress", "address", "in_register", "locate", "symbol_register"]


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


@runtime_checkable
class Located(Protocol):
    """Anything with an address: allocations, slices, barriers, kernel parameters, descriptors."""

    def location(self) -> tuple[Reg | str, int]:
        """Return (base, byte offset)."""
        ...


def locate(value: object) -> tuple[Reg | str, int]:
    """Return (base, byte offset) of `value`: a register, a name, or anything `Located`."""
    if isinstance(value, Reg):
        if value.dtype.bits not in (32, 64) or value.dtype.kind in ("float", "packed"):
            raise error(
                f"{value.name} of type {value.dtype} cannot hold an address",
                "an address is a 32-bit (shared) or 64-bit (global) integer register",
            )
        return value, 0
    if isinstance(value, str):
        return value, 0
    if isinstance(value, Located):
        return value.location()
    raise error(
        f"{type(value).__name__} is not an address",
        "give a register, an allocation, a barrier, ptx.addr(base, offset) or the name of a variable",
    )


def address(base: object, offset: object = None) -> Address:
    """Return the memory operand `[base+offset]`; a register as `offset` is added by an instruction first."""
    where, start = locate(base)
    if offset is None:
        return Address(where, start)
    if isinstance(offset, Reg):
        if isinstance(where, str):
            where = symbol_register(offset.scope.trace, where)
        return Address(where + offset, start)
    if isinstance(offset, int) and not isinstance(offset, bool):
        if not -(1 << 31) <= start + offset < 1 << 31:
            raise error(f"the address offset {start + offset} does not fit 32 bits", "add it to the base register instead")
        return Address(where, start + int(offset))
    raise error(f"an address offset is a number of bytes, not {offset!r}")


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
