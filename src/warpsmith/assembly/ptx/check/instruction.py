"""One instruction against the declarations. Verdicts are kept by shape, so a repeated shape costs a dictionary look-up.

The shape of an instruction is its mnemonic with what the verdict depends on in each operand: kind and type of a register, space
of a variable, kind of a constant (its value where a row restricts it).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.check.complaint import Complaint, to_problem
from warpsmith.assembly.ptx.check.context import context
from warpsmith.assembly.ptx.check.forms import operands_form
from warpsmith.assembly.ptx.check.mnemonic import availability, newer, unknown
from warpsmith.assembly.ptx.check.operands import operand_fault
from warpsmith.assembly.ptx.check.values import BIT_FIELDS
from warpsmith.assembly.ptx.isa import match
from warpsmith.assembly.ptx.isa.rules import RULES
from warpsmith.assembly.ptx.special_registers import special_register
from warpsmith.assembly.ptx.tree import (
    AddressOperand,
    Immediate,
    Instruction,
    Name,
    Operand,
    PairOperand,
    VectorOperand,
)
from warpsmith.base.arch import parse_arch
from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from warpsmith.assembly.ptx.check.symbols import Lookup, Symbol
    from warpsmith.assembly.ptx.isa import Match, OperandSlot
    from warpsmith.base.errors import Problem

__all__ = ["check_instruction"]

_MOST_KEPT = 50_000
_kept: dict[Hashable, tuple[Complaint, ...]] = {}


def check_instruction(instruction: Instruction, lookup: Lookup, version: tuple[int, int], arch: str) -> list[Problem]:
    """Return what is wrong with `instruction` in a module of PTX `version` for `arch`.

    `lookup(name)` returns the `Symbol` a name stands for (registers: `register("b32")`), None for an undeclared name. Calls
    (`call`) are checked by the module checker. Raises nothing for a bad instruction; InputError for an unknown `arch`.
    """
    mnemonic = instruction.mnemonic
    operands = instruction.operands
    valued = _values_matter(mnemonic)
    key = (mnemonic, version, arch, *[_key(o, lookup, valued) for o in operands])
    if instruction.predicate is not None:
        key = (*key, "@", _key(instruction.predicate, lookup, False))
    complaints = _kept.get(key)
    if complaints is None:
        complaints = tuple(_complaints(instruction, lookup, version, arch))
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[key] = complaints
    if not complaints:
        return []
    return [to_problem(c, instruction) for c in complaints]


def _key(operand: Operand, lookup: Lookup, valued: bool) -> Hashable:
    if isinstance(operand, Name):
        return _name_key(operand, lookup(operand.name))
    if isinstance(operand, Immediate):
        return (operand.kind, operand.value) if valued else operand.kind
    if isinstance(operand, AddressOperand):
        base = _key(operand.base, lookup, valued)
        return "[]", base, operand.offset != 0 or operand.zero, *[_key(part, lookup, valued) for part in operand.inner]
    if isinstance(operand, VectorOperand):
        # most elements are plain registers: no further call for them
        return tuple(
            [
                symbol.shape
                if type(e) is Name
                and (symbol := lookup(e.name)) is not None
                and not (e.member or e.negated)
                and symbol.kind == "register"
                else _key(e, lookup, valued)
                for e in operand.elements
            ]
        )
    if isinstance(operand, PairOperand):
        return "|", _key(operand.first, lookup, valued), _key(operand.second, lookup, valued)
    return "()", *[_key(a, lookup, valued) for a in operand.arguments]


def _name_key(name: Name, symbol: Symbol | None) -> Hashable:
    if symbol is None:
        return "?", name.name
    shape = symbol.shape + name.name if symbol.kind == "special" else symbol.shape
    if name.negated or name.member or name.minus or name.index is not None:
        return shape, name.negated, name.member, name.minus, name.index is None
    return shape


@lru_cache(maxsize=20_000)
def _values_matter(mnemonic: str) -> bool:
    """Say whether the verdict on `mnemonic` can depend on the value of a constant."""
    return any(
        m.row.rules or m.row.opcode in BIT_FIELDS or any(s.choices or s.range for s in m.operands) for m in match(mnemonic)
    )


def _complaints(instruction: Instruction, lookup: Lookup, version: tuple[int, int], arch: str) -> list[Complaint]:
    guard = _guard(instruction.predicate, lookup)
    matches = match(instruction.mnemonic)
    if not matches:
        return [*guard, unknown(instruction.mnemonic)]
    if instruction.opcode == "call":
        found = availability(matches[0], version, arch)
        return [*guard, found] if found else guard
    best: list[Complaint] | None = None
    for one in matches:
        found = _against(one, instruction, lookup, version, arch)
        if not found:
            return guard
        if best is None or sum(c.weight for c in found) < sum(c.weight for c in best):
            best = found
    return [*guard, *(best or ())]


def _guard(predicate: Name | None, lookup: Lookup) -> list[Complaint]:
    if predicate is None:
        return []
    symbol = lookup(predicate.name)
    if symbol is None:
        return [Complaint("the guard `{}` is not declared", -1)]
    if symbol.kind != "register" or symbol.type is not TYPES["pred"]:
        return [Complaint("the guard `{}` is not a predicate register", -1, "declare it with `.reg .pred`")]
    return []


def _against(one: Match, instruction: Instruction, lookup: Lookup, version: tuple[int, int], arch: str) -> list[Complaint]:
    """Complain about all that keeps `instruction` from being the matched row."""
    operands, slots = instruction.operands, one.operands
    required = sum(not s.optional for s in slots)
    if not required <= len(operands) <= len(slots):
        return [_count(one, len(operands), required, slots)]
    out: list[Complaint] = []
    at = context(one, lookup)
    for k, (operand, slot) in enumerate(zip(operands, slots, strict=False)):
        fault = operand_fault(operand, slot, at)
        if fault:
            out.append(Complaint(fault, k, weight=4))
        out += _special_availability(operand, k, version, arch)
        out += _late_operand(operand, k, slot, version)
    if not out:
        out += _ruled(one, operands)
    lacking = availability(one, version, arch)
    return [*out, lacking] if lacking else out


def _count(one: Match, given: int, required: int, slots: Sequence[OperandSlot]) -> Complaint:
    wanted = str(required) if required == len(slots) else f"{required} to {len(slots)}"
    plural = "" if wanted == "1" else "s"
    hint = f"form: {one.mnemonic} {operands_form(slots)}".rstrip()
    return Complaint(f"`{one.mnemonic}` takes {wanted} operand{plural}, {given} given", None, hint, weight=20)


def _ruled(one: Match, operands: Sequence[Operand]) -> list[Complaint]:
    out: list[Complaint] = []
    for name in one.row.rules:
        out += [Complaint(p.message, p.operand, p.hint, weight=2) for p in RULES[name](one, operands)]
    return out


def _late_operand(operand: Operand, index: int, slot: OperandSlot, version: tuple[int, int]) -> list[Complaint]:
    """Complain about an optional operand that came with a later PTX version than the rest of its row."""
    second = slot.pair if isinstance(operand, PairOperand) else None
    late = [s.since for s in (slot, second) if s is not None and s.since is not None and version < s.since]
    return [newer("`{}`", late[0], version, index)] if late else []


def _special_availability(operand: Operand, index: int, version: tuple[int, int], arch: str) -> list[Complaint]:
    found = special_register(operand.name) if isinstance(operand, Name) and operand.name[:1] == "%" else None
    if found is None:
        return []
    if version < found.ptx:
        return [Complaint(f"`{{}}` needs PTX {found.ptx[0]}.{found.ptx[1]}", index)]
    if not found.arch.allows(parse_arch(arch)):
        return [Complaint(f"`{{}}` needs {found.arch}, the target is {arch}", index)]
    return []
