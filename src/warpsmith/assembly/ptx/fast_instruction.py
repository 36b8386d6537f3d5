"""The short path of the reader: a `.loc`, or an instruction with plain operands, read by one or two regular expressions.

It takes `@!p ld.global.b32 %r1, [%rd2+16];` and refuses (None) whatever has comments, constant expressions, lists or anything
rare in it; the token reader takes those. Both give the same tree; a test reads every sample both ways.
"""

from __future__ import annotations

import re

from warpsmith.assembly.ptx.constants import float_value
from warpsmith.assembly.ptx.parse_operands import split_member
from warpsmith.assembly.ptx.tree import AddressOperand, Immediate, Instruction, Loc, Name, Operand, PairOperand, VectorOperand

__all__ = ["read_loc", "read_plain"]

_INSTRUCTION = re.compile(
    r"""\s*+(?:@(!?)([%\w$]++)[ \t]++)?+"""
    r"""([a-z][\w$]*+(?:(?:\.|::(?:[0-9]++:(?=[0-9]))?)[\w$]++)*+)(?:[ \t]++([^;:@#/"=()*<>&?!~^]*+))?+;"""
)
_LOC = re.compile(r"\s*+(\.loc)[ \t]++(\d+)[ \t]++(\d+)[ \t]++(\d+)[ \t]*+(?=[\n;@{])")
_WORD = r"(?:%?[A-Za-z_$][\w$]*+(?:\.[a-z]\w*+)?+)"
_INT = r"(?:-?(?:0x[0-9a-fA-F]++|0(?![\w.])|[1-9]\d*+)(?![\w$.]))"
_ELEMENT = rf"(?:{_WORD}|{_INT})"
_OPERAND = re.compile(
    rf"""\s*+(?:
      (?P<word>{_WORD})(?:\|(?P<second>{_WORD}))?+
    | \[\s*+(?P<base>{_WORD})(?:\+(?P<offset>{_INT}))?+\s*+\]
    | (?P<int>{_INT})
    | (?P<float>0[fF][0-9a-fA-F]{{8}}|0[dD][0-9a-fA-F]{{16}})(?![\w$])
    | \{{\s*+(?P<vector>{_ELEMENT}(?:\s*+,\s*+{_ELEMENT})*+)\s*+\}}
    )\s*+(?:,|\Z)""",
    re.VERBOSE,
)
_instruction = _INSTRUCTION.match
_operands = _OPERAND.finditer
_loc = _LOC.match
_MASK = 0xFFFF_FFFF_FFFF_FFFF
_LONGEST = 20


def read_loc(text: str, at: int) -> tuple[Loc, int, int] | None:
    """Read the `.loc file line column` at offset `at`, if one stands there; return it with its start and end."""
    m = _loc(text, at)
    if m is None:
        return None
    return Loc(int(m[2]), int(m[3]), int(m[4])), m.start(1), m.end(4)


def read_plain(text: str, at: int) -> tuple[Instruction, int, int] | None:
    """Read the instruction at offset `at`; return it with its start and end, or None when it is not a plain one."""
    m = _instruction(text, at)
    if m is None:
        return None
    negated, guard, mnemonic, written = m.groups()
    operands: list[Operand] = []
    if written and not written.isspace():
        if "WARP_SZ" in written:
            return None
        end = 0
        for o in _operands(written):
            if o.start() != end:
                return None
            end = o.end()
            kind = o.lastgroup
            if kind == "word":
                word = o["word"]
                operands.append(Name(word) if "." not in word else _name(word))
            else:
                try:
                    operands.append(_READERS[kind](o))  # type: ignore[index]
                except OverflowError:  # the token reader says where
                    return None
        if end != len(written) or written[end - 1] == ",":
            return None
    instruction = Instruction(mnemonic, operands, None if guard is None else Name(guard, negated == "!"))
    return instruction, m.start(3) if guard is None else text.index("@", at), m.end()


def _name(word: str) -> Name:
    name, member = split_member(word)
    return Name(name, False, member)


def _int(text: str) -> Immediate:
    if text[0] == "-":
        return Immediate(text, -_magnitude(text[1:]))
    return Immediate(text, _magnitude(text))


def _magnitude(text: str) -> int:
    if len(text) > _LONGEST:
        raise OverflowError
    value = int(text, 16) if text[:2] == "0x" else int(text)
    if value > _MASK:
        raise OverflowError
    return value


def _address(o: re.Match[str]) -> AddressOperand:
    offset = o["offset"]
    if offset is None:
        return AddressOperand(_name(o["base"]))
    value = _int(offset).value
    assert isinstance(value, int)
    return AddressOperand(_name(o["base"]), value - (1 << 64) if value >> 63 == 1 else value, zero=not value)


def _float(o: re.Match[str]) -> Immediate:
    text = o["float"]
    value, kind = float_value(text)
    return Immediate(text, value, kind)


def _vector(o: re.Match[str]) -> VectorOperand:
    elements: list[Operand] = []
    for part in o["vector"].split(","):
        part = part.strip()
        elements.append(_int(part) if part[0] in "-0123456789" else _name(part))
    return VectorOperand(elements)


_READERS = {
    "second": lambda o: PairOperand(_name(o["word"]), _name(o["second"])),
    "base": _address,
    "offset": _address,
    "int": lambda o: _int(o["int"]),
    "float": _float,
    "vector": _vector,
}
