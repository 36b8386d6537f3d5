"""Calls: the callee, and its arguments against its parameters (PTX ISA 7, 9.7.12.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.print_operands import print_operand
from warpsmith.assembly.ptx.spans import operand_spans
from warpsmith.assembly.ptx.tree import CallArguments, CallPrototype, Function, Immediate, Instruction, Name
from warpsmith.base.errors import Problem
from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.check.symbols import Scope
    from warpsmith.assembly.ptx.tree import Operand, Parameter

__all__ = ["check_call"]


def check_call(call: Instruction, scope: Scope) -> list[Problem]:
    """Return what is wrong with the operands of a `call`: `(returns), callee, (arguments), targets`."""
    rest = list(call.operands)
    returns = rest.pop(0) if rest and isinstance(rest[0], CallArguments) else None
    callee = rest.pop(0) if rest else None
    arguments = rest.pop(0) if rest and isinstance(rest[0], CallArguments) else None
    targets = rest.pop(0) if rest else None
    if not isinstance(callee, Name) or rest or (targets is not None and not isinstance(targets, Name)):
        hint = "write `call (results), function, (arguments);`"
        return [Problem("the operands of `call` are not a function and its lists", call.span, hint)]
    symbol = scope(callee.name)
    if symbol is None:
        hint = scope.near(callee.name) or "declare the function before it is called"
        return [Problem(f"`{callee.name}` is not declared before this call", call.span, hint)]
    if symbol.kind == "register":
        return _indirect(call, targets, returns, arguments, scope)
    if symbol.kind != "function" or not isinstance(symbol.signature, Function):
        return [Problem(f"`{callee.name}` is a {symbol.kind}, not a function", call.span)]
    if symbol.signature.kind == "entry":
        return [Problem(f"`{callee.name}` is an .entry, which cannot be called", call.span)]
    return _lists(call, symbol.signature, returns, arguments, scope)


def _indirect(
    call: Instruction, targets: Name | None, returns: Operand | None, arguments: Operand | None, scope: Scope
) -> list[Problem]:
    if targets is None:
        return [Problem("an indirect call names its .callprototype or .calltargets last", call.span)]
    symbol = scope(targets.name)
    if symbol is None or symbol.kind not in ("prototype", "targets", "label"):
        return [Problem(f"`{targets.name}` is no .callprototype or .calltargets of this function", call.span)]
    return _lists(call, symbol.signature, returns, arguments, scope) if symbol.signature is not None else []


def _lists(
    call: Instruction, callee: Function | CallPrototype, returns: Operand | None, arguments: Operand | None, scope: Scope
) -> list[Problem]:
    out: list[Problem] = []
    for what, given, formal in (("result", returns, callee.returns), ("argument", arguments, callee.parameters)):
        actual = given.arguments if isinstance(given, CallArguments) else []
        if len(actual) != len(formal):
            text = f"`{callee.name}` has {len(formal)} {what}{'s' * (len(formal) != 1)}, the call gives {len(actual)}"
            out.append(Problem(text, call.span))
            continue
        spans = dict(zip(map(id, call.operands), operand_spans(call), strict=True))
        for value, parameter in zip(actual, formal, strict=True):
            message = _argument(value, parameter, scope)
            if message:
                out.append(Problem(message, spans.get(id(given)) or call.span))
    return out


def _argument(value: Operand, parameter: Parameter, scope: Scope) -> str:
    if isinstance(value, Immediate) or (isinstance(value, Name) and value.name == "_"):
        return ""
    symbol = scope(value.name) if isinstance(value, Name) else None
    if symbol is None:
        return f"`{print_operand(value)}` is not declared"
    formal = TYPES.get(parameter.type)
    if symbol.kind == "register" and symbol.type is not None and formal is not None and not parameter.shape:
        if symbol.type.bits != formal.bits:
            return f"`{print_operand(value)}` is .{symbol.type}, parameter `{parameter.name}` is .{formal}"
    elif (
        symbol.kind in ("variable", "parameter", "result")
        and symbol.space.startswith("param")
        and symbol.size is not None
        and formal is not None
    ):
        wanted = formal.bits // 8 * parameter.vector
        for n in parameter.shape:
            wanted *= n or 0
        if wanted and wanted != symbol.size:
            return f"`{print_operand(value)}` has {symbol.size} bytes, parameter `{parameter.name}` has {wanted}"
    return ""
