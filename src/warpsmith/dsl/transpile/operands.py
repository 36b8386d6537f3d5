"""Operands of the tree as Python expressions; None for what only raw text can say."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.tree import AddressOperand, Immediate, Name, PairOperand, VectorOperand
from warpsmith.dsl.transpile.names import quoted

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.tree import Operand
    from warpsmith.dsl.transpile.names import Names

__all__ = ["expression", "guard"]


def expression(operand: Operand, names: Names) -> str | None:
    """Return the Python expression of an operand, None when the DSL has none."""
    if isinstance(operand, Name):
        return _name(operand, names)
    if isinstance(operand, Immediate):
        return _immediate(operand)
    if isinstance(operand, VectorOperand):
        elements = [expression(e, names) for e in operand.elements]
        return None if None in elements else f"[{', '.join(e for e in elements if e)}]"
    if isinstance(operand, PairOperand):
        parts = [_register(p, names) for p in (operand.first, operand.second)]
        return None if None in parts else " | ".join(p for p in parts if p)
    if isinstance(operand, AddressOperand):
        return _address(operand, names)
    return None


def _plain(name: Name) -> bool:
    return not (name.member or name.minus or name.offset or name.index is not None)


def _register(operand: Operand, names: Names) -> str | None:
    return names.python(operand.name) if isinstance(operand, Name) and _plain(operand) and not operand.negated else None


def _name(name: Name, names: Names) -> str | None:
    if not _plain(name):
        return None
    found = names.python(name.name)
    if found is None:
        return None if name.negated else quoted(name.name)
    return f"~{found}" if name.negated else found


def _immediate(value: Immediate) -> str | None:
    if value.kind == "int":
        return str(value.value) if isinstance(value.value, int) and value.text != "WARP_SZ" else None
    number = float(value.value)
    if math.isnan(number):
        return None
    if value.kind in ("f32", "float"):
        # a decimal constant is read as f64: the same in f32 only if it is exact there
        try:
            exact = struct.unpack("<f", struct.pack("<f", number))[0] == number
        except OverflowError:
            exact = False
        if not exact:
            return None
    return f'float("{number}")' if math.isinf(number) else repr(number)


def _address(address: AddressOperand, names: Names) -> str | None:
    if len(address.inner) > 1 or not isinstance(address.base, Name) or not _plain(address.base):
        return None
    base = _name(address.base, names)
    if base is None:
        return None
    arguments = [base]
    if address.offset or address.inner:
        arguments.append(str(address.offset))
    for part in address.inner:
        coordinates = expression(part, names)
        if coordinates is None or not coordinates.startswith("["):
            return None
        arguments.append(coordinates)
    return f"ptx.addr({', '.join(arguments)})"


def guard(predicate: Name | None, names: Names) -> str | None:
    """Return the `pred=` argument with its comma, '' without a guard; None when the register has no Python name."""
    if predicate is None:
        return ""
    found = names.python(predicate.name)
    return None if found is None else f", pred={'~' if predicate.negated else ''}{found}"
