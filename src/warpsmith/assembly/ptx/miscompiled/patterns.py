"""The patterns that ptxas makes wrong code of, each told from an instruction and what made its operands.

A pattern takes the flow of a function and an instruction, and returns the instructions that it is wrong with, without the
instruction itself (often none); None: ptxas makes right code of it. The table `patterns.txt` says which opcodes a
pattern looks at. Each is as wide as what was measured, and no wider.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.isa import match
from warpsmith.assembly.ptx.miscompiled.narrowed import narrowed_argument, narrowed_float
from warpsmith.assembly.ptx.tree import Immediate, Name, PairOperand, VectorOperand

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.flow import Flow, Step
    from warpsmith.assembly.ptx.tree import Operand

__all__ = ["PATTERNS", "Pattern"]

Pattern = Callable[["Flow", "Step"], "list[Step] | None"]

_NARROW = frozenset(("b8", "u8", "s8", "b16", "u16", "s16", "f16", "bf16"))
_F32_MADE = frozenset(
    (
        "abs", "add", "atom", "cos", "cvt", "div", "ex2", "fma", "ld", "ldu", "lg2", "mad", "max", "min", "mov", "mul", "neg",
        "rcp", "rsqrt", "selp", "set", "sin", "slct", "sqrt", "sub", "tanh",
    )
)  # fmt: skip
"""Opcodes whose f32 results were seen to be taken for numbers by a 64-bit shift."""
_SCALED = ("rcp", "sqrt", "rsqrt", "lg2", "ex2")
"""Opcodes that end in another instruction where they keep subnormals: their results are shifted by as bits."""
_PAIR_MADE = frozenset(("ld", "ldu", "atom"))
"""Opcodes that write both words of a 64-bit register at once, as `mul.wide` does."""
_WRAPPING = frozenset(f"{opcode}{carry}.{sign}32" for opcode in ("add", "sub") for carry in ("", ".cc") for sign in "us")
"""Sums that a saturating one cancels terms of."""
_BRANCHING = frozenset(("rcp", "sqrt", "rsqrt", "div", "rem", "call", "atom", "red", "sin", "cos", "fns"))
"""Opcodes of which ptxas builds some forms with branches, calls or loops."""
_INTEGERS = frozenset(("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"))


def _words(step: Step) -> list[str]:
    return step.instruction.mnemonic.split(".")


def _result_type(step: Step) -> str:
    for m in match(step.instruction.mnemonic):
        if m.operands and m.operands[0].type is not None:
            return m.operands[0].type.name
    return ""


def _same(flow: Flow, a: Step, x: Operand, b: Step, y: Operand) -> bool:
    """Say whether two operands hold one value: the same register, made by the same instruction."""
    if isinstance(x, Immediate) or isinstance(y, Immediate):
        left, right = flow.constant(a, x), flow.constant(b, y)
        return left is not None and left == right
    register = flow.register(x, a.scope)
    return register is not None and register == flow.register(y, b.scope) and flow.definitions(a, x) == flow.definitions(b, y)


def narrow_v8_store(flow: Flow, step: Step) -> list[Step] | None:
    """`st…v8` of a type of 8 or 16 bits."""
    words = _words(step)
    return [] if "v8" in words and words[-1] in _NARROW else None


def rzi_of_flushed(flow: Flow, step: Step) -> list[Step] | None:
    """`cvt.rzi` to an integer of what `neg.ftz` or `abs.ftz` of f16 (or f16x2) made."""
    words = _words(step)
    if "rzi" not in words or words[-1] != "f16" or words[-2] not in _INTEGERS:
        return None
    made = flow.source(step, step.instruction.operands[1])
    if made is not None and made.instruction.opcode == "mov" and isinstance(made.instruction.operands[0], VectorOperand):
        made = flow.source(made, made.instruction.operands[1])
    if made is None or made.instruction.opcode not in ("neg", "abs") or "ftz" not in _words(made):
        return None
    return [made] if _words(made)[-1] in ("f16", "f16x2") else None


def bfe_position(flow: Flow, step: Step) -> list[Step] | None:
    """`bfe.s32` whose position and length are constants, the position past bit 31."""
    if step.instruction.mnemonic != "bfe.s32" or flow.constant(step, step.instruction.operands[1]) is not None:
        return None
    position, length = (flow.constant(step, o) for o in step.instruction.operands[2:4])
    return [] if position is not None and position & 255 > 31 and length is not None and length & 255 else None


def byte_product(flow: Flow, step: Step) -> list[Step] | None:
    """`mma` of 8-bit floats that writes a register of D before it reads it as a later one of C."""
    d, _, _, c = step.instruction.operands[:4]
    if not isinstance(d, VectorOperand) or not isinstance(c, VectorOperand):
        return None
    written, read = ([flow.register(e, step.scope) for e in v.elements] for v in (d, c))
    early = any(r is not None and r in written[:k] for k, r in enumerate(read))
    return [] if early else None


def slct_constant(flow: Flow, step: Step) -> list[Step] | None:
    """`slct.s32.s32` by a constant whose bits are a NaN without sign, or -0.0."""
    if step.instruction.mnemonic != "slct.s32.s32":
        return None
    selector = flow.constant(step, step.instruction.operands[3])
    return [] if selector is not None and (selector & 0xFFFFFFFF == 1 << 31 or 0x7F800000 < selector < 1 << 31) else None


def returned_b128(flow: Flow, step: Step) -> list[Step] | None:
    """`ld.param::func.b128`."""
    words = _words(step)
    return [] if "param::func" in words and words[-1] == "b128" else None


def shift_by_float(flow: Flow, step: Step) -> list[Step] | None:
    """A 64-bit shift by a register that an f32 instruction of the same block wrote last."""
    if _words(step)[-1] not in ("b64", "u64", "s64"):
        return None
    made = flow.last_in_block(step, step.instruction.operands[2])
    if made is None or made.instruction.opcode not in _F32_MADE or _result_type(made) != "f32":
        return None
    words, opcode = _words(made), made.instruction.opcode
    rounded = opcode == "cvt" and words[-2:] == ["f32", "f32"] and bool({"rni", "rzi", "rmi", "rpi"} & set(words))
    as_bits = (
        (opcode in _SCALED and "approx" in words and "ftz" not in words)
        or (opcode == "div" and ("approx" in words or "full" in words))
        or (opcode == "set" and len(made.instruction.operands) == 3)
        or (opcode == "mov" and isinstance(made.instruction.operands[1], Immediate))
        or rounded
    )
    return None if as_bits else [made]


def video_h1(flow: Flow, step: Step) -> list[Step] | None:
    """A scalar video instruction that merges its result as `.h1`."""
    result = step.instruction.operands[0]
    return [] if isinstance(result, Name) and result.member == "h1" and len(step.instruction.operands) == 4 else None


def half_function_and(flow: Flow, step: Step) -> list[Step] | None:
    """`and.b16` with a constant of what `tanh` or `ex2` of f16 made in the same block."""
    _, a, b = step.instruction.operands
    for operand, other in ((a, b), (b, a)):
        made = flow.source(step, operand)
        mask = flow.constant(step, other)
        if made is None or made.block != step.block or mask is None or mask & 0xFFFF in (0, 0xFFFF):
            continue
        if made.instruction.opcode in ("tanh", "ex2") and _words(made)[-1] == "f16":
            return [made]
    return None


def negated_s16(flow: Flow, step: Step) -> list[Step] | None:
    """A signed 16-bit operand that is extended, and that `neg.s16`, `abs.s16` or `sub.s16` from zero made."""
    last = 3 if step.instruction.opcode in ("mul", "mad", "setp") else 2
    for operand in step.instruction.operands[1:last]:
        made = flow.source(step, operand)
        if made is None:
            continue
        words = made.instruction.mnemonic
        if words in ("neg.s16", "abs.s16") or (words == "sub.s16" and flow.constant(made, made.instruction.operands[1]) == 0):
            return [made]
    return None


def half_pair_atomic(flow: Flow, step: Step) -> list[Step] | None:
    """An atomic addition of f16x2 or bf16x2 to shared memory, or by a generic address, of one word of a 64-bit register."""
    words = _words(step)
    if words[-1] not in ("f16x2", "bf16x2") or "global" in words or "add" not in words or {"v2", "v4"} & set(words):
        return None
    taken = flow.source(step, step.instruction.operands[2 if step.instruction.opcode == "atom" else 1])
    if taken is None:
        return None
    operands, ending = taken.instruction.operands, _words(taken)
    unpacked = taken.instruction.opcode == "mov" and ending[-1] == "b64" and isinstance(operands[0], VectorOperand)
    narrowed = taken.instruction.opcode == "cvt" and "sat" not in ending
    if not unpacked and not (narrowed and ending[-2] in ("u32", "s32") and ending[-1] in ("u64", "s64")):
        return None
    whole = flow.source(taken, operands[1])
    if whole is None:
        return None
    made = _words(whole)
    loaded = (
        made[0] in _PAIR_MADE and made[-1] in ("b64", "u64", "s64") and not any(w.startswith(("param", "const")) for w in made)
    )
    return [taken, whole] if loaded or made[:2] == ["mul", "wide"] else None


def guarded_testp(flow: Flow, step: Step) -> list[Step] | None:
    """A guarded `testp` whose result has a value already."""
    return [] if step.guarded and _held(flow, step) else None


def guarded_set(flow: Flow, step: Step) -> list[Step] | None:
    """A guarded `set` that ptxas builds from several instructions, whose result has a value already."""
    words = _words(step)
    result, compared = words[-2], words[-1]
    narrow = compared in ("b16", "u16", "s16", "f16", "bf16") and result in ("s32", "u32")
    built = result in ("f16", "bf16") or (result == "f32" and compared not in ("f16", "bf16")) or narrow
    return [] if step.guarded and built and _held(flow, step) else None


def _held(flow: Flow, step: Step) -> bool:
    """Say whether some instruction has given the result's register a value before."""
    return any(s is not None and s is not step for s in flow.definitions(step, step.instruction.operands[0]))


