"""Special registers: `ptx.special.tid.x()`, `ptx.sreg("%clusterid.x")`. Each call copies it into a fresh register."""

from __future__ import annotations

from typing import final

from warpsmith.assembly.ptx.special_registers import special_register
from warpsmith.base.place import error
from warpsmith.dsl.registers import Reg
from warpsmith.dsl.trace import current

__all__ = ["Dimensions", "Special", "ctaid_x", "ctaid_y", "special", "sreg"]


def sreg(name: str) -> Reg:
    """Copy the special register called `name` (`%laneid`, `%clusterid.x`, …) into a fresh register and return that."""
    if not isinstance(name, str):
        raise error(f"a special register is named by text, not {type(name).__name__}", 'write e.g. ptx.sreg("%laneid")')
    full = name if name.startswith("%") else f"%{name}"
    found = special_register(full)
    if found is None or found.vector > 1:
        raise error(f"PTX has no special register {name}", "see PTX ISA chapter 10; of a vector name an element: %tid.x")
    trace = current()
    result = trace.new(found.type)
    trace.emit(f"mov.{found.type}", (result, full))
    return result


@final
class Dimensions:
    """A special register with components: `.x() .y() .z()`."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def x(self) -> Reg:
        """Copy the x component."""
        return sreg(f"{self._name}.x")

    def y(self) -> Reg:
        """Copy the y component."""
        return sreg(f"{self._name}.y")

    def z(self) -> Reg:
        """Copy the z component."""
        return sreg(f"{self._name}.z")


@final
class Special:
    """`ptx.special`: the special registers used most."""

    tid = Dimensions("%tid")
    ntid = Dimensions("%ntid")
    ctaid = Dimensions("%ctaid")
    nctaid = Dimensions("%nctaid")

    def laneid(self) -> Reg:
        """Copy `%laneid`."""
        return sreg("%laneid")

    def warpid(self) -> Reg:
        """Copy `%warpid`."""
        return sreg("%warpid")

    def clock(self) -> Reg:
        """Copy `%clock`, read here."""
        return sreg("%clock")


special = Special()


def ctaid_x() -> Reg:
    """Copy `%ctaid.x`."""
    return sreg("%ctaid.x")


def ctaid_y() -> Reg:
    """Copy `%ctaid.y`."""
    return sreg("%ctaid.y")
