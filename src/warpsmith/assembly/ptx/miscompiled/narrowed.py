"""Stores of fewer bits than a register has that a floating instruction wrote last: ptxas converts the number.

    add.f32 %r1, %r2, %r3; st.global.b16 [%rd1], %r1;       the lower half is stored (9.4.1); ptxas stores F2I.U16.TRUNC of it

A register of type `.b32` has for ptxas the type that its last writer in the block gives it. It was seen for 8 to 16 bits of
f32, 8 to 32 of f64, and 8 of f16 and bf16, in every space, by volatile, relaxed and releasing stores as well. In vectors the
last element decides for all. Up to release 13.0 every such store is converted; since then arguments and results of functions
are, and vectors of signed or unsigned integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.isa import match
from warpsmith.assembly.ptx.tree import Name, VectorOperand

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.flow import Flow, Step
    from warpsmith.assembly.ptx.tree import Operand

__all__ = ["narrowed_argument", "narrowed_float"]

_FLOATS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
_MADE = frozenset(
    (
        "abs", "add", "atom", "cos", "cvt", "div", "ex2", "fma", "ld", "ldu", "lg2", "mad", "max", "min", "mov", "mul", "neg",
        "rcp", "rsqrt", "selp", "set", "sin", "slct", "sqrt", "sub", "tanh",
    )
)  # fmt: skip
"""Opcodes whose floating results were seen to be converted."""
_SCALED = ("rcp", "sqrt", "rsqrt", "lg2", "ex2")
"""Opcodes that end in another instruction where they keep subnormals: their f32 results are stored as bits."""
_BETWEEN = frozenset(
    (
        "abs", "add", "addc", "and", "atom", "bfe", "bfi", "clz", "copysign", "cos", "cp", "cvt", "cvta", "discard", "dp2a",
        "dp4a", "elect", "fma", "fns", "isspacep", "ld", "ldu", "lop3", "mad", "madc", "mapa", "max", "mbarrier", "min", "mov",
        "mul", "neg", "not", "or", "popc", "prefetch", "prmt", "red", "sad", "selp", "set", "setmaxnreg", "setp", "shf", "shl",
        "shr", "sin", "slct", "st", "stmatrix", "sub", "subc", "tanh", "testp", "xor",
    )
)  # fmt: skip
"""Opcodes that may stand between the two; others end what ptxas takes for a block (all that waits, votes, shuffles, `div`)."""


def narrowed_float(flow: Flow, step: Step) -> list[Step] | None:
    """A store, but to a parameter, and not of a vector of integers, of a part of what a floating instruction wrote last."""
    return None if _still_converted(step) else _narrowed(flow, step)


def narrowed_argument(flow: Flow, step: Step) -> list[Step] | None:
    """A store to a parameter, or of a vector of integers, of a part of what a floating instruction wrote last."""
    return _narrowed(flow, step) if _still_converted(step) else None


def _still_converted(step: Step) -> bool:
    words = step.instruction.mnemonic.split(".")
    integers = isinstance(step.instruction.operands[1], VectorOperand) and words[-1][0] in "us"
    return integers or any(w.startswith("param") for w in words)


def _narrowed(flow: Flow, step: Step) -> list[Step] | None:
    type_name, stored = step.instruction.mnemonic.rpartition(".")[2], step.instruction.operands[1]
    if isinstance(stored, VectorOperand):
        stored = stored.elements[-1]
    made = flow.last_in_block(step, stored)
    if made is None or step.guarded or made.instruction.opcode not in _MADE or type_name[0] not in "bus":
        return None
    width = _FLOATS.get(_result_type(made), 0)
    if width <= int(type_name[1:]) or width != _register_bits(step, stored) or _as_bits(made):
        return None
    for between in flow.before_in_block(step):
        if between is made:
            return [made]
        if between.guarded or between.instruction.opcode not in _BETWEEN or _reads_a_clock(between):
            return None
    return None


def _as_bits(made: Step) -> bool:
    """Say whether ptxas takes the result for bits: it ends in another instruction."""
    words, opcode = made.instruction.mnemonic.split("."), made.instruction.opcode
    return (
        (opcode in _SCALED and "approx" in words and words[-1] == "f32" and "ftz" not in words)
        or (opcode == "div" and ("approx" in words or "full" in words))
        or (opcode == "set" and len(made.instruction.operands) == 3)
    )


def _reads_a_clock(step: Step) -> bool:
    return step.instruction.opcode == "mov" and any(
        isinstance(o, Name) and o.name.startswith(("%clock", "%globaltimer")) for o in step.instruction.operands[1:]
    )


def _register_bits(step: Step, operand: Operand) -> int:
    symbol = step.scope(operand.name) if isinstance(operand, Name) else None
    return symbol.type.bits if symbol is not None and symbol.type is not None else 0


def _result_type(step: Step) -> str:
    for m in match(step.instruction.mnemonic):
        if m.operands and m.operands[0].type is not None:
            return m.operands[0].type.name
    return ""
