"""Which bytes of results are defined although an operand is not: a false conjunct, the branch not selected, the other half.

Compilers compute both sides of `a && b` and of `p ? x : y` when that does no harm, and pack two values into one register, so
that values nobody wrote reach instructions whose result, or a part of it, does not depend on them. A register's *mask* `[C, T]`
(uint8) has a bit for each of its bytes that is undefined, lowest first; bits past its width are set with others only. A rule
fills in the mask `out` of the result from the operands' values and their masks (0 for constants). Without one, every byte of a
result is undefined where any of an operand is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.definedness_bytes import byte_rule_of, bytes_of, whole, widths_of
from warpsmith.simulator.program import Const, Pair, Reg, Vector

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.program import Lowered, Operation

    Masks = NDArray[np.uint8]

__all__ = ["Rule", "copy_mask", "cuts", "registers_of", "rule_of", "says_itself"]

Rule = Callable[..., None]


def _decides(value: Any, mask: Any, absorbing: int) -> Any:
    """Return the bytes at which an operand is defined and decides the result alone."""
    value = np.asarray(value)
    if value.dtype == np.bool_:
        same = np.where(value == bool(absorbing), np.uint8(255), np.uint8(0))
        return same & ~whole(mask)
    each = np.ascontiguousarray(value)[..., None].view(np.uint8) == (absorbing & 0xFF)
    return np.packbits(each, axis=-1, bitorder="little")[..., 0].reshape(value.shape) & ~np.asarray(mask, np.uint8)


def _conjunction(out: Masks, a: Any, b: Any, ua: Any, ub: Any) -> None:
    out[...] = (ua | ub) & ~(_decides(a, ua, 0) | _decides(b, ub, 0)) & bytes_of(a, b)


def _disjunction(out: Masks, a: Any, b: Any, ua: Any, ub: Any) -> None:
    out[...] = (ua | ub) & ~(_decides(a, ua, -1) | _decides(b, ub, -1)) & bytes_of(a, b)


def _selection(out: Masks, a: Any, b: Any, p: Any, ua: Any, ub: Any, up: Any) -> None:
    del a, b
    out[...] = np.where(p, ua, ub) | whole(up)


def _comparison_and(out: Masks, a: Any, b: Any, p: Any, ua: Any, ub: Any, up: Any) -> None:
    del a, b
    out[...] = whole(ua | ub | up) & ~_decides(p, up, 0)


def _comparison_or(out: Masks, a: Any, b: Any, p: Any, ua: Any, ub: Any, up: Any) -> None:
    del a, b
    out[...] = whole(ua | ub | up) & ~_decides(p, up, -1)


def rule_of(op: Operation) -> Rule | None:
    """Return the rule of an instruction; None: its result is undefined where an operand is."""
    if op.opcode in ("and", "or"):
        return _conjunction if op.opcode == "and" else _disjunction
    if op.opcode == "selp":
        return _selection
    if op.opcode == "setp" and sum(not w for w in op.written) == 3:
        words = op.text.split(".")
        return _comparison_and if "and" in words else _comparison_or if "or" in words else None
    return byte_rule_of(op)


def copy_mask(d: Reg, a: Lowered) -> Callable[[Masks, Any, Any], None] | None:
    """Return `fn(to, mask, where)` of a `mov` to or from a part of a register; None: the mask goes as it is."""
    width, whole_width = widths_of(d)
    if width == whole_width and (not isinstance(a, Reg) or widths_of(a) == (width, width)):
        return None
    start = a.byte if isinstance(a, Reg) else 0
    part = np.uint8((1 << width) - 1)
    kept = np.uint8((1 << whole_width) - 1 & ~(int(part) << d.byte))

    def run(to: Masks, mask: Any, where: Any) -> None:
        moved = np.asarray(mask, np.uint8) >> np.uint8(start) & part
        if width < whole_width:
            moved = (to & kept) | (moved << np.uint8(d.byte))
        np.copyto(to, moved, where=where)

    return run


def cuts(op: Operation) -> bool:
    """Say whether an instruction masks bits off that are no whole bytes: which of the others are used, masks do not tell."""
    masks = [o.value for o in op.operands if isinstance(o, Const)]
    if op.opcode != "and" or op.guard is not None or not masks:
        return False
    each = np.ascontiguousarray(masks[0]).reshape(-1).view(np.uint8)
    return not np.isin(each, (0, 255)).all()


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
