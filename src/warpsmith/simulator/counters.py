"""What a run counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from warpsmith.simulator.ordering import PROBE

if TYPE_CHECKING:
    from warpsmith.simulator.program import Program

__all__ = ["Counters"]


@final
@dataclass(slots=True)
class Counters:
    """Totals of a launch. Instructions are counted per warp that executes them."""

    instructions: Counter[str] = field(default_factory=Counter[str])
    """Warp-instructions by opcode."""
    bytes: Counter[str] = field(default_factory=Counter[str])
    """Bytes moved, by what moved them: `load global`, `store shared`, `cp.async.bulk`, …"""
    tensor_flops: int = 0
    """2·m·n·k of every matrix instruction."""
    waits: Counter[str] = field(default_factory=Counter[str])
    """Times a warp had to wait, by opcode of the waiting instruction."""
    async_operations: Counter[str] = field(default_factory=Counter[str])
    """Asynchronous operations completed, by kind."""
    blocks_run: int = 0
    """Basic blocks executed by cohorts: with `warp_instructions`, how well warps agree."""

    @property
    def warp_instructions(self) -> int:
        """Instructions executed, each counted once per warp."""
        return sum(self.instructions.values())

    def add(self, other: Counters) -> None:
        """Add the totals of another run."""
        self.instructions += other.instructions
        self.bytes += other.bytes
        self.waits += other.waits
        self.async_operations += other.async_operations
        self.tensor_flops += other.tensor_flops
        self.blocks_run += other.blocks_run

    def count_blocks(self, program: Program, runs: list[int]) -> None:
        """Add the instructions of blocks that warps ran `runs[block]` times."""
        for block, times in zip(program.blocks, runs, strict=True):
            if not times:
                continue
            for op in block.operations:
                if op.opcode == PROBE:
                    continue
                self.instructions[op.opcode] += times
            ending = getattr(block.ending, "operation", None)
            name = (
                ending.opcode if ending is not None else {"Return": "ret", "Exit": "exit"}.get(type(block.ending).__name__, "")
            )
            if name:
                self.instructions[name] += times
