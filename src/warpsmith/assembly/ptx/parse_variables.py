"""Declarations (PTX ISA 5): registers, variables, parameters, initialisers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.constants import parse_constant, starts_constant
from warpsmith.assembly.ptx.tree import Initializer, Parameter, RegisterDeclaration, Variable

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.lexer import Lexer

__all__ = [
    "LINKAGES",
    "SPACES",
    "TYPE_WORDS",
    "parse_attributes",
    "parse_parameters",
    "parse_registers",
    "parse_variable",
]

_NUMBERS = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 tf32 f32 f64 f32x2 e4m3 e5m2 e4m3x2 e5m2x2"
TYPE_WORDS = frozenset(f".{t}" for t in f"{_NUMBERS} pred texref samplerref surfref".split())
"""What may stand where a declaration names its type; the checker says which a space allows."""
SPACES = frozenset((".global", ".shared", ".local", ".const", ".param", ".tex", ".sreg", ".shared::cta", ".shared::cluster"))
LINKAGES = frozenset((".extern", ".visible", ".weak", ".common"))
_VECTORS = {".v2": 2, ".v4": 4, ".v8": 8}


def parse_registers(lx: Lexer) -> RegisterDeclaration:
    """Read `.reg .type names`, with the current token after `.reg`; the `;` stays."""
    start = lx.last - len(".reg")
    vector = 1
    kind = ""
    while lx.kind == "dot":
        if lx.value in _VECTORS:
            vector = _VECTORS[lx.advance()]
        elif lx.value in TYPE_WORDS and not kind:
            kind = lx.advance()[1:]
        else:
            raise lx.refuse(f"`{lx.value}` is not a register type", hint="write e.g. `.reg .b32 %r<4>;`")
    if not kind:
        raise lx.refuse(f"expected a register type, found {lx.shown()}", hint="write e.g. `.reg .b32 %r<4>;`")
    names: list[tuple[str, int | None]] = []
    while True:
        name = lx.word("a register name")
        names.append((name, _count(lx)))
        if not lx.take(","):
            return RegisterDeclaration(kind, names, vector, lx.span(start))


def _count(lx: Lexer) -> int | None:
    """Read the `<n>` of a parameterised name (9.3 of chapter 5: `%r<10>`), if it is there."""
    if not lx.take("<"):
        return None
    count = lx.integer("the number of names")
    lx.expect(">", "after the number of names")
    return count


def parse_variable(lx: Lexer, linkage: str = "") -> Variable:
    """Read a variable declaration from its first directive; the `;` stays. Modifiers may come in any order."""
    start = lx.start
    variable = Variable("", "", "", linkage=linkage)
    while lx.kind == "dot":
        _variable_modifier(lx, variable)
    if not variable.space:
        raise lx.refuse("a variable needs a state space", start, "write e.g. `.global .b32 name;`")
    if not variable.type:
        raise lx.refuse(f"expected the type of the variable, found {lx.shown()}", hint="write e.g. `.global .b32 name;`")
    _declarator(lx, variable)
    while lx.take(","):
        begin = lx.start
        further = Variable(variable.space, variable.type, "", vector=variable.vector, align=variable.align)
        further.linkage, further.attributes = variable.linkage, list(variable.attributes)
        _declarator(lx, further)
        further.span = lx.span(begin)
        variable.more.append(further)
    variable.span = lx.span(start)
    return variable


def _variable_modifier(lx: Lexer, variable: Variable) -> None:
    word = lx.value
    if word in SPACES and not variable.space:
        variable.space = lx.advance()[1:]
        if word == ".const" and lx.value == "[":
            lx.advance()
            variable.space += f"[{lx.integer('a constant bank')}]"
            lx.expect("]", "after the constant bank")
    elif word in TYPE_WORDS and not variable.type:
        variable.type = lx.advance()[1:]
    elif word in _VECTORS:
        variable.vector = _VECTORS[lx.advance()]
    elif word == ".align" and not variable.type:
        lx.advance()
        variable.align = lx.integer("an alignment")
    elif word in LINKAGES and not (variable.linkage or variable.space or variable.align):
        variable.linkage = lx.advance()[1:]
    elif word == ".attribute":
        variable.attributes += parse_attributes(lx)
    else:
        hint = "the order is: linkage, space, attributes, alignment, vector, type, name"
        raise lx.refuse(f"`{word}` does not belong here in the declaration of a variable", hint=hint)


def _declarator(lx: Lexer, variable: Variable) -> None:
    variable.name = lx.word("the name of the variable")
    variable.count = _count(lx)
    variable.shape = _shape(lx)
    if lx.take("="):
        variable.initializer = _initializer(lx, 0)


def _shape(lx: Lexer) -> list[int | None]:
    shape: list[int | None] = []
    while lx.take("["):
        shape.append(None if lx.value == "]" else lx.integer("an array size"))
        lx.expect("]", "after the array size")
    return shape


def parse_attributes(lx: Lexer) -> list[str]:
    """Read `.attribute(.managed, .unified(1, 2))`; return its members as written, without blanks (5.4.8)."""
    lx.advance()
    lx.expect("(", "after `.attribute`")
    out: list[str] = []
    depth, current = 0, ""
    while True:
        value = lx.value
        if lx.kind == "end" or value in (";", "{", "}"):
            raise lx.refuse(f"expected `)` at the end of the attributes, found {lx.shown()}")
        if value == ")" and not depth:
            break
        if value == "," and not depth:
            out.append(current)
            current = ""
        else:
            depth += (value == "(") - (value == ")")
            current += value
        lx.advance()
    lx.advance()
    return [*out, current]


def _initializer(lx: Lexer, depth: int) -> Initializer:
    start = lx.start
    if depth > 32:
        raise lx.refuse("initialiser braces nested deeper than 32 levels")
    if lx.take("{"):
        leaves: list[Initializer] = []
        if lx.value != "}":
            leaves.append(_initializer(lx, depth + 1))
            while lx.take(","):
                leaves.append(_initializer(lx, depth + 1))
        lx.expect("}", "at the end of the initialiser")
        return Initializer(leaves=leaves, span=lx.span(start))
    return _leaf(lx, depth)


def _leaf(lx: Lexer, depth: int) -> Initializer:
    start = lx.start
    if lx.kind == "word" and lx.value != "WARP_SZ":
        leaf = _symbol(lx)
        if lx.value == "=" and not leaf.generic and not leaf.offset:
            lx.advance()
            value = _initializer(lx, depth + 1)
            value.name, value.span = leaf.symbol, lx.span(start)
            return value
    elif starts_constant(lx):
        constant = parse_constant(lx)
        leaf = Initializer(text=constant.text, value=constant.value)
        if lx.take("("):
            leaf = _symbol(lx)
            leaf.mask, leaf.text = int(constant.value), f"{constant.text}({leaf.text})"
            lx.expect(")", "after the masked address")
    else:
        raise lx.refuse(f"expected an initial value, found {lx.shown()}")
    leaf.span = lx.span(start)
    return leaf


def _symbol(lx: Lexer) -> Initializer:
    """Read `name`, `name+8`, `generic(name)`, `generic(name)+8`."""
    name = lx.word("the name of a variable or function")
    generic = name == "generic" and lx.take("(")
    if generic:
        name = lx.word("the name of a variable")
        lx.expect(")", "after the name")
    text = f"generic({name})" if generic else name
    leaf = Initializer(text=text, symbol=name, generic=generic)
    if lx.take("+"):
        leaf.offset = lx.integer("a byte offset")
        leaf.text += f"+{leaf.offset}"
    return leaf


def parse_parameters(lx: Lexer) -> list[Parameter]:
    """Read `(…)`, a parameter or return list (5.1.6, 7.1), with the current token at `(`."""
    lx.expect("(", "before the parameters")
    out: list[Parameter] = []
    if lx.take(")"):
        return out
    while True:
        out.append(_parameter(lx))
        if lx.take(")"):
            return out
        lx.expect(",", "between parameters")


def _parameter(lx: Lexer) -> Parameter:
    start = lx.start
    if lx.value not in (".param", ".reg"):
        raise lx.refuse(f"expected a parameter, found {lx.shown()}", hint="write e.g. `.param .b64 name` or `.reg .b32 name`")
    parameter = Parameter(lx.advance()[1:], "", "")
    while lx.kind == "dot":
        _parameter_modifier(lx, parameter)
    if not parameter.type:
        raise lx.refuse(f"expected the type of the parameter, found {lx.shown()}")
    parameter.name = lx.word("the name of the parameter")
    parameter.shape = _shape(lx)
    parameter.span = lx.span(start)
    return parameter


def _parameter_modifier(lx: Lexer, parameter: Parameter) -> None:
    word = lx.value
    if word in TYPE_WORDS and not parameter.type:
        parameter.type = lx.advance()[1:]
    elif word in _VECTORS:
        parameter.vector = _VECTORS[lx.advance()]
    elif word == ".align":
        lx.advance()
        parameter.align = lx.integer("an alignment")
    elif word == ".ptr":
        lx.advance()
        space, align = "", None
        while lx.kind == "dot":
            if lx.value in SPACES:
                space = lx.advance()[1:]
            elif lx.take(".align"):
                align = lx.integer("an alignment")
            else:
                break
        parameter.pointer = (space, align)
    elif word in SPACES:
        parameter.qualifiers.append(lx.advance())
    else:
        raise lx.refuse(f"`{word}` does not belong in the declaration of a parameter")
