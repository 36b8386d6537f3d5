"""Is this instruction right? The PTX checker says so, from the declarations; its verdict is kept by mnemonic and operand kinds.

Before it can be asked, Python values become operands, and what a value becomes depends on its place: an int in an f32 place
is a float constant, a register in an address place gets brackets. `operand_kinds` reads that from the declarations too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.isa import match
from warpsmith.assembly.ptx.tree import Immediate
from warpsmith.base.place import error

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import Match, OperandSlot
    from warpsmith.assembly.ptx.tree import Instruction
    from warpsmith.base.errors import Problem
    from warpsmith.dsl.signature import Signature

__all__ = ["Plan", "operand_kinds", "refuse", "steps", "values_matter"]

_INTEGERS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "big": 128}


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """What is known of a checked combination of mnemonic and operand kinds."""

    kinds: tuple[str, ...]
    """How each operand is converted: see `operands.convert`."""
    values_matter: bool
    """The verdict depends on the values of constants too."""
    addresses: bool
    """Some operand may have to be put into a register first."""


@cache
def values_matter(mnemonic: str) -> bool:
    """Say whether the verdict on `mnemonic` can depend on the value of a constant."""
    return any(m.row.rules or any(s.choices or s.range for s in m.operands) for m in match(mnemonic))


@cache
def steps(mnemonic: str) -> tuple[tuple[int, int], ...]:
    """Return the PTX versions at which something about `mnemonic` becomes available, ascending."""
    return tuple(sorted({need.ptx for m in match(mnemonic) for need in m.needs if need.ptx is not None}))


@cache
def operand_kinds(mnemonic: str, signatures: tuple[Signature, ...]) -> tuple[str, ...]:
    """Return how to convert each operand, by the declared form that comes nearest in number and shape of operands."""
    forms = sorted(match(mnemonic), key=lambda m: _distance(m, signatures))
    if not forms:
        return ("",) * len(signatures)
    slots = forms[0].operands
    opcode = mnemonic.partition(".")[0]
    return tuple(_kind(opcode, slots[i], s) if i < len(slots) else "" for i, s in enumerate(signatures))


def _distance(form: Match, signatures: tuple[Signature, ...]) -> int:
    slots = form.operands
    least = sum(not s.optional for s in slots)
    if not least <= len(signatures) <= len(slots):
        return 100
    return sum(_unlike(s, sig) for s, sig in zip(slots, signatures, strict=False))


def _unlike(slot: OperandSlot, sig: Signature) -> int:
    vector = isinstance(sig, tuple) and sig[0] == "v"
    if vector != (slot.count is not None) or (vector and slot.count not in (None, len(sig) - 1)):
        return 2
    address = isinstance(sig, str) and sig.startswith("@")
    return int(address and slot.kind != "address") + int(slot.name == "_" and sig != "_")


def _kind(opcode: str, slot: OperandSlot, sig: Signature) -> str:
    if slot.kind == "address":
        narrow = isinstance(sig, str) and (sig.startswith("@n") or sig in ("b32", "u32", "s32"))
        wide = (slot.space or "generic").partition("::")[0] in ("generic", "global", "const")
        return f"too narrow: .{slot.space or 'generic'} addresses" if narrow and wide else slot.kind
    if slot.kind == "label":
        return slot.kind
    if slot.type is not None and slot.type.name in ("f32", "f64"):
        return slot.type.name
    if slot.type is not None and slot.type.name == "b64" and sig == "f":
        return "f64"
    if sig in ("@", "@n"):
        return "symbol" if opcode == "mov" else "value"
    if isinstance(sig, str) and sig in _INTEGERS and slot.type is not None:
        bits = slot.type.bits
        if slot.kind == "value" and slot.type.kind in ("bits", "unsigned", "signed") and _INTEGERS[sig] > bits:
            return f"too wide for {bits} bits"
    return ""


def refuse(instruction: Instruction, problem: Problem) -> Exception:
    """Build the error of a checker's problem, in the DSL's words."""
    mnemonic, message, hint = instruction.mnemonic, problem.message, problem.hint
    version = re.fullmatch(r"write `\.version (\d+)\.(\d+)` or later", hint)
    if version:
        hint = f"leave version= out of @kernel, or write version=({version[1]}, {version[2]})"
    elif hint.startswith("compile for one of "):
        hint = "choose another arch= in @kernel, or another instruction"
    if "is a floating-point constant" in message:
        value = next((o.value for o in instruction.operands if isinstance(o, Immediate) and o.kind != "int"), None)
        message = re.sub(r"`0[fd]\w+`", f"`{value}`", message)
        hint = hint or "write an int"
    if "is a negated predicate" in message or message.endswith("is not a predicate register"):
        hint = "compare first: p = (a != 0)"
    if message.endswith("should be an address in brackets"):
        hint = "write ptx.addr(…) around it"
    if message.endswith("is an address, a value is wanted here"):
        hint = "load it into a register first; an element of a shared array has as many indices as the array has dimensions"
    return error(message if mnemonic in message else f"{mnemonic}: {message}", hint)
