"""One instruction → operations, or the ending of a block."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.assembly.ptx.tree import BranchTargets, CallArguments, Instruction, Name, Operand
from warpsmith.base.errors import InputError
from warpsmith.base.ptx_types import TYPES
from warpsmith.simulator.lower_move import moves
from warpsmith.simulator.lower_operands import OperandLowering
from warpsmith.simulator.meanings.registry import Built, Refused, build
from warpsmith.simulator.meanings.scalar_video import BUILDERS as SCALAR_VIDEO
from warpsmith.simulator.meanings.scalar_video import Part, is_selector, selected
from warpsmith.simulator.meanings.video import BUILDERS as SIMD_VIDEO
from warpsmith.simulator.program import (
    Call,
    Const,
    Exit,
    Indexed,
    Jump,
    Lowered,
    Operation,
    Pair,
    Reg,
    Return,
    Sync,
)
from warpsmith.simulator.runtime import runtime_function
from warpsmith.simulator.scope import Label, Register, Scope, Symbol, Targets
from warpsmith.simulator.select import refused, select, where

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lower_function import FunctionLowering

__all__ = ["InstructionLowering"]

Ending = Jump | Indexed | Call | Return | Exit | Sync
_READS_CARRY = ("addc", "subc", "madc")


@final
class InstructionLowering:
    """Lowers the instructions of one function."""

    def __init__(self, function: FunctionLowering) -> None:
        self.function = function
        self.operands = OperandLowering(function.areas.machine)
        self.carry = Reg("pred", function.areas.carry.slot, np.bool_)
        self.built: dict[tuple[str, str], Built | Refused] = {}

    def guard(self, s: Instruction) -> Reg | None:
        """Return the guard predicate of an instruction."""
        return None if s.predicate is None else self.operands.reg(s.predicate, TYPES["pred"])

    def lower(self, s: Instruction, scope: Scope) -> list[Operation] | Ending:
        """Return the operations of a straight-line instruction, or how it ends the block (its guard left aside)."""
        self.operands.scope, self.operands.where = scope, where(s)
        opcode = s.opcode
        if opcode == "bra":
            return Jump(self._label(s, s.operands[0]), self.function.place_of(s))
        if opcode in ("ret", "exit"):
            return (Return if opcode == "ret" else Exit)(self.function.place_of(s))
        if opcode == "brx":
            return self._indexed(s)
        if opcode == "call":
            return self._call(s)
        if opcode == "mov":
            return self._mov(s)
        return self._declared(s)

    # --- control --------------------------------------------------------------------------------------------------

    def _label(self, s: Instruction, operand: Any) -> int:
        found = self.operands.scope.find(operand.name) if isinstance(operand, Name) else None
        if not isinstance(found, Label):
            raise InputError(f"{where(s)}`{getattr(operand, 'name', operand)}` is not a label of this function")
        return found.block

    def _indexed(self, s: Instruction) -> Indexed:
        index, table = s.operands[0], s.operands[1]
        found = self.operands.scope.find(table.name) if isinstance(table, Name) else None
        if not isinstance(found, Targets) or not isinstance(found.node, BranchTargets):
            raise InputError(f"{where(s)}`brx.idx` needs the label of a .branchtargets list")
        assert isinstance(index, Name)
        register = self.operands.reg(index, TYPES["u32"])
        targets = tuple(self._label(s, Name(t)) for t in found.node.targets)
        return Indexed(register, targets, self._operation("machine", _engine, s, (register,), (False,)))

    def _call(self, s: Instruction) -> Call | list[Operation]:
        lists = [o for o in s.operands if isinstance(o, CallArguments)]
        names = [o for o in s.operands if isinstance(o, Name)]
        results = lists.pop(0) if s.operands and isinstance(s.operands[0], CallArguments) else CallArguments([])
        arguments = lists[0] if lists else CallArguments([])
        found = self.operands.scope.find(names[0].name)
        target: int | Reg
        outside = False
        if isinstance(found, Register):
            target = self.operands.reg(names[0], TYPES["u64"] if found.bits == 64 else TYPES["u32"])
        elif isinstance(found, Symbol) and found.space == "function":
            target = found.address
        elif found is None or (isinstance(found, Symbol) and found.space == "outside"):
            outside, target = True, 0
        else:
            raise InputError(f"{where(s)}`{names[0].name}` is no function")
        ins = tuple(self._argument(a) for a in arguments.arguments)
        outs = tuple(self._argument(a) for a in results.arguments)
        used: list[Lowered] = [a for a in (*outs, *ins) if isinstance(a, Reg | Const)]
        if isinstance(target, Reg):
            used.append(target)
        written = tuple(i < sum(isinstance(o, Reg) for o in outs) for i in range(len(used)))
        call = Call(target, ins, outs, -1, self._operation("machine", _engine, s, tuple(used), written))
        if outside:
            op = self._operation("machine", runtime_function(names[0].name, call, where(s)), s, (), ())
            op.guard = self.guard(s)
            return [op]
        return call

    def _argument(self, operand: Any) -> Any:
        if isinstance(operand, Name):
            found = self.operands.scope.find(operand.name)
            if isinstance(found, Symbol):
                return found
        return self.operands.value(operand, None)

    # --- data -----------------------------------------------------------------------------------------------------

    def _operation(
        self, kind: Any, fn: Any, s: Instruction, operands: tuple[Lowered, ...], written: tuple[bool, ...]
    ) -> Operation:
        opcode = "bar.warp" if s.mnemonic.startswith("bar.warp") else s.opcode
        return Operation(kind, fn, operands, written, None, s.mnemonic, self.function.place_of(s), opcode=opcode)

    def _mov(self, s: Instruction) -> list[Operation]:
        guard = self.guard(s)
        out: list[Operation] = []
        for d, a in moves(s, self.operands, self._spare):
            if d is None:
                continue
            op = self._operation("copy", _engine, s, (d, a), (True, False))
            op.guard = guard
            out.append(op)
        return out

    def _spare(self, type_name: str) -> Reg:
        """Return a register that no name means."""
        return self.operands.cached(self.function.areas.slots.take(type_name), TYPES[type_name], False)

    def _declared(self, s: Instruction) -> list[Operation] | Sync:
        video = s.opcode in SCALAR_VIDEO or s.opcode in SIMD_VIDEO
        if video and any(isinstance(o, Name) and (o.minus or is_selector(o.member)) for o in s.operands):
            return [self._selected(s)]
        m = select(s, self.operands.width)
        key = (m.row.id, s.mnemonic)
        if key not in self.built:
            self.built[key] = Refused(m.row.refused) if m.row.refused else build(m)
        built = self.built[key]
        if isinstance(built, Refused):
            raise refused(s, built.reason)
        op = self._with_operands(s, m, built)
        if built.kind == "sync":
            return Sync(op, -1)
        op.guard = self.guard(s)
        return [op]

    def _selected(self, s: Instruction) -> Operation:
        """Return a video instruction whose operands have selectors or signs: the words are read whole."""
        parts = tuple(
            Part(o.member if is_selector(o.member) else "", o.minus) if isinstance(o, Name) else Part() for o in s.operands
        )
        whole: list[Operand] = [
            replace(o, member="" if is_selector(o.member) else o.member, minus=False) if isinstance(o, Name) else o
            for o in s.operands
        ]
        plain = replace(s, operands=whole)
        m = select(plain, self.operands.width)
        op = self._with_operands(plain, m, Built("pure", selected(m, parts)))
        op.guard = self.guard(s)
        return op

    def _with_operands(self, s: Instruction, m: Match, built: Built) -> Operation:
        slots = m.operands
        operand = self.operands.operand
        lowered: list[Lowered] = [operand(slot, o) for slot, o in zip(slots, s.operands, strict=False)]
        lowered += [None] * (len(slots) - len(lowered))
        written = [slot.direction != "read" for slot in slots]
        op = self._operation(built.kind, built.fn, s, (), ())
        if built.kind == "pure":
            lowered, written = self._pure_operands(s, lowered, written)
        op.operands, op.written = tuple(lowered), tuple(written)
        op.updated = frozenset(i for i, slot in enumerate(slots) if slot.direction == "update")
        op.spaces = tuple(slot.space for slot in slots)
        return op

    def _pure_operands(self, s: Instruction, lowered: list[Lowered], written: list[bool]) -> tuple[list[Lowered], list[bool]]:
        """Flatten pairs and add the carry flag where the mnemonic writes or reads it."""
        outs = [o for o, w in zip(lowered, written, strict=True) if w]
        ins = [o for o, w in zip(lowered, written, strict=True) if not w]
        flat: list[Lowered] = []
        for o in outs:
            flat += [o.first, o.second] if isinstance(o, Pair) else [o]
        if s.mnemonic.endswith(".cc") or ".cc." in s.mnemonic:
            flat.append(self.carry)
        while ins and ins[-1] is None:
            ins.pop()
        if s.opcode in _READS_CARRY:
            ins.append(self.carry)
        return [*flat, *ins], [True] * len(flat) + [False] * len(ins)


def _engine(*_: Any) -> None:
    """Stand for the work of an instruction that the engine or the block code carries out."""
