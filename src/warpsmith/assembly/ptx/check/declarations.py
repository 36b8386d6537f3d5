"""Declarations: types that a space allows, sizes, initialisers, names taken twice (PTX ISA 5)."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.check.register_types import REGISTER_TYPES
from warpsmith.assembly.ptx.check.symbols import Scope, Symbol, register, variable
from warpsmith.base.errors import Problem
from warpsmith.base.ptx_types import TYPES

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.tree import Initializer, Parameter, RegisterDeclaration, Variable
    from warpsmith.base.source import Span

__all__ = ["declare_parameter", "declare_registers", "declare_variable"]

_OPAQUE = frozenset(("texref", "samplerref", "surfref"))
_INITIALISED = ("global", "const")


def declare_registers(declaration: RegisterDeclaration, scope: Scope) -> list[Problem]:
    """Add the names of a `.reg` to `scope`; return what is wrong with it."""
    kind, span = declaration.type, declaration.span
    problems: list[Problem] = []
    if kind not in REGISTER_TYPES:
        storage = TYPES[kind].reg if kind in TYPES else "b32"
        problems.append(Problem(f"no register has type .{kind}", span, f"it is the type of an instruction; declare .{storage}"))
        kind = storage
    elif declaration.vector > 1 and kind == "pred":
        problems.append(Problem("predicates are scalar", span))
    elif declaration.vector * TYPES[kind].bits > 128:
        bits = declaration.vector * TYPES[kind].bits
        problems.append(Problem(f"a vector register of {bits} bits; 128 is the most", span))
    symbol = register(kind, declaration.vector)
    for name, count in declaration.names:
        if not scope.declare(name, symbol, count):
            shown = name if count is None else f"{name}<{count}>"
            problems.append(Problem(f"`{shown}` is declared twice in this scope", span))
    return problems


def declare_variable(declaration: Variable, scope: Scope, *, module: bool, samplers: bool = False) -> list[Problem]:
    """Add the names of a variable declaration to `scope`; return what is wrong with it.

    `samplers` says whether the target is `texmode_independent`.
    """
    problems: list[Problem] = []
    if declaration.type == "samplerref" and not samplers:
        text = f"`{declaration.name}`: samplers of their own need `.target texmode_independent`"
        problems.append(Problem(text, declaration.span))
    for v in (declaration, *declaration.more):
        problems += _variable(v, scope, module)
        size = _size(v.type, v.vector, v.shape)
        known = scope.own(v.name)
        symbol = variable("variable", v.type, v.space, v.vector, size)
        free = scope.declare(v.name, symbol, v.count)
        if not free and (not module or (v.linkage != "extern" and v.name in scope.defined)):
            problems.append(Problem(f"`{v.name}` is declared twice in this scope", v.span))
        elif not free and known is not None and known.shape != symbol.shape:
            problems.append(Problem(f"`{v.name}` was declared with another type or space before", v.span))
        if v.linkage != "extern":
            scope.defined.add(v.name)
    return problems


def _variable(v: Variable, scope: Scope, module: bool) -> list[Problem]:
    out: list[Problem] = []
    space = v.space.partition("[")[0]
    if space == "tex" or space != v.space:
        old = "explicit constant banks" if space == "const" else ".tex variables"
        out.append(
            Problem(f"`{v.name}`: {old} are no longer part of PTX", v.span, "declare a .texref, or a .const without bank")
        )
    if v.type == "pred":
        out.append(Problem(f"`{v.name}` is a predicate; predicates are registers", v.span, "declare it with `.reg .pred`"))
    elif v.type not in _OPAQUE and v.type not in REGISTER_TYPES:
        out.append(Problem(f"no variable has type .{v.type}", v.span, "it is the type of an instruction; declare its bits"))
    elif v.type in TYPES and v.vector * TYPES[v.type].bits > 128:
        out.append(Problem(f"`{v.name}` is a vector of {v.vector * TYPES[v.type].bits} bits; 128 is the most", v.span))
    out += _alignment(v.align, v.span)
    if v.linkage == "common" and space != "global":
        out.append(Problem(f"`{v.name}`: only .global variables are .common", v.span))
    if module and space in ("local", "param"):
        out.append(Problem(f"`{v.name}`: .{space} variables belong in functions", v.span))
    if None in v.shape[1:]:
        out.append(Problem(f"`{v.name}`: only the first dimension of an array may be left open", v.span))
    elif v.shape and v.shape[0] is None and v.linkage != "extern" and v.initializer is None and space != "param":
        out.append(Problem(f"`{v.name}` has no size", v.span, "give it a size, an initialiser, or `.extern`"))
    if v.initializer is not None:
        out += _initialised(v, scope, space)
    return out


def _alignment(align: int | None, span: Span | None) -> list[Problem]:
    if align is None or (0 < align < 1 << 32 and not align & (align - 1)):
        return []
    what = "is not a power of two" if align <= 0 or align & (align - 1) else "is no number of 32 bits"
    return [Problem(f"alignment {align} {what}", span)]


def _initialised(v: Variable, scope: Scope, space: str) -> list[Problem]:
    assert v.initializer is not None
    if space not in _INITIALISED and v.type not in _OPAQUE:
        return [Problem(f"`{v.name}` is in .{space}, which takes no initial value", v.span)]
    if v.type in ("f16", "f16x2", "b128"):
        return [Problem(f"variables of type .{v.type} take no initial value", v.span, "declare it .b16 and give its bits")]
    if v.type in _OPAQUE:
        return []
    dimensions: list[int | None] = (
        ([] if v.vector == 1 else [v.vector]) if not v.shape else [*v.shape, *([] if v.vector == 1 else [v.vector])]
    )
    return _nest(v.initializer, dimensions, v, scope)


def _nest(value: Initializer, dimensions: list[int | None], v: Variable, scope: Scope) -> list[Problem]:
    if not dimensions:
        if value.leaves is not None:
            return [Problem(f"`{v.name}`: braces around the value of a scalar", value.span or v.span)]
        return _leaf(value, v, scope)
    if value.leaves is None:
        return [Problem(f"`{v.name}`: the values of an array stand in braces", value.span or v.span)]
    if dimensions[0] is not None and len(value.leaves) > dimensions[0]:
        return [Problem(f"`{v.name}`: {len(value.leaves)} values for {dimensions[0]} elements", value.span or v.span)]
    return [p for leaf in value.leaves for p in _nest(leaf, dimensions[1:], v, scope)]


def _leaf(value: Initializer, v: Variable, scope: Scope) -> list[Problem]:
    span = value.span or v.span
    kind = TYPES[v.type].kind
    if value.symbol:
        if scope(value.symbol) is None:
            return [Problem(f"`{value.symbol}` is not declared before its address is taken", span, scope.near(value.symbol))]
        if kind == "float":
            return [Problem(f"`{v.name}`: an address is not a value of type .{v.type}", span)]
    elif isinstance(value.value, float) and kind != "float":
        return [Problem(f"`{v.name}`: {value.text} is not a value of type .{v.type}", span)]
    elif isinstance(value.value, int) and kind == "float":
        return [Problem(f"`{v.name}`: {value.text} is an integer, type .{v.type} wants e.g. {value.value}.0", span)]
    return []


def _size(type_name: str, vector: int, shape: list[int | None]) -> int | None:
    if type_name not in TYPES or None in shape:
        return None
    return TYPES[type_name].bits // 8 * vector * prod(n or 0 for n in shape)


def declare_parameter(parameter: Parameter, scope: Scope, *, entry: bool, result: bool) -> list[Problem]:
    """Add a formal parameter of a function to `scope`; return what is wrong with it."""
    problems: list[Problem] = []
    if parameter.name == "_":
        return [Problem("the parameter of a function with a body needs a name", parameter.span)]
    if parameter.space == "reg":
        symbol: Symbol = register(parameter.type if parameter.type in REGISTER_TYPES else "b32", parameter.vector)
    else:
        size = _size(parameter.type, parameter.vector, parameter.shape)
        space = "param::entry" if entry else "param::func"
        symbol = variable("result" if result else "parameter", parameter.type, space, parameter.vector, size)
        if parameter.type == "pred":
            problems.append(Problem("a predicate cannot be a .param", parameter.span))
        problems += _alignment(parameter.align, parameter.span)
        if parameter.pointer is not None:
            problems += _alignment(parameter.pointer[1], parameter.span)
        if parameter.vector > 1:
            problems.append(Problem(f"`{parameter.name}`: a .param is no vector", parameter.span, "declare an array of bytes"))
    if not scope.declare(parameter.name, symbol):
        problems.append(Problem(f"`{parameter.name}` names two parameters", parameter.span))
    return problems