def shift_by_cnot(flow: Flow, step: Step) -> list[Step] | None:
    """`shl.b16` or `shr.u16` by what `cnot.b32` made."""
    if step.instruction.mnemonic not in ("shl.b16", "shr.u16", "shr.b16"):
        return None
    made = flow.source(step, step.instruction.operands[2])
    if made is None or made.instruction.mnemonic != "cnot.b32" or flow.constant(made, made.instruction.operands[1]) is not None:
        return None
    return [made]


def abs_of_float(flow: Flow, step: Step) -> list[Step] | None:
    """`abs` of f16x2 or bf16x2 of bits that an f32 instruction with a result that is never negative made."""
    if _words(step)[-1] not in ("f16x2", "bf16x2"):
        return None
    made = flow.source(step, step.instruction.operands[1])
    if made is None or _result_type(made) != "f32":
        return None
    words = _words(made)
    saturated = made.instruction.opcode in ("add", "sub", "mul", "fma", "mad", "cvt") and "sat" in words
    return [made] if saturated or words == ["abs", "f32"] or words == ["ex2", "approx", "ftz", "f32"] else None


def saturated_cancel(flow: Flow, step: Step) -> list[Step] | None:
    """`add.sat.s32` or `sub.sat.s32` that takes away again what a wrapping sum had put in: `(a - b) + b`, `(a + b) - a`, …"""
    if _words(step)[1] != "sat" or _words(step)[-1] != "s32":
        return None
    _, a, b = step.instruction.operands
    outer = step.instruction.opcode
    for operand, other in ((a, b), (b, a)):
        made = flow.source(step, operand)
        if made is None or made.instruction.mnemonic not in _WRAPPING:
            continue
        _, x, y = made.instruction.operands
        inner = made.instruction.opcode
        meets_x, meets_y = _same(flow, made, x, step, other), _same(flow, made, y, step, other)
        if outer == "add" and inner == "sub" and meets_y:
            return [made]
        if outer == "sub" and ((inner == "add" and (meets_x or meets_y)) or (inner == "sub" and meets_x)):
            return [made]
    return None


