"""`mov` → copies of registers: scalars, packing and unpacking (PTX ISA 9.7.10.4), and whole vectors.

`mov.v2` and `mov.v4` are not in the manual; GCC writes them and ptxas takes them: every source is read before any element is
written (`mov.v2.u32 {%a, %b}, {%b, %a}` exchanges), and of two writes of one register the later stays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.assembly.ptx.tree import Instruction, Name, Operand, VectorOperand
from warpsmith.base.ptx_types import TYPES
from warpsmith.simulator.program import Lowered, Reg, Vector
from warpsmith.simulator.select import refused, select

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.simulator.lower_operands import OperandLowering

__all__ = ["in_turn", "moves"]

Pairs = list[tuple[Lowered, Lowered]]
_UNSIGNED = {1: "b8", 2: "b16", 4: "b32", 8: "b64"}


def moves(s: Instruction, operands: OperandLowering, spare: Callable[[str], Reg]) -> Pairs:
    """Return the copies, destination and source, that a `mov` is; `spare(type)` gives a register that nobody else has."""
    s = _vectors_in_braces(s, operands)
    m = select(s, operands.width)
    word = m.get("type")
    type_ = TYPES[word] if isinstance(word, str) else m.operands[0].type
    dst, src = s.operands
    if not m.get("vec") and (isinstance(dst, VectorOperand) or isinstance(src, VectorOperand)):
        return _packed(dst, src, s, operands, spare)
    d, a = operands.value(dst, type_), operands.value(src, type_)
    if isinstance(d, Vector) and isinstance(a, Vector):
        return in_turn(list(zip(d.items, a.items, strict=True)), lambda: spare(str(type_)))
    return [(d, a)]


def _vectors_in_braces(s: Instruction, operands: OperandLowering) -> Instruction:
    """`mov.b64 %r, %v` of a vector register `%v` is `mov.b64 %r, {%v.x, %v.y}`, and the other way."""

    def size(o: Operand) -> int:
        found = operands.register(o) if isinstance(o, Name) else None
        return found.vector if found is not None else 1

    sizes = [size(o) for o in s.operands]
    if sizes.count(1) != 1 or any(isinstance(o, VectorOperand) for o in s.operands):
        return s
    braced: list[Operand] = [
        VectorOperand([replace(o, member=c) for c in "xyzw"[:n]]) if n > 1 and isinstance(o, Name) else o
        for o, n in zip(s.operands, sizes, strict=True)
    ]
    return replace(s, operands=braced)


def _packed(dst: Any, src: Any, s: Instruction, operands: OperandLowering, spare: Callable[[str], Reg]) -> Pairs:
    vector, whole = (dst, src) if isinstance(dst, VectorOperand) else (src, dst)
    out: Pairs = []
    if isinstance(whole, Name) and operands.register(whole) is not None:
        register = operands.reg(whole, None)
    elif isinstance(whole, VectorOperand):
        raise refused(s, "a vector on both sides")
    else:  # a constant, a special register, an address
        word = s.mnemonic.rpartition(".")[2]
        register = spare(word)
        out.append((register, operands.value(whole, TYPES[word])))
    for part, element in zip(operands.parts(register, len(vector.elements)), vector.elements, strict=True):
        other = operands.value(element, TYPES[_UNSIGNED[np.dtype(part.dtype).itemsize]])
        out.append((other, part) if vector is dst else (part, other))
    return out


def in_turn(pairs: Pairs, spare: Callable[[], Reg]) -> Pairs:
    """Return copies of equal width, meant to happen at once, in an order in which none overwrites what another still reads."""
    last = {_place(d): (d, a) for d, a in pairs if d is not None}
    waiting: Pairs = [(d, a) for d, a in last.values() if _place(d) != _place(a)]
    out: Pairs = []
    while waiting:
        free = next((p for p in waiting if not any(_place(p[0]) == _place(a) for _, a in waiting)), None)
        if free is not None:
            waiting.remove(free)
            out.append(free)
            continue
        kept, first = spare(), waiting[0][0]  # a cycle: keep what its first copy overwrites
        out.append((kept, first))
        waiting = [(d, kept if _place(a) == _place(first) else a) for d, a in waiting]
    return out


def _place(x: Lowered) -> object:
    return (x.bank, x.slot) if isinstance(x, Reg) else x
