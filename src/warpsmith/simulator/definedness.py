"""Which results are defined although an operand is not: a false conjunct, the branch not selected.

Compilers compute both sides of `a && b` and of `p ? x : y` when that does no harm, so that values nobody wrote reach
instructions whose result does not depend on them. Each rule fills in `out` `[C, T]`, true where the result is undefined,
from the operands' values and their own flags (false for constants).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.program import Pair, Reg, Vector

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.program import Lowered, Operation

    Flags = NDArray[np.bool_]

__all__ = ["Rule", "registers_of", "rule_of", "says_itself"]

Rule = Callable[..., None]


def _decides(value: Any, undefined: Any, absorbing: int) -> Any:
    """Say where an operand is defined and decides the result alone."""
    return (value == np.asarray(absorbing).astype(np.asarray(value).dtype)) & np.logical_not(undefined)


def _conjunction(out: Flags, a: Any, b: Any, ua: Any, ub: Any) -> None:
    out[...] = (ua | ub) & ~(_decides(a, ua, 0) | _decides(b, ub, 0))


def _disjunction(out: Flags, a: Any, b: Any, ua: Any, ub: Any) -> None:
    out[...] = (ua | ub) & ~(_decides(a, ua, -1) | _decides(b, ub, -1))


def _selection(out: Flags, a: Any, b: Any, p: Any, ua: Any, ub: Any, up: Any) -> None:
    del a, b
    out[...] = np.where(p, ua, ub) | up


def _comparison_and(out: Flags, a: Any, b: Any, p: Any, ua: Any, ub: Any, up: Any) -> None:
    del a, b
    out[...] = (ua | ub | up) & ~_decides(p, up, 0)


def _comparison_or(out: Flags, a: Any, b: Any, p: Any, ua: Any, ub: Any, up: Any) -> None:
    del a, b
    out[...] = (ua | ub | up) & ~_decides(p, up, -1)


def rule_of(op: Operation) -> Rule | None:
    """Return the rule of an instruction; None: its result is undefined where an operand is."""
    if op.opcode in ("and", "or"):
        return _conjunction if op.opcode == "and" else _disjunction
    if op.opcode == "selp":
        return _selection
    if op.opcode == "setp" and sum(not w for w in op.written) == 3:
        words = op.text.split(".")
        return _comparison_and if "and" in words else _comparison_or if "or" in words else None
    return None


def registers_of(operand: Lowered) -> list[Reg]:
    """Return the registers of a value operand: those of an address do not count."""
    if isinstance(operand, Reg):
        return [operand]
    if isinstance(operand, Vector):
        return [r for o in operand.items for r in registers_of(o)]
    if isinstance(operand, Pair):
        return registers_of(operand.first) + registers_of(operand.second)
    return []


def says_itself(op: Operation) -> bool:
    """Say whether a meaning marks its undefined results itself: they do not follow from the operands of the same lane."""
    return op.opcode in ("ld", "ldu", "shfl", "vote", "match", "redux") or getattr(op.fn, "knows_defined", False)