def saturated_constants(flow: Flow, step: Step) -> list[Step] | None:
    """`add.sat.s32` or `sub.sat.s32` of a constant and a wrapping sum with a constant that nothing else reads."""
    if _words(step)[1] != "sat" or _words(step)[-1] != "s32":
        return None
    _, a, b = step.instruction.operands
    pairs = ((a, b),) if step.instruction.opcode == "sub" else ((a, b), (b, a))
    for operand, other in pairs:
        made = flow.source(step, operand)
        if flow.constant(step, other) is None or made is None:
            continue
        if made.instruction.mnemonic not in ("add.s32", "add.u32", "sub.s32", "sub.u32"):
            continue
        if (flow.constant(made, made.instruction.operands[1]) is None) == (
            flow.constant(made, made.instruction.operands[2]) is None
        ):
            continue
        if all(flow.reads(r) == 1 for r in flow.writes(made)):
            return [made]
    return None


def lop3_zero_test(flow: Flow, step: Step) -> list[Step] | None:
    """A result of `lop3` with a predicate (`.and`, `.or`) that `setp` compares with zero, or that divides."""
    words, operands = _words(step), step.instruction.operands
    if words[0] == "setp" and words[1] in ("eq", "ne") and len(words) == 3 and len(operands) == 3:
        tested = (
            operands[1]
            if flow.constant(step, operands[2]) == 0
            else operands[2]
            if flow.constant(step, operands[1]) == 0
            else None
        )
        if words[2] not in ("b32", "u32", "s32") or tested is None:
            return None
    elif words in (["div", "u32"], ["rem", "u32"]):
        tested = operands[2]
    else:
        return None
    made = flow.source(step, tested)
    if made is None or made.instruction.opcode != "lop3" or not isinstance(made.instruction.operands[0], PairOperand):
        return None
    if made.block != step.block or _branches_between(flow, made, step):
        return None
    # by `.or` a division goes wrong where its divisor is zero only, and that result is open (9.7.1.9)
    return [made] if _words(made)[1] in (("and",) if words[0] != "setp" else ("and", "or")) else None


