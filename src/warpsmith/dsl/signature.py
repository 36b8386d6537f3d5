"""The kinds of a call's operands: what the check of an instruction depends on, and the key under which it is remembered.

register → its declared type        int → i8 i16 i32 i64 (the bits it needs; `big` for more)        float → f
~p → !pred      p | q → ("|", …)     vector → ("v", …)
text → what it names      address → @, in a 32-bit register @n; with coordinates their number behind it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.special_registers import special_register
from warpsmith.base.place import error
from warpsmith.dsl.registers import NegPred, PipeRef, Reg, RegArray

if TYPE_CHECKING:
    from warpsmith.dsl.protocols import TraceView

__all__ = ["Signature", "signature"]

Signature = str | tuple[object, ...]


def _integer(value: int) -> str:
    if -128 <= value <= 255:
        return "i8"
    if -(1 << 15) <= value < 1 << 16:
        return "i16"
    if -(1 << 31) <= value < 1 << 32:
        return "i32"
    return "i64" if -(1 << 63) <= value < 1 << 64 else "big"


def _text(trace: TraceView, name: str) -> str:
    if name[:1] == "%" and special_register(name) is not None:
        return f"special {name}"
    if name == "_":
        return "_"
    found = trace.find(name)
    if isinstance(found, Reg):
        return found.type
    return "symbol" if found is not None else "word"


def signature(trace: TraceView, value: object) -> Signature:
    """Return the kind of one operand."""
    kind = type(value)
    if kind is Reg:
        return value.type  # type: ignore[union-attr]
    if kind is int:
        return _integer(value)  # type: ignore[arg-type]
    if kind is RegArray:
        return ("v", *[r.type for r in value])  # type: ignore[union-attr]
    if kind is list or kind is tuple:
        return ("v", *[signature(trace, v) for v in value])  # type: ignore[union-attr]
    if kind is float:
        return "f"
    if kind is str:
        return _text(trace, value)  # type: ignore[arg-type]
    if kind is NegPred:
        return "!" + value.reg.type  # type: ignore[union-attr]
    if kind is PipeRef:
        return ("|", signature(trace, value.left), signature(trace, value.right))  # type: ignore[union-attr]
    if hasattr(value, "location"):
        base = value.location()[0]  # type: ignore[union-attr]
        narrow = "n" if isinstance(base, Reg) and base.dtype.bits == 32 else ""
        coordinates = getattr(value, "coordinates", None)
        return f"@{narrow}" if coordinates is None else f"@{narrow}{len(coordinates)}"
    return _other(trace, value)


def _other(trace: TraceView, value: object) -> Signature:
    """numpy scalars, bools, enumerations: whatever Python itself would take for a number."""
    if isinstance(value, Reg):
        return value.type
    if isinstance(value, (bool, int)) or hasattr(value, "__index__"):
        return _integer(int(value))  # type: ignore[call-overload]
    if hasattr(value, "__float__"):
        return "f"
    raise error(f"{type(value).__name__} cannot be an operand", "give a Reg, an int, a float, a list of Regs or an address")
