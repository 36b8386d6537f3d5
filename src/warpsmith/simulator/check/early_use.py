"""Registers of `tcgen05.ld` that are used before `wait::ld`: hardware waits for them, the manual does not promise values.

(PTX ISA 9.7.18.6.4.5 respects true register dependencies and advises the wait.) An instruction is looked for on every way
from the load that passes no wait, whatever the predicates of the branches, in the load's function.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from warpsmith.simulator.program import Sync

if TYPE_CHECKING:
    from warpsmith.simulator.program import Operation, Program

__all__ = ["early_uses"]

_LIMIT = 64
"""Blocks that are looked through."""


def early_uses(program: Program) -> dict[int, Operation]:
    """Return, by `id` of the loads concerned, the first instruction that uses a register of theirs before the wait."""
    out: dict[int, Operation] = {}
    for block in program.blocks:
        for i, op in enumerate(block.operations):
            if op.text.startswith("tcgen05.ld.") and (use := _use(program, block.index, i + 1, op)) is not None:
                out[id(op)] = use
    return out


def _use(program: Program, index: int, start: int, load: Operation) -> Operation | None:
    """Return the use on any way from the load, nearest first."""
    ways, met = deque([(index, start, frozenset(load.writes()))]), set[int]()
    for _ in range(_LIMIT):
        if not ways:
            return None
        index, start, cells = ways.popleft()
        block = program.blocks[index]
        last = block.ending.operation if isinstance(block.ending, Sync) else None
        for op in [*block.operations[start:], *([last] if last is not None else [])]:
            if op.text.startswith("tcgen05.wait::ld"):
                break
            if cells & op.reads():
                return op
            cells -= op.writes() if op.guard is None else frozenset()
        else:
            new = [b for b in block.successors() if cells and b not in met]
            met.update(new)
            ways.extend((b, 0, cells) for b in new)
    return None
