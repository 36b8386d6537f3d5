"""What the code of a block refers to, bound to a rectangle of threads: register rows, constants, scratch, destinations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.simulator.operands import Dest, VectorDest
from warpsmith.simulator.program import Address, Const, Lowered, Pair, Reg, Special, Vector
from warpsmith.simulator.special import special_fixed, special_now

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.simulator.lanes import Lanes

__all__ = ["Bind", "destination", "register_row", "rows", "scratch", "source", "undefined_rows"]

Bind = "Callable[[Lanes], Any]"

_WIDTH = {"b16": 2, "b32": 4, "b64": 8, "pred": 1}


def width_of(reg: Reg) -> int:
    """Return the bytes of the register's slot."""
    return _WIDTH[reg.bank]


def register_row(reg: Reg) -> Callable[[Lanes], Any]:
    """Bind a register as the operand's dtype: a live view `[C, T]` (`[2, C, T]` for 128 bits)."""

    def bind(x: Lanes) -> Any:
        count = reg.count if reg.count > 1 else None
        return x.machine.registers.view(reg.bank, reg.slot, count, reg.dtype, x.rect, reg.byte)

    return bind


def wide_dtype(reg: Reg) -> Any:
    """Return the dtype of the whole register, signed where the operand is."""
    width = width_of(reg)
    kind = np.dtype(reg.dtype).kind
    if width == np.dtype(reg.dtype).itemsize:
        return reg.dtype
    return np.dtype(f"{'i' if kind == 'i' else 'u'}{width}").type


def whole_row(reg: Reg) -> Callable[[Lanes], Any]:
    """Bind a register in its full width, for results that are extended."""

    dtype = wide_dtype(reg)

    def bind(x: Lanes) -> Any:
        count = reg.count if reg.count > 1 else None
        return x.machine.registers.view(reg.bank, reg.slot, count, dtype, x.rect)

    return bind


def rows(reg: Reg, count: int, step: int) -> Callable[[Lanes], Any]:
    """Bind `count` registers `step` slots apart as `[count, C, T]`; step 0 repeats one."""

    def bind(x: Lanes) -> Any:
        if step == 0:
            one = x.machine.registers.view(reg.bank, reg.slot, None, reg.dtype, x.rect, reg.byte)
            return np.broadcast_to(one, (count, *one.shape))
        low = reg.slot if step > 0 else reg.slot + step * (count - 1)
        span = abs(step) * (count - 1) + 1
        block = x.machine.registers.view(reg.bank, low, span, reg.dtype, x.rect, reg.byte)
        return block[:: abs(step)] if step > 0 else block[:: abs(step)][::-1]

    return bind


def scratch(dtype: Any, index: int, count: int | None = None) -> Callable[[Lanes], Any]:
    """Bind scratch of the rectangle's shape; equal indices of a dtype share it."""

    def bind(x: Lanes) -> Any:
        return x.machine.scratch(dtype, index, x.shape if count is None else (count, *x.shape))

    return bind


def special(s: Special) -> Callable[[Lanes], Any]:
    """Bind a special register that is fixed while a CTA is resident."""

    def bind(x: Lanes) -> Any:
        array = special_fixed(s.name, x)
        if array.dtype == s.dtype:
            return array
        same = array.dtype.itemsize == np.dtype(s.dtype).itemsize
        return array.view(s.dtype) if same else array.astype(s.dtype)

    return bind


def special_moving(s: Special) -> Callable[[Lanes], Any]:
    """Bind a function that reads a special register of the moment."""

    def bind(x: Lanes) -> Any:
        def now() -> Any:
            array = special_now(s.name, x)
            return array.view(s.dtype) if array.dtype.itemsize == np.dtype(s.dtype).itemsize else array.astype(s.dtype)

        return now

    return bind


def _one_destination(reg: Lowered, x: Lanes) -> Dest | None:
    if reg is None:
        return None
    assert isinstance(reg, Reg)
    dest = Dest(whole_row(reg)(x), reg.dtype, reg.bank, reg.slot)
    if x.machine.registers.undefined is not None:
        count = reg.count if reg.count > 1 else None
        dest.undefined = x.machine.registers.undefined_view(reg.bank, reg.slot, count, x.rect)
    return dest


def _consecutive(items: tuple[Lowered, ...]) -> bool:
    first = items[0]
    if not isinstance(first, Reg) or first.count > 1 or width_of(first) != np.dtype(first.dtype).itemsize:
        return False
    return all(
        isinstance(r, Reg) and (r.bank, r.slot, r.dtype, r.byte) == (first.bank, first.slot + i, first.dtype, 0)
        for i, r in enumerate(items)
    )


def destination(operand: Lowered) -> Callable[[Lanes], Any]:
    """Bind a written operand: Dest, VectorDest, or a pair."""

    def bind(x: Lanes) -> Any:
        if isinstance(operand, Pair):
            return _one_destination(operand.first, x), _one_destination(operand.second, x)
        if isinstance(operand, Vector):
            array = None
            if operand.items and _consecutive(operand.items):
                first = operand.items[0]
                assert isinstance(first, Reg)
                array = rows(first, len(operand.items), 1)(x)
            return VectorDest([_one_destination(r, x) for r in operand.items], array)
        return _one_destination(operand, x)

    return bind


def source(operand: Lowered) -> Callable[[Lanes], Any]:
    """Bind a read operand of a machine meaning (negated predicates and moving special registers excepted)."""

    def bind(x: Lanes) -> Any:
        if operand is None:
            return None
        if isinstance(operand, Const):
            value = operand.value
            return np.broadcast_to(value, x.shape) if isinstance(value, np.generic) else value
        if isinstance(operand, Special):
            return special(operand)(x)
        if isinstance(operand, Reg):
            return register_row(operand)(x)
        if isinstance(operand, Vector):
            if operand.items and _consecutive(operand.items):
                first = operand.items[0]
                assert isinstance(first, Reg)
                return rows(first, len(operand.items), 1)(x)
            return [source(item)(x) for item in operand.items]
        if isinstance(operand, Pair):
            return source(operand.first)(x), source(operand.second)(x)
        assert isinstance(operand, Address)
        return np.broadcast_to(np.int64(operand.offset), x.shape)

    return bind


def undefined_rows(reg: Reg) -> Callable[[Lanes], Any]:
    """Bind the undefined flags of a register `[C, T]` (those of both halves or'ed are not needed: the first counts)."""

    def bind(x: Lanes) -> Any:
        return x.machine.registers.undefined_view(reg.bank, reg.slot, None, x.rect)

    return bind
