"""Does one operand fit one place of a declared row?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import OperandSlot
    from warpsmith.base.ptx_types import PtxType
    from warpsmith.dsl.signature import Signature

__all__ = ["Reason", "slot_kind", "slot_problem"]

_LOOSE = ("ld", "ldu", "st", "cvt")
"""Opcodes whose registers may be wider than their type."""

_BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}


@final
@dataclass(frozen=True, slots=True)
class Reason:
    """Why a row does not take the operands: the operand's index (-1 for their number) and a sentence."""

    at: int
    text: str
    hint: str = ""


def _register_fits(want: PtxType, register: str, loose: bool) -> bool:
    have = TYPES[register]
    if want.name == "pred" or register == "pred":
        return want.name == register
    bits = TYPES.get(want.reg, want).bits
    if want.kind == "float" and want.name not in ("f16", "f32", "f64"):
        exact = register == want.reg
    elif want.kind in ("float", "packed"):
        exact = register in (want.name, want.reg, f"b{bits}") and not (want.name != "f16x2" and register == "f16x2")
    elif want.kind == "bits":
        exact = have.bits == want.bits
    else:
        exact = have.bits == want.bits and have.kind in ("bits", "unsigned", "signed", "packed")
    if exact or not loose or have.bits <= bits:
        return exact
    if want.kind == "bits":
        return True
    return have.kind == "bits" if want.kind in ("float", "packed") else have.kind in ("bits", "unsigned", "signed", "packed")


def _allowed(want: PtxType) -> str:
    if want.name == "pred":
        return "a predicate"
    bits = TYPES.get(want.reg, want).bits
    if want.kind == "bits":
        return f"a register of {bits} bits"
    if want.kind in ("unsigned", "signed"):
        return f"an integer register of {bits} bits"
    own = want.name if want.name in ("f16", "f32", "f64", "f16x2") else ""
    return f"a register of type {own or want.reg}" + (f" or b{bits}" if own and own != f"b{bits}" else "")


def _show(sig: Signature) -> str:
    if isinstance(sig, tuple):
        return f"a vector of {len(sig) - 1}" if sig[0] == "v" else "a pair"
    if sig in _BITS or sig == "big":
        return "an integer"
    if sig == "f":
        return "a float"
    if sig.startswith("@"):
        return "an address"
    if sig.startswith("!"):
        return "a negated predicate"
    if sig.startswith("special"):
        return "a special register"
    if sig == "_":
        return "_"
    return {"symbol": "the name of a variable", "word": "an undeclared name"}.get(sig, f"a register of type {sig}")


def slot_problem(opcode: str, slot: OperandSlot, sig: Signature) -> str:
    """Return what is wrong with an operand of kind `sig` at `slot`, '' when nothing is."""
    if isinstance(sig, tuple) and sig[0] == "|":
        if slot.pair is None:
            return "is a pair, and one operand is needed"
        return _single(opcode, slot, sig[1]) or _single(opcode, slot.pair, sig[2])  # type: ignore[arg-type]
    if slot.pair is not None and not slot.pair.optional:
        return f"is {_show(sig)}, and a pair d | p is needed"
    if slot.kind == "list":
        return ""
    if slot.count is not None and slot.kind in ("value", "predicate"):
        return _vector(opcode, slot, sig)
    if isinstance(sig, tuple):
        return f"is {_show(sig)}, and a single operand is needed"
    return _single(opcode, slot, sig)


def _vector(opcode: str, slot: OperandSlot, sig: Signature) -> str:
    elements = sig[1:] if isinstance(sig, tuple) else (sig,)
    if len(elements) != slot.count or (not isinstance(sig, tuple) and slot.count != 1):
        return f"is {_show(sig)}, and a vector of {slot.count} is needed"
    for i, e in enumerate(elements):
        text = _single(opcode, slot, e, element=True)  # type: ignore[arg-type]
        if text:
            return f"element {i} {text}"
    return ""


def _single(opcode: str, slot: OperandSlot, sig: str, element: bool = False) -> str:
    if slot.kind == "label":
        return "" if sig in ("word", "symbol") else f"is {_show(sig)}, and a label is needed"
    if sig == "_":
        return (
            ""
            if slot.name == "_" or (slot.direction != "read" and (slot.sink or element))
            else "is _, and a register is needed"
        )
    if slot.name == "_":
        return f'is {_show(sig)}, and there is no result here: write "_"'
    if slot.kind == "address":
        return _address(slot, sig)
    if slot.kind == "immediate":
        return "" if sig in _BITS else f"is {_show(sig)}, and an int known while tracing is needed"
    return _value(opcode, slot, sig)


def _address(slot: OperandSlot, sig: str) -> str:
    if sig == "symbol":
        return ""
    if sig.startswith("@"):
        wanted = next((s.count for s in slot.inner if s.count is not None), None)
        if wanted is not None and sig != f"@{wanted}":
            return f"needs {wanted} coordinates"
        return "has coordinates, and a plain address is needed" if sig != "@" and not slot.inner else ""
    if sig in TYPES and TYPES[sig].bits in (32, 64) and TYPES[sig].kind in ("bits", "unsigned", "signed"):
        return "needs coordinates: ptx.cp.async_.bulk.tensor_2d" if slot.inner else ""
    return f"is {_show(sig)}, and an address is needed"


def _value(opcode: str, slot: OperandSlot, sig: str) -> str:
    want = slot.type
    written = slot.direction != "read"
    if sig.startswith("!"):
        fine = slot.kind == "predicate" and slot.negatable and sig == "!pred"
        return "" if fine else "is a negated predicate, and it cannot be negated here"
    if sig in TYPES:
        if want is None or slot.untyped or _register_fits(want, sig, opcode in _LOOSE):
            return ""
        return f"is {_show(sig)}, and {want} needs {_allowed(want)}"
    if written:
        return f"is {_show(sig)}, and it is written: a register is needed"
    if sig.startswith("special"):
        return "" if opcode == "mov" else "is a special register, which only mov reads"
    if sig in ("symbol", "word", "@"):
        return "" if slot.symbol or slot.untyped or sig != "symbol" else f"is {_show(sig)}, and a register is needed"
    return _immediate(opcode, slot, sig)


def _immediate(opcode: str, slot: OperandSlot, sig: str) -> str:
    want = slot.type
    if slot.register_only:
        return f"is {_show(sig)}, and a register is needed"
    if want is None:
        return "" if sig in _BITS else f"is {_show(sig)}, and an integer or a register is needed"
    if want.name in ("f32", "f64"):
        return ""
    if want.kind in ("float", "packed"):
        return f"is {_show(sig)}, and {want} takes no immediate: move it into a register"
    if sig == "f":
        fine = want.kind == "bits" and want.bits >= 32 and opcode in ("mov", "st", "selp")
        return "" if fine else f"is a float, and {want} is an integer type"
    bits = 1 if want.name == "pred" else want.bits
    if sig == "big" or (bits > 1 and _BITS[sig] > bits):
        return f"is an integer that does not fit {bits} bits"
    return ""


def slot_kind(opcode: str, slot: OperandSlot, sig: Signature) -> str:
    """Return how the operand is converted: `address`, `f32` or `f64` (numbers become those bits), `label`, or ''."""
    if slot.kind in ("address", "label"):
        return slot.kind
    if slot.type is not None and slot.type.name in ("f32", "f64"):
        return slot.type.name
    if slot.type is not None and slot.type.name == "b64" and sig == "f":
        return "f64"
    if sig == "@":
        return "symbol" if opcode == "mov" else "value"
    return ""
