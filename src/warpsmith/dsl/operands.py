"""Python values → operands of the PTX tree.

Reg → name        ~p → !p         p | q → pair        list, RegArray → vector
int → immediate   float → 0f…/0d… (the exact bits)    str → declared name, label or special register
ptx.addr(…), allocations, slices, barriers → [base+offset]
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.tree import AddressOperand, Immediate, Name, PairOperand, VectorOperand
from warpsmith.base.place import error
from warpsmith.dsl.registers import NegPred, PipeRef, Reg, RegArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.ptx.tree import Operand
    from warpsmith.dsl.protocols import TraceView

__all__ = ["convert", "float_immediate", "guard"]


def use(trace: TraceView, reg: Reg) -> None:
    """Raise when `reg` is not visible here: another kernel's, or of a scope that has ended."""
    scope = reg.scope
    if not scope.open and scope.number == 0:
        raise error(
            f"undeclared register {reg.name}: it belongs to a kernel whose body has ended",
            "registers live in the kernel that declares them",
        )
    if not scope.open:
        raise error(
            f"undeclared register {reg.name}: the ptx.scope() that declared it has ended",
            "declare it before the scope",
        )
    if scope.trace is not trace:
        raise error(f"the register {reg.name} belongs to another kernel", "registers live in the kernel that declares them")


def float_immediate(value: float, kind: str) -> Immediate:
    """Return the immediate that has the exact bits of `value` as f32 or f64."""
    if kind == "f64":
        return Immediate(f"0d{struct.pack('>d', value).hex().upper()}", value, "f64")
    try:
        bits = struct.pack(">f", value)
    except OverflowError:
        raise error(f"{value!r} is outside the range of f32", "write float('inf') for infinity") from None
    return Immediate(f"0f{bits.hex().upper()}", struct.unpack(">f", bits)[0], "f32")


def _name(trace: TraceView, kind: str, text: str) -> Name:
    if kind != "label":
        trace.check_name(text)
    return Name(text)


def _one(trace: TraceView, kind: str, value: object) -> Operand:
    if type(value) is Reg:
        scope = value.scope
        if not scope.open or scope.trace is not trace:
            use(trace, value)
        return AddressOperand(Name(value.name)) if kind == "address" else Name(value.name)
    if isinstance(value, int):
        if kind in ("f32", "f64"):
            return float_immediate(float(value), kind)
        return Immediate(str(int(value)), int(value))
    if isinstance(value, (RegArray, list, tuple)):
        return VectorOperand([_one(trace, kind, v) for v in value])
    if isinstance(value, float):
        return float_immediate(value, "f64" if kind in ("f64", "b64") else "f32")
    if isinstance(value, NegPred):
        use(trace, value.reg)
        return Name(value.reg.name, True)
    if isinstance(value, PipeRef):
        return PairOperand(_one(trace, kind, value.left), _one(trace, kind, value.right))
    if isinstance(value, str):
        name = _name(trace, kind, value)
        return AddressOperand(name) if kind == "address" else name
    location = getattr(value, "location", None)
    if location is not None:
        base, offset = location()
        coordinates = getattr(value, "coordinates", None)
        if kind == "symbol" and coordinates is None and isinstance(base, str):
            trace.check_name(base)
            return Name(base, offset=offset)
        inner = () if coordinates is None else (VectorOperand([_one(trace, "s32", c) for c in coordinates]),)
        if isinstance(base, Reg):
            use(trace, base)
            return AddressOperand(Name(base.name), offset, inner)
        return AddressOperand(_name(trace, kind, base), offset, inner)
    if hasattr(value, "__index__"):
        return Immediate(str(int(value)), int(value))  # type: ignore[call-overload]
    if hasattr(value, "__float__"):
        return _one(trace, kind, float(value))  # type: ignore[arg-type]
    raise error(f"{type(value).__name__} cannot be an operand", "give a Reg, an int, a float, a list of Regs or an address")


def convert(trace: TraceView, kinds: Sequence[str], operands: Sequence[object]) -> list[Operand]:
    """Return the tree operands of one instruction.

    A kind is `f32` or `f64` (numbers become those bits), `address` (registers and names get brackets), `label`, `symbol` (an
    address becomes the variable's name) or ''.
    """
    return [_one(trace, kind, v) for kind, v in zip(kinds, operands, strict=True)]


def guard(trace: TraceView, pred: Reg | NegPred) -> Name:
    """Return the guard `@p` or `@!p` of an instruction."""
    reg, negated = (pred.reg, True) if isinstance(pred, NegPred) else (pred, False)
    if not isinstance(reg, Reg):
        raise error(f"pred= needs a predicate register, not {type(pred).__name__}", "write pred=(a == b), or pred=~p")
    if reg.type != "pred":
        raise error(f"pred= needs a predicate, and {reg.name} is {reg.dtype}", f"write pred=({reg.name} != 0)")
    use(trace, reg)
    return Name(reg.name, negated)
