"""Constants and constant expressions (PTX ISA 4.5)."""

from __future__ import annotations

import math
import re
import struct
from typing import TYPE_CHECKING, Literal

from warpsmith.assembly.ptx.tree import Immediate
from warpsmith.base.source import Span

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.assembly.ptx.lexer import Lexer

__all__ = ["float_value", "parse_constant", "starts_constant"]

Number = int | float
_MASK = 0xFFFF_FFFF_FFFF_FFFF
_DEEPEST = 100

_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<=", ">=", "<", ">"), ("<<", ">>"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
_LEVEL = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}


def float_value(text: str) -> tuple[float, Literal["f32", "f64", "float"]]:
    """Decode a floating-point constant: `0f` and `0d` bits, or decimal (4.5.2)."""
    head = text[:2]
    if head in ("0f", "0F"):
        return struct.unpack(">f", bytes.fromhex(text[2:]))[0], "f32"
    if head in ("0d", "0D"):
        return struct.unpack(">d", bytes.fromhex(text[2:]))[0], "f64"
    return float(text), "float"


def _float_constant(lx: Lexer) -> tuple[float, Literal["f32", "f64", "float"]]:
    value, kind = float_value(lx.value)
    if kind == "float" and (math.isinf(value) or (value == 0 and re.match(r"[0.]*[1-9]", lx.value))):
        raise lx.refuse(f"the constant {lx.shown()} does not fit a double", hint="write infinity as `0f7F800000`")
    lx.advance()
    return value, kind


def starts_constant(lx: Lexer) -> bool:
    """Say whether the current token can only begin a constant."""
    return lx.kind in ("int", "float") or lx.value in ("-", "~", "!", "+", "(", "WARP_SZ")


def parse_constant(lx: Lexer) -> Immediate:
    """Read a constant expression."""
    start = lx.start
    kind: Literal["int", "f32", "f64", "float"]
    if lx.kind == "int":
        text = lx.value
        value: Number = lx.int_constant()
        if lx.kind == "punct":
            return Immediate(text, value, "int", lx.span(start))
        lx.seek(start)
    elif lx.kind == "float":
        text = lx.value
        value, kind = _float_constant(lx)
        if lx.kind == "punct":
            return Immediate(text, value, kind, lx.span(start))
        lx.seek(start)
    words: list[str] = []
    value = _ternary(lx, words, 0)
    if len(words) == 1 and isinstance(value, float):
        value, kind = float_value(words[0])
    else:
        kind = "float" if isinstance(value, float) else "int"
    return Immediate("".join(words), value, kind, Span(lx.source, start, lx.last))


def _wrap(value: Number) -> Number:
    """Keep integers to 64 bits: signed when they were, unsigned above."""
    if isinstance(value, float) or -(1 << 63) <= value < 1 << 64:
        return value
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def _ternary(lx: Lexer, words: list[str], depth: int) -> Number:
    condition = _binary(lx, words, depth, 0)
    if lx.value != "?":
        return condition
    words.append(lx.advance())
    yes = _ternary(lx, words, depth + 1)
    lx.expect(":", "in a conditional constant expression")
    words.append(":")
    no = _ternary(lx, words, depth + 1)
    return yes if condition else no


def _binary(lx: Lexer, words: list[str], depth: int, loosest: int) -> Number:
    """Read operators that bind at least as tightly as `loosest`, by precedence climbing."""
    left = _unary(lx, words, depth)
    while lx.kind == "op" and (level := _LEVEL.get(lx.value, -1)) >= loosest:
        start = lx.start
        operator = lx.advance()
        words.append(operator)
        right = _binary(lx, words, depth + 1, level + 1)
        try:
            left = _wrap(_OPERATIONS[operator](left, right))
        except (TypeError, ZeroDivisionError, ValueError, OverflowError):
            raise lx.refuse(f"the constant expression has no value: `{operator}` of {left} and {right}", start) from None
    return left


def _unary(lx: Lexer, words: list[str], depth: int) -> Number:
    if depth > _DEEPEST:
        raise lx.refuse(f"a constant expression nested deeper than {_DEEPEST} levels")
    value = lx.value
    if lx.kind == "int":
        words.append(value)
        return lx.int_constant()
    if lx.kind == "float":
        words.append(value)
        return _float_constant(lx)[0]
    if value == "WARP_SZ":
        words.append(lx.advance())
        return 32
    if value == "(":
        return _parenthesis(lx, words, depth)
    if lx.kind == "op" and value in _UNARY:
        start = lx.start
        words.append(lx.advance())
        if lx.value[:2] in ("0f", "0F", "0d", "0D"):
            raise lx.refuse("a sign before a constant given by its bits", start, "set the highest bit instead")
        operand = _unary(lx, words, depth + 1)
        if value == "~" and isinstance(operand, float):
            raise lx.refuse("`~` of a floating-point constant", start)
        return _wrap(_UNARY[value](operand))
    raise lx.refuse(f"expected a constant, found {lx.shown()}")


def _parenthesis(lx: Lexer, words: list[str], depth: int) -> Number:
    lx.advance()
    if lx.value in (".s64", ".u64"):
        cast = lx.advance()
        lx.expect(")", f"after the cast `({cast}`")
        words.append(f"({cast})")
        operand = _unary(lx, words, depth + 1)
        bits = int(operand) & _MASK
        return bits - (1 << 64) if cast == ".s64" and bits >> 63 else bits
    words.append("(")
    inner = _ternary(lx, words, depth + 1)
    lx.expect(")", "in a constant expression")
    words.append(")")
    return inner


def _divide(a: Number, b: Number) -> Number:
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: Number, b: Number) -> Number:
    return int_only(a) - int_only(b) * int(_divide(a, b))


def int_only(a: Number) -> int:
    """Return `a`; raise TypeError for a float."""
    if isinstance(a, float):
        raise TypeError
    return a


_OPERATIONS: dict[str, Callable[[Number, Number], Number]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": _remainder,
    "<<": lambda a, b: int_only(a) << min(int_only(b), 64),
    ">>": lambda a, b: int_only(a) >> min(int_only(b), 64),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "&": lambda a, b: int_only(a) & int_only(b),
    "|": lambda a, b: int_only(a) | int_only(b),
    "^": lambda a, b: int_only(a) ^ int_only(b),
    "&&": lambda a, b: int(bool(a) and bool(b)),
    "||": lambda a, b: int(bool(a) or bool(b)),
}
_UNARY: dict[str, Callable[[Number], Number]] = {
    "-": lambda a: -a,
    "+": lambda a: a,
    "~": lambda a: ~int_only(a),
    "!": lambda a: int(not a),
}
