"""Registers of `tcgen05.ld` that are used before `wait::ld`: hardware waits for them, the manual does not promise values.

(PTX ISA 9.7.18.6.4.5 respects true register dependencies and advises the wait.) An instruction is looked for on the straight
way from the load: its block, and those behind it as long as there is one way to go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.simulator.program import Jump, Sync

if TYPE_CHECKING:
    from warpsmith.simulator.program import Operation, Program

__all__ = ["early_uses"]

_LIMIT = 32
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
    cells = set(load.writes())
    for _ in range(_LIMIT):
        block = program.blocks[index]
        ending = block.ending
        last = ending.operation if isinstance(ending, Sync) else None
        for op in [*block.operations[start:], *([last] if last is not None else [])]:
            if op.text.startswith("tcgen05.wait::ld"):
                return None
            if cells & op.reads():
                return op
            cells -= op.writes() if op.guard is None else frozenset()
        if not cells or not isinstance(ending, Jump | Sync):
            return None
        index, start = ending.target, 0
    return None
