"""Statements read from text (`ptx.raw`) become part of a trace: checked, their declarations known from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.check import check_instruction
from warpsmith.assembly.ptx.check.declarations import declare_registers, declare_variable
from warpsmith.assembly.ptx.check.symbols import Scope as Names
from warpsmith.assembly.ptx.check.symbols import Symbol, register
from warpsmith.assembly.ptx.tree import Function, Instruction, Label, Name, RegisterDeclaration, Scope, Variable
from warpsmith.base.place import error
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.registers import Reg

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.tree import Item, Statement
    from warpsmith.base.errors import Problem
    from warpsmith.base.source import Place
    from warpsmith.dsl.trace import Trace

__all__ = ["adopt", "adopt_items"]

_JUMPS = ("bra", "brx", "call")


def adopt(trace: Trace, statements: list[Statement], place: Place) -> None:
    """Append `statements` to the open scope of `trace`; raise `KernelError` for the first that is wrong."""
    outer = Names()
    outer.parent = trace.lookup  # type: ignore[assignment]  # names that the text does not declare itself
    _walk(trace, statements, outer, place)
    for s in statements:
        _declare(trace, s)
    trace.scope.body.extend(statements)


def _walk(trace: Trace, statements: list[Statement], names: Names, place: Place) -> None:
    for s in statements:
        if isinstance(s, Label):
            names.declare(s.name, Symbol("label"))
    for s in statements:
        if isinstance(s, RegisterDeclaration):
            _raise(declare_registers(s, names))
        elif isinstance(s, Variable):
            _raise(declare_variable(s, names, module=False))
        elif isinstance(s, Scope):
            _walk(trace, s.body, Names(names), place)
        elif isinstance(s, Instruction):
            s.place = place
            _check(trace, s, names, place)


def _check(trace: Trace, s: Instruction, names: Names, place: Place) -> None:
    jump = s.opcode in _JUMPS
    target = s.operands[-1] if s.opcode == "bra" and s.operands else None
    if isinstance(target, Name) and names(target.name) is None:
        trace.branch(target.name, place)

    def lookup(name: str) -> Symbol | None:
        return names(name) or (Symbol("label") if jump else None)

    _raise(trace.raise_version(s.mnemonic, lambda version: check_instruction(s, lookup, version, str(trace.arch))))


def _raise(problems: list[Problem]) -> None:
    if problems:
        raise error(f"ptx.raw: {problems[0].message}", problems[0].hint)


def _declare(trace: Trace, s: Statement) -> None:
    if isinstance(s, Label):
        trace.note_label(s.name)
    elif isinstance(s, RegisterDeclaration):
        for base, count in s.names:
            for name in [base] if count is None else [f"{base}{i}" for i in range(count)]:
                known = Reg(name, TYPES[s.type], trace.scope) if s.vector == 1 else register(s.type, s.vector)
                trace.scope.names[name] = known
    elif isinstance(s, Variable):
        for v in (s, *s.more):
            trace.declare_local(v.name, v.space.partition("::")[0], v.type)


def adopt_items(trace: Trace, items: list[Item]) -> None:
    """Put module-level items in front of the kernel; their names are known from then on."""
    for item in items:
        if isinstance(item, Variable):
            for v in (item, *item.more):
                trace.declare_variable(v.name, v.space.partition("::")[0], v.type)
        elif isinstance(item, Function):
            trace.symbols[item.name] = Symbol("function", signature=item)
            trace.spaces.setdefault(item.name, "function")
        trace.items.append(item)
