"""Runs of one operation over consecutive registers become one numpy call.

fma %f4, %f0, %f9, %f4        fma on [4, C, T]: %f4…%f7 = %f0…%f3 * %f9 + %f4…%f7
fma %f5, %f1, %f9, %f5   →
…
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from warpsmith.simulator.program import Address, Const, Lowered, Operation, Reg, Vector

__all__ = ["Group", "groups", "is_load", "is_product", "load_registers", "steps_between"]

WIDTHS = {"b16": 2, "b32": 4, "b64": 8, "pred": 1}


@final
@dataclass(slots=True)
class Group:
    """Operations done by one call: `steps[i]` is the distance of operand i's slots from one operation to the next."""

    operations: list[Operation]
    steps: list[int]
    overlaps: bool
    """A written register is also read."""

    @property
    def count(self) -> int:
        """Number of operations."""
        return len(self.operations)


def groups(operations: list[Operation], *, enabled: bool, products: bool = False) -> list[Group]:
    """Cut a block's operations into groups, in order; `products`: matrix products of one A, too."""
    out: list[Group] = []
    at = 0
    while at < len(operations):
        end, steps = (_loads(operations, at), []) if is_load(operations[at]) and enabled else (at + 1, [])
        if enabled and products and is_product(operations[at]):
            end = _products(operations, at)
        if enabled and end == at + 1:
            end, steps = _run(operations, at)
        members = operations[at:end]
        writes = set[tuple[str, int]]().union(*(op.writes() for op in members))
        reads = set[tuple[str, int]]().union(*(op.reads() for op in members))
        out.append(Group(members, steps, bool(writes & reads)))
        at = end
    return out


def is_load(op: Operation) -> bool:
    """Say whether several of these can be one access."""
    return op.kind == "machine" and op.guard is None and hasattr(op.fn, "many")


def is_product(op: Operation) -> bool:
    """Say whether several of these with one A can be one product: D, A, B, C in registers."""
    return (
        op.kind == "machine"
        and op.guard is None
        and hasattr(op.fn, "wide")
        and all(isinstance(r, Reg) for o in op.operands for r in (o.items if isinstance(o, Vector) else (o,)))
    )


def _products(operations: list[Operation], at: int) -> int:
    """Return the end of the run of products with one A that begins at `at`."""
    first = operations[at]
    written = set(first.writes())
    end = at + 1
    while end < len(operations):
        op = operations[end]
        if op.fn is not first.fn or not is_product(op) or op.operands[1] != first.operands[1]:
            break
        if (op.reads() | op.writes()) & written:
            break
        written |= op.writes()
        end += 1
    return end


def load_registers(operations: list[Operation]) -> tuple[Reg, int, int, int] | None:
    """Return (first register, how many, step, registers of one load) when loads fill evenly spaced registers, else None."""
    each: list[list[Reg]] = []
    for op in operations:
        dest = op.operands[0]
        items = dest.items if isinstance(dest, Vector) else (dest,)
        if not all(isinstance(r, Reg) and r.count == 1 and WIDTHS[r.bank] == np.dtype(r.dtype).itemsize for r in items):
            return None
        each.append([r for r in items if isinstance(r, Reg)])
    flat = [r for regs in each for r in regs]
    first = flat[0]
    step = flat[1].slot - first.slot if len(flat) > 1 else 1
    even = all(r.bank == first.bank and r.dtype == first.dtype and r.slot == first.slot + i * step for i, r in enumerate(flat))
    return (first, len(flat), step, len(each[0])) if even and step > 0 else None


def _loads(operations: list[Operation], at: int) -> int:
    """Return the end of the run of loads by one base register that begins at `at`."""
    first = operations[at]
    base = _base(first)
    end = at + 1
    written = set(first.writes())
    while end < len(operations):
        op = operations[end]
        if op.fn is not first.fn or not is_load(op) or _base(op) != base or op.reads() & written:
            break
        if load_registers(operations[at : end + 1]) is None:
            break
        written |= op.writes()
        end += 1
    return end


def _base(op: Operation) -> object:
    address = next(o for o in op.operands if isinstance(o, Address))
    return address.base


def _run(operations: list[Operation], at: int) -> tuple[int, list[int]]:
    """Return the end of the run that begins at `at`, and the steps of its operands."""
    first = operations[at]
    if first.kind not in ("pure", "copy") or first.guard is not None or not _groupable(first):
        return at + 1, []
    end = at + 1
    if end >= len(operations) or (steps := steps_between(first, operations[end])) is None:
        return end, []
    written = first.writes()
    previous = first
    while end < len(operations):
        op = operations[end]
        if steps_between(previous, op) != steps or op.reads() & written:
            break
        written |= op.writes()
        previous = op
        end += 1
    return (end, steps) if end > at + 1 else (at + 1, [])


def _groupable(op: Operation) -> bool:
    return all(
        o is None or isinstance(o, Const) or (isinstance(o, Reg) and o.count == 1 and not o.negated) for o in op.operands
    )


def steps_between(a: Operation, b: Operation) -> list[int] | None:
    """Return the slot distance of each operand from `a` to `b`; None where they are not alike."""
    if a.fn is not b.fn or a.kind != b.kind or b.guard is not None or len(a.operands) != len(b.operands):
        return None
    out: list[int] = []
    for i, (p, q) in enumerate(zip(a.operands, b.operands, strict=True)):
        step = _step(p, q)
        if step is None or (a.written[i] and step < 1 and p is not None):
            return None
        out.append(step)
    return out


def _step(p: Lowered, q: Lowered) -> int | None:
    if isinstance(p, Reg) and isinstance(q, Reg):
        same = p.bank == q.bank and p.dtype == q.dtype and p.byte == q.byte and p.count == q.count == 1
        return q.slot - p.slot if same and not q.negated else None
    if isinstance(p, Const) and isinstance(q, Const):
        return 0 if type(p.value) is type(q.value) and p.value == q.value else None
    return 0 if p is None and q is None else None
