"""Is this instruction right? The declarations say which operands a mnemonic takes; the answer is kept by operand kinds.

Rules about register types are those of ptxas (PTX ISA 9.4.1, 9.4.2): a bit type takes any register of its width, an integer
type any integer or bit register of its width, a float type its own or a bit register; ld, st and cvt also take wider registers.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.isa import match, opcodes, rows
from warpsmith.assembly.ptx.isa.rules import RULES
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.place import error
from warpsmith.dsl.slot import Reason, slot_kind, slot_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.ptx.isa import Match, OperandSlot
    from warpsmith.assembly.ptx.tree import Operand
    from warpsmith.base.arch import Arch
    from warpsmith.dsl.signature import Signature

__all__ = ["Plan", "check_values", "plan_for"]


@final
@dataclass(slots=True)
class Plan:
    """A checked combination of mnemonic and operand kinds."""

    kinds: tuple[str, ...]
    """How to convert each operand: see `operands.convert`."""
    match: Match | None
    """None: the opcode has no declaration."""
    immediates: tuple[tuple[int, OperandSlot], ...] = ()
    """Operands whose value must be looked at in every call."""
    verified: set[tuple[object, ...]] = field(default_factory=set)
    """Operand values for which the row's rules have been run."""


@cache
def _fits(mnemonic: str, signatures: tuple[Signature, ...]) -> tuple[tuple[Plan, ...], Reason | None]:
    """Return a plan for every row that takes these operands; else the reason of the row that came closest."""
    opcode = mnemonic.partition(".")[0]
    plans: list[Plan] = []
    best: Reason | None = None
    for m in match(mnemonic):
        reason = _problem(m, opcode, signatures)
        if reason is None:
            slots = m.operands[: len(signatures)]
            kinds = tuple(slot_kind(opcode, s, sig) for s, sig in zip(slots, signatures, strict=True))
            exact = tuple((i, s) for i, s in enumerate(slots) if s.kind == "immediate" and (s.choices or s.range))
            plans.append(Plan(kinds, m, exact))
        elif best is None or reason.at > best.at:
            best = reason
    return tuple(plans), best


def _problem(m: Match, opcode: str, signatures: tuple[Signature, ...]) -> Reason | None:
    slots = m.operands
    least = sum(not s.optional for s in slots)
    if not least <= len(signatures) <= len(slots):
        names = ", ".join(f"{s.name}?" if s.optional else s.name for s in slots) or "none"
        return Reason(-1, f"{len(signatures)} operands, and it takes {least}" + (f" to {len(slots)}" if least < len(slots)
        else "")
                      + f" ({names})")  # fmt: skip
    for i, (slot, sig) in enumerate(zip(slots, signatures, strict=False)):
        text = slot_problem(opcode, slot, sig)
        if text:
            return Reason(i, f"operand {i + 1} ({slot.name}) {text}", _hint(slot, sig))
    return None


def _hint(slot: OperandSlot, sig: Signature) -> str:
    if sig == "f" and slot.type is not None and slot.type.kind in ("unsigned", "signed", "bits"):
        return "write an int"
    if slot.kind == "predicate":
        return "compare first: p = (a != 0)"
    if slot.kind == "address":
        return "write ptx.addr(base, offset)"
    if isinstance(sig, str) and sig.startswith("special"):
        return "copy it first: ptx.sreg(name) or ptx.special"
    if isinstance(sig, str) and sig in TYPES and slot.type is not None and TYPES[sig].bits != slot.type.bits:
        return f"convert it with ptx.cvt, or use a register of {slot.type.bits} bits"
    return ""


def _unknown(mnemonic: str) -> tuple[str, str]:
    """(message, hint) for a mnemonic that no row fits."""
    opcode, *words = mnemonic.split(".")
    known = rows(opcode)
    if not known:
        near = difflib.get_close_matches(opcode, opcodes(), 1)
        return f"unknown instruction {opcode}", f"did you mean {near[0]}?" if near else ""
    allowed = {w for r in known for e in r.elements for w in e.words}
    for w in words:
        if w not in allowed:
            near = difflib.get_close_matches(w, sorted(allowed), 3)
            return f"unknown modifier .{w} of {opcode}", f"did you mean {' or '.join('.' + n for n in near)}?" if near else ""
    patterns = sorted({r.pattern for r in known}, key=lambda p: -_overlap(p, words))
    return f"{mnemonic} is no form of {opcode}", f"the nearest is {patterns[0]}"


def _undeclared(mnemonic: str, signatures: tuple[Signature, ...]) -> Plan:
    opcode, *words = mnemonic.split(".")
    kind = next((w for w in reversed(words) if w in TYPES), "")
    kinds = ["label" if opcode == "bra" else kind if kind in ("f32", "f64") else "" for _ in signatures]
    if opcode == "mov":
        kinds = ["symbol" if s == "@" else k for k, s in zip(kinds, signatures, strict=True)]
    return Plan(tuple(kinds), None)


def _overlap(pattern: str, words: Sequence[str]) -> int:
    return sum(w in pattern for w in words)


def plan_for(mnemonic: str, signatures: tuple[Signature, ...], arch: Arch, version: tuple[int, int], fixed: bool) -> Plan:
    """Return the plan of an instruction that is right for the target; raise `KernelError` at the user's line otherwise."""
    plans, reason = _fits(mnemonic, signatures)
    if not plans and not rows(mnemonic.partition(".")[0]):
        return _undeclared(mnemonic, signatures)
    if not plans:
        if reason is not None:
            raise error(f"{mnemonic}: {reason.text}", reason.hint)
        raise error(*_unknown(mnemonic))
    missing = ""
    for plan in plans:
        assert plan.match is not None
        missing = _missing(plan.match, arch, version, fixed)
        if not missing:
            return plan
    raise error(f"{mnemonic}: {missing}", "choose another arch= or version= in @kernel, or another instruction")


def _missing(m: Match, arch: Arch, version: tuple[int, int], fixed: bool) -> str:
    for need in m.needs:
        if need.arch is not None and not need.arch.allows(arch):
            return f"{need.what} needs {need.arch}, and the kernel is for {arch}"
        if fixed and need.ptx is not None and need.ptx > version:
            return f"{need.what} needs PTX {need.ptx[0]}.{need.ptx[1]}, and the kernel is PTX {version[0]}.{version[1]}"
    return ""


def needed_version(m: Match) -> tuple[int, int]:
    """Return the PTX version a matched mnemonic needs."""
    return max(need.ptx for need in m.needs if need.ptx is not None)


def check_values(plan: Plan, mnemonic: str, values: Sequence[object], operands: Sequence[Operand]) -> None:
    """Check what depends on the values of immediates: ranges and choices, and the row's rules."""
    for i, slot in plan.immediates:
        value = values[i]
        if not isinstance(value, int):
            continue
        if slot.choices and value not in slot.choices:
            raise error(
                f"{mnemonic}: operand {i + 1} ({slot.name}) is {value}, and it is one of {', '.join(map(str, slot.choices))}"
            )
        if slot.range and not slot.range[0] <= value <= slot.range[1]:
            raise error(f"{mnemonic}: operand {i + 1} ({slot.name}) is {value}, and it is {slot.range[0]} to {slot.range[1]}")
    m = plan.match
    if m is None or not m.row.rules:
        return
    key = tuple(v for v in values if isinstance(v, (int, float)))
    if key in plan.verified:
        return
    for name in m.row.rules:
        for problem in RULES[name](m, operands):
            raise error(f"{mnemonic}: {problem.message}", problem.hint)
    plan.verified.add(key)
