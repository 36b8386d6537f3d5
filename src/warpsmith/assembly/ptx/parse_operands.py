"""Operands (PTX ISA 6): names, constants, addresses, vectors, pairs, argument lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.constants import parse_constant, starts_constant
from warpsmith.assembly.ptx.tree import (
    AddressOperand,
    CallArguments,
    Immediate,
    Name,
    Operand,
    PairOperand,
    VectorOperand,
)

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.lexer import Lexer

__all__ = ["MEMBERED", "parse_arguments", "parse_operand", "parse_operands", "split_member"]

MEMBERED = frozenset(("%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid"))
"""Special registers with elements (10.1 …): `%tid.x` is one name."""


def split_member(word: str) -> tuple[str, str]:
    """Split `v.x` into name and element; special registers stay whole."""
    root, dot, member = word.partition(".")
    if not dot or root in MEMBERED:
        return word, ""
    return root, member


def parse_operands(lx: Lexer, *, call: bool = False) -> list[Operand]:
    """Read operands up to the `;`, which stays the current token. For `call`, a parenthesis opens an argument list."""
    operands: list[Operand] = []
    if lx.value == ";" and lx.kind == "punct":
        return operands
    while True:
        operands.append(parse_arguments(lx) if call and lx.value == "(" else parse_operand(lx))
        if not lx.take(","):
            return operands


def parse_operand(lx: Lexer) -> Operand:
    """Read one operand, or two joined by `|`."""
    start = lx.start
    first = _single(lx)
    if lx.value == "|" and lx.kind == "op":
        lx.advance()
        second = _single(lx)
        return PairOperand(first, second, lx.span(start))
    return first


def _single(lx: Lexer) -> Operand:
    value = lx.value
    if lx.kind == "word" and value != "WARP_SZ":
        return _name(lx)
    if value == "[":
        return _address(lx)
    if value == "{":
        return _vector(lx)
    if value in ("!", "-") and lx.kind == "op":
        return _signed(lx)
    if starts_constant(lx):
        return parse_constant(lx)
    raise lx.refuse(f"expected an operand, found {lx.shown()}")


def _name(lx: Lexer) -> Name:
    start = lx.start
    name, member = split_member(lx.word("a name"))
    offset, index = 0, None
    if lx.value == "+" and lx.kind == "op":
        offset = _offset(lx)
    elif lx.value == "[":
        lx.advance()
        index = _whole(lx, "an array index")
        lx.expect("]", "after the array index")
    return Name(name, member=member, offset=offset, index=index, span=lx.span(start))


def _signed(lx: Lexer) -> Operand:
    start = lx.start
    sign = lx.advance()
    if lx.kind != "word" or lx.value == "WARP_SZ":
        lx.seek(start)
        return parse_constant(lx)
    name, member = split_member(lx.word("a name"))
    return Name(name, negated=sign == "!", member=member, minus=sign == "-", span=lx.span(start))


def _whole(lx: Lexer, what: str) -> int:
    start = lx.start
    constant = parse_constant(lx)
    if not isinstance(constant.value, int):
        raise lx.refuse(f"{what} must be an integer, not {constant.text}", start)
    return constant.value


def _offset(lx: Lexer) -> int:
    """Read `+constant`; an offset above 2**63 stands for a negative one."""
    lx.advance()
    if lx.kind == "word" and lx.value != "WARP_SZ":
        raise lx.refuse("an address adds a constant, not a register, to its base", hint="add the registers first (add.s64)")
    value = _whole(lx, "an address offset")
    return value - (1 << 64) if value >> 63 == 1 else value


def _address(lx: Lexer) -> AddressOperand:
    start = lx.start
    lx.advance()
    base: Name | Immediate
    offset, zero = 0, False
    if lx.kind == "word" and lx.value != "WARP_SZ":
        begin = lx.start
        name, member = split_member(lx.word("a name"))
        base = Name(name, member=member, span=lx.span(begin))
        if lx.value == "+" and lx.kind == "op":
            offset = _offset(lx)
            zero = not offset
        elif lx.value == "-":
            raise lx.refuse("an address adds its offset", hint="write `+-4` for a negative offset")
        elif lx.value == "[":
            lx.advance()
            base.index = _whole(lx, "an array index")
            lx.expect("]", "after the array index")
    else:
        base = parse_constant(lx)
    inner: list[Name | VectorOperand] = []
    while lx.take(","):
        inner.append(_inner(lx))
    lx.expect("]", "at the end of an address")
    if inner and (offset or zero):
        raise lx.refuse("an address with coordinates takes no offset", start, hint="add it to the register first (add.s64)")
    return AddressOperand(base, offset, tuple(inner), zero, lx.span(start))


def _inner(lx: Lexer) -> VectorOperand | Name:
    if lx.value == "{":
        return _vector(lx)
    start = lx.start
    name, member = split_member(lx.word("coordinates (a brace vector or a register)"))
    return Name(name, member=member, span=lx.span(start))


def _vector(lx: Lexer) -> VectorOperand:
    start = lx.start
    lx.advance()
    elements: list[Operand] = []
    if lx.value != "}":
        elements.append(_element(lx))
        while lx.take(","):
            elements.append(_element(lx))
    lx.expect("}", "at the end of a vector")
    return VectorOperand(elements, lx.span(start))


def _element(lx: Lexer) -> Operand:
    if lx.value in ("{", "["):
        raise lx.refuse(f"expected an element of the vector, found {lx.shown()}")
    return _single(lx)


def parse_arguments(lx: Lexer) -> CallArguments:
    """Read `(a, b)`, an argument or return list of `call`."""
    start = lx.start
    lx.advance()
    arguments: list[Operand] = []
    if lx.value != ")":
        arguments.append(_single(lx))
        while lx.take(","):
            arguments.append(_single(lx))
    lx.expect(")", "at the end of an argument list")
    return CallArguments(arguments, lx.span(start))
