"""Operands of the tree → registers, constants and addresses of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.assembly.ptx.tree import AddressOperand, Immediate, Name, Operand, PairOperand, VectorOperand
from warpsmith.base.errors import CapabilityError, InputError
from warpsmith.base.ptx_types import TYPES, PtxType
from warpsmith.simulator.constants import constant
from warpsmith.simulator.memory import CONST_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from warpsmith.simulator.program import Address, Const, Lowered, Pair, Reg, Special, Vector
from warpsmith.simulator.registers import dtype_of
from warpsmith.simulator.scope import Register, Scope, Symbol
from warpsmith.simulator.special import FRAME_ADDRESS, SHARED_ADDRESS, is_special, special_constant, special_vector

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import OperandSlot
    from warpsmith.simulator.machine import Machine

__all__ = ["OperandLowering"]

_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "const": CONST_WINDOW, "param": PARAM_WINDOW}
_MEMBERS = {"x": 0, "y": 1, "z": 2, "w": 3, "r": 0, "g": 1, "b": 2, "a": 3}
_BITS = {1: "b8", 2: "b16", 4: "b32", 8: "b64"}


@final
class OperandLowering:
    """Lowers the operands of one function; `scope` is the scope the instruction stands in."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.scope = Scope()
        self.where = ""
        self.regs: dict[tuple[str, int, str, bool], Reg] = {}

    def register(self, name: Name) -> Register | None:
        """Return the register `name` means, with its member chosen, or None when it is none."""
        found = self.scope.find(name.name)
        member = name.member
        if found is None and "." in name.name and not member:
            base, _, member = name.name.rpartition(".")
            found = self.scope.find(base)
        if not isinstance(found, Register):
            return None
        if member and member not in _MEMBERS:
            raise CapabilityError(f"{self.where}simulator: the selector `.{member}` of a video instruction is not modelled")
        if member:
            return Register(found.bank, found.slot + _MEMBERS[member] * found.per, found.bits, found.type)
        return found

    def width(self, name: Name) -> int | None:
        """Return the bits of a register (1: predicate); None for any other name."""
        r = self.register(name)
        return None if r is None else r.bits

    def reg(self, name: Name, type_: PtxType | None) -> Reg:
        """Return a register operand as a value of `type_` (its own type where None)."""
        r = self.register(name)
        if r is None:
            raise InputError(f"{self.where}`{name.name}` is not declared")
        return self.cached(r, type_, name.negated)

    def cached(self, r: Register, type_: PtxType | None, negated: bool) -> Reg:
        """Return register `r` as a value of `type_`; one object for equal operands."""
        key = (r.bank, r.slot, r.type if type_ is None else type_.name, negated)
        found = self.regs.get(key)
        if found is None:
            dtype = np.bool_ if r.bank == "pred" else dtype_of(TYPES[r.type] if type_ is None else type_)
            if np.dtype(dtype).itemsize > {"pred": 1, "b16": 2, "b32": 4, "b64": 8}[r.bank]:
                raise InputError(f"{self.where}a register of type .{r.type} is too narrow for an operand of type .{type_}")
            found = self.regs[key] = Reg(r.bank, r.slot, dtype, r.per, negated)
        return found

    def special(self, name: str, type_: PtxType | None) -> Lowered:
        """Return a special register as an operand."""
        fixed = special_constant(name, self.machine)
        wide = name in ("%clock64", "%globaltimer", "%gridid", "%current_graph_exec") or name.endswith("_64")
        dtype = dtype_of(type_) if type_ is not None else (np.uint64 if wide else np.uint32)
        return Const(np.array(fixed, np.uint64).astype(dtype)[()]) if fixed is not None else Special(name, dtype)

    def value(self, operand: Operand, type_: PtxType | None) -> Lowered:
        """Return a plain operand: register, constant, special register, or the address of a name."""
        if isinstance(operand, Immediate):
            t = type_ or TYPES["b64"]
            return Const(constant(operand, t, dtype_of(t)))
        if isinstance(operand, VectorOperand):
            return Vector(tuple(self.value(e, type_) for e in operand.elements))
        if isinstance(operand, AddressOperand):
            return self._symbol_value(operand.base, operand.offset, type_)
        if not isinstance(operand, Name):
            raise InputError(f"{self.where}unexpected operand")
        if operand.name == "_":
            return None
        r = self.register(operand)
        if r is not None:
            if r.vector == 1:
                return self.cached(r, type_, operand.negated)
            parts = (Register(r.bank, r.slot + i * r.per, r.bits, r.type) for i in range(r.vector))
            return Vector(tuple(Reg(p.bank, p.slot, dtype_of(type_ or TYPES[r.type]), p.per) for p in parts))
        name = f"{operand.name}.{operand.member}" if operand.member else operand.name
        if is_special(name):
            if (parts := special_vector(name)) is not None:
                zero = Const(np.uint32(0))
                return Vector((*(self.special(p, TYPES["u32"]) for p in parts), zero))
            return self.special(name, type_)
        return self._symbol_value(operand, operand.offset, type_)

    def _symbol_value(self, base: Name | Immediate, offset: int, type_: PtxType | None) -> Lowered:
        dtype = dtype_of(type_) if type_ is not None else np.uint64
        if isinstance(base, Name):
            offset += self._element_offset(base)
        if isinstance(base, Name) and (found := self.symbol(base)).frame is not None:
            return Special(f"{FRAME_ADDRESS}{found.frame}+{found.address + offset}", dtype)
        if isinstance(base, Name) and self._differs(found := self.symbol(base)):
            return Special(f"{SHARED_ADDRESS}{found.address + offset}", dtype)
        address = self.symbol(base).address + offset if isinstance(base, Name) else int(base.value) + offset
        bits = np.dtype(dtype).itemsize * 8
        return Const(np.array(address & ((1 << bits) - 1), f"u{bits // 8}").view(dtype)[()])

    def _element_offset(self, name: Name) -> int:
        """Return where element `[index]` of a variable lies in it, in bytes (PTX ISA 6.4.2)."""
        return 0 if name.index is None else name.index * self.symbol(name).element

    def _differs(self, symbol: Symbol) -> bool:
        """Say whether the CTAs of a cluster have different addresses for a variable: theirs hold their rank (`cluster`)."""
        return symbol.space == "shared" and self.machine.cluster_size > 1

    def symbol(self, name: Name) -> Symbol:
        """Return the variable, parameter or function called `name`."""
        found = self.scope.find(name.name)
        if not isinstance(found, Symbol):
            raise InputError(f"{self.where}`{name.name}` is not declared")
        return found

    def address(self, operand: AddressOperand, slot: OperandSlot) -> Address:
        """Return an address; a variable named where the instruction takes a generic address gives its generic one."""
        inner: tuple[Lowered, ...] = ()
        for part, place in zip(operand.inner, slot.inner[-len(operand.inner) :] if operand.inner else (), strict=True):
            lowered = self.value(part, place.type or TYPES["s32"])
            inner += lowered.items if isinstance(lowered, Vector) else (lowered,)
        base = operand.base
        if isinstance(base, Immediate):
            return Address(None, _signed(int(base.value) + operand.offset, 64), inner)
        r = self.register(base)
        if r is not None:
            wide = r.bits == 64
            dtype = np.int64 if wide else dtype_of(f"u{r.bits}")
            return Address(Reg(r.bank, r.slot, dtype), _signed(operand.offset, 64 if wide else 32), inner, wide)
        s = self.symbol(base)
        offset = _signed(operand.offset + self._element_offset(base), 32 if s.space != "global" else 64)
        window = _WINDOWS.get(s.space, 0) if slot.space is None else 0
        if s.frame is not None:
            return Address(Special(f"{FRAME_ADDRESS}{s.frame}+{s.address}", np.int64), window + offset, inner)
        if self._differs(s):
            return Address(Special(f"{SHARED_ADDRESS}{s.address}", np.int64), window + offset, inner)
        return Address(None, s.address + window + offset, inner)

    def operand(self, slot: OperandSlot, operand: Operand) -> Lowered:
        """Return any operand of an instruction as its slot says."""
        if slot.kind == "address":
            if isinstance(operand, Name):  # `a[1]`, which needs no brackets around it (PTX ISA 6.4.2)
                operand = AddressOperand(operand, operand.offset)
            assert isinstance(operand, AddressOperand)
            return self.address(operand, slot)
        if slot.kind == "immediate":
            return Const(_immediate(operand))
        if slot.pair is not None:
            if isinstance(operand, PairOperand):
                return Pair(self.value(operand.first, slot.type), self.value(operand.second, slot.pair.type))
            return Pair(self.value(operand, slot.type), None)
        lowered = self.value(operand, slot.type)
        if slot.count is None and isinstance(lowered, Vector) and len(lowered.items) == 1:
            return lowered.items[0]  # `{%r1}` stands for `%r1`
        return lowered

    def parts(self, register: Reg, count: int) -> list[Reg]:
        """Return a register cut in `count` equal parts, lowest first, as unsigned bits (`mov` to and from vectors)."""
        wide = {"b16": 2, "b32": 4, "b64": 8}[register.bank] * register.count
        each = wide // count
        dtype: Any = dtype_of(_BITS[each])
        if register.count == 2:
            return [Reg("b64", register.slot + i * each // 8, dtype, 1, False, i * each % 8) for i in range(count)]
        return [Reg(register.bank, register.slot, dtype, 1, False, i * each) for i in range(count)]


def _signed(value: int, bits: int) -> int:
    """Return an offset as the sum of so many bits takes it: it wraps (ptxas does, though PTX ISA 6.4.1 speaks of 32 bits)."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _immediate(operand: Operand) -> Any:
    if isinstance(operand, Immediate):
        return operand.value
    if isinstance(operand, Name) and operand.name == "WARP_SZ":
        return 32
    raise InputError("an immediate is needed here")