def _branches_between(flow: Flow, first: Step, last: Step) -> bool:
    """Say whether ptxas may build an instruction between two of one block with branches or calls."""
    for step in flow.before_in_block(last):
        if step is first:
            break
        if step.instruction.opcode in _BRANCHING:
            return True
    return False


def madc_high(flow: Flow, step: Step) -> list[Step] | None:
    """`madc.hi` of 64 bits behind a carry that constants make, and that is zero."""
    words = _words(step)
    if words[1] != "hi" or words[-1] not in ("s64", "u64"):
        return None
    for before in flow.before_in_block(step):
        before_words = _words(before)
        if "cc" not in before_words:
            continue
        if before_words[0] != "add" or before_words[-1] not in ("u32", "s32") or before.guarded:
            return None
        a, b = (flow.constant(before, o) for o in before.instruction.operands[1:3])
        none = a is not None and b is not None and (a & 0xFFFFFFFF) + (b & 0xFFFFFFFF) < 1 << 32
        return [before] if none else None
    return None


PATTERNS: dict[str, Pattern] = {
    "abs-of-float": abs_of_float,
    "bfe-position": bfe_position,
    "byte-product": byte_product,
    "guarded-set": guarded_set,
    "guarded-testp": guarded_testp,
    "half-function-and": half_function_and,
    "half-pair-atomic": half_pair_atomic,
    "lop3-zero-test": lop3_zero_test,
    "madc-high": madc_high,
    "narrowed-argument": narrowed_argument,
    "narrowed-float": narrowed_float,
    "negated-s16": negated_s16,
    "returned-b128": returned_b128,
    "rzi-of-ftz": rzi_of_flushed,
    "saturated-cancel": saturated_cancel,
    "saturated-constants": saturated_constants,
    "shift-by-cnot": shift_by_cnot,
    "shift-by-float": shift_by_float,
    "slct-constant": slct_constant,
    "v8-store": narrow_v8_store,
    "video-h1": video_h1,
}
"""Name in `patterns.txt` -> its pattern."""
