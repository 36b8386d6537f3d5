"""Put operations of a block that are alike next to each other, so that they become one numpy call.

ld %f1, [%r1];     ld %f1, [%r1];      Loads come first, then whatever has most companions; an operation keeps its
fma %f9, %f1, …    ld %f2, [%r1+4];    place after everything it depends on: registers it reads or writes, and for
ld %f2, [%r1+4];   fma %f9, %f1, …     memory the order of stores and other effects among themselves and with loads.
fma %f9, %f2, …    fma %f9, %f2, …
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from warpsmith.simulator.grouping import steps_between
from warpsmith.simulator.program import Address, Operation, Reg, Special
from warpsmith.simulator.special import is_moving

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["reorder"]

PROBE = "watch"
"""The opcode of the operations that stand for watch points."""
_SPACINGS = (1, 2, 4, 8)
_FREE = ("ld", "ldmatrix", "mma")
"""Machine operations that only read memory, or none: they may pass each other."""


def reorder(operations: list[Operation]) -> list[Operation]:
    """Return the operations in an order with the same meaning and longer runs of the same kind."""
    for i, op in enumerate(operations):
        if op.opcode == PROBE:  # nothing passes a watch point
            return [*reorder(operations[:i]), op, *reorder(operations[i + 1 :])]
    if len(operations) < 4:
        return operations
    after, waiting = _dependencies(operations)
    kinds = [_kind(op, i) for i, op in enumerate(operations)]
    ready: dict[Hashable, list[tuple[Any, int]]] = {}
    for i, n in enumerate(waiting):
        if n == 0:
            heapq.heappush(ready.setdefault(kinds[i], []), (_rank(operations[i]), i))
    out: list[Operation] = []
    while ready:
        kind = max(ready, key=lambda k: (len(ready[k]), -ready[k][0][1]))
        chosen = ready.pop(kind)
        chosen.sort()
        out += _chains([operations[i] for _, i in chosen])
        for _, i in chosen:
            for j in after[i]:
                waiting[j] -= 1
                if waiting[j] == 0:
                    heapq.heappush(ready.setdefault(kinds[j], []), (_rank(operations[j]), j))
    return out


def _chains(alike: list[Operation]) -> list[Operation]:
    """Order operations of one kind, sorted by the register they write, so that evenly spaced ones follow each other."""
    if len(alike) < 3 or alike[0].kind == "machine":
        return alike
    left = {_rank(op): op for op in alike}
    if len(left) < len(alike):
        return alike
    out: list[Operation] = []
    while left:
        rank, first = next(iter(left.items()))
        best = [first]
        for spacing in _SPACINGS:
            chain = _chain(left, first, rank, spacing)
            if len(chain) > len(best):
                best = chain
        for op in best:
            del left[_rank(op)]
        out += best
    return out


def _chain(left: dict[tuple[Any, ...], Operation], first: Operation, rank: tuple[Any, ...], spacing: int) -> list[Operation]:
    chain = [first]
    steps: list[int] | None = None
    while (op := left.get((rank[0], rank[1] + spacing * len(chain)))) is not None:
        now = steps_between(chain[-1], op)
        if now is None or (steps is not None and now != steps):
            break
        steps = now
        chain.append(op)
    return chain


def _rank(op: Operation) -> tuple[Any, ...]:
    """Return where an operation stands among its kind: by the register it writes."""
    first = op.operands[0] if op.operands else None
    return (first.bank, first.slot) if isinstance(first, Reg) else ("", 0)


def _kind(op: Operation, index: int) -> Hashable:
    """Return what operations that may become one call have in common; others stand alone."""
    if op.guard is not None or _moves(op) or op.kind == "sync" or (op.kind == "machine" and op.opcode not in _FREE):
        return index
    if op.opcode == "mma":  # those of one A
        return (id(op.fn), op.operands[1])
    if op.kind == "machine":
        address = next((o for o in op.operands if isinstance(o, Address)), None)
        base = address.base if address is not None else None
        return (id(op.fn), base.slot if isinstance(base, Reg) else None)
    return (id(op.fn), op.kind, *(type(o) for o in op.operands))


def _moves(op: Operation) -> bool:
    """Say whether the operation reads a clock: it keeps its place among effects."""
    return any(isinstance(o, Special) and is_moving(o.name) for o in op.operands)


def _dependencies(operations: list[Operation]) -> tuple[list[list[int]], list[int]]:
    """Return (operations that come after each, number of operations each comes after)."""
    after: list[list[int]] = [[] for _ in operations]
    waiting = [0] * len(operations)
    last_write: dict[Any, int] = {}
    readers: dict[Any, list[int]] = {}
    last_effect = -1
    loads: list[int] = []
    for i, op in enumerate(operations):
        before: set[int] = set()
        reads, writes = op.reads(), op.writes()
        for cell in reads if op.guard is None else reads | writes:
            if cell in last_write:
                before.add(last_write[cell])
        for cell in writes:
            if cell in last_write:
                before.add(last_write[cell])
            before.update(readers.pop(cell, ()))
        if op.kind == "machine" or _moves(op):
            if last_effect >= 0:
                before.add(last_effect)
            if op.opcode in _FREE:
                loads.append(i)
            else:
                before.update(loads)
                loads = []
                last_effect = i
        before.discard(i)
        for j in before:
            after[j].append(i)
        waiting[i] = len(before)
        for cell in reads:
            readers.setdefault(cell, []).append(i)
        for cell in writes:
            last_write[cell] = i
    return after, waiting
