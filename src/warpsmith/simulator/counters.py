"""What a run counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, final

from warpsmith.simulator.ordering import PROBE
from warpsmith.simulator.program import Exit, Jump, Return

if TYPE_CHECKING:
    from warpsmith.base.source import Place
    from warpsmith.simulator.program import Block, Operation, Program

__all__ = ["Counters", "Line"]


@final
@dataclass(slots=True)
class Line:
    """What the instructions of one source line did, each counted once per warp that executed it."""

    instructions: int = 0
    waits: int = 0
    """Times a warp had to wait."""
    shared_requests: int = 0
    wavefronts: int = 0
    """Passes over the 32 banks of shared memory; more than `ideal_wavefronts` are bank conflicts."""
    ideal_wavefronts: int = 0
    global_requests: int = 0
    sectors: int = 0
    """Pieces of 32 bytes of global memory that the requests touched."""
    global_bytes: int = 0
    """Bytes that the lanes asked for; 32 bytes for each sector would be the most."""

    def add(self, other: Line) -> None:
        """Add the counts of another run."""
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name) + getattr(other, f.name))


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
    lines: dict[Place | None, Line] = field(default_factory=dict["Place | None", Line])
    """By source line, where `lines=True` asked for it."""

    @property
    def warp_instructions(self) -> int:
        """Instructions executed, each counted once per warp."""
        return sum(self.instructions.values())

    def __str__(self) -> str:
        """Return the totals, a line for each group, the largest first."""
        groups: tuple[tuple[str, Counter[str]], ...] = (
            ("warp-instructions", self.instructions),
            ("bytes", self.bytes),
            ("waits", self.waits),
            ("asynchronous operations", self.async_operations),
        )
        lines = [f"{title}: " + ", ".join(f"{n:,} {w}" for w, n in c.most_common()) for title, c in groups if c]
        if self.tensor_flops:
            lines.insert(1, f"tensor FLOPs: {self.tensor_flops:,}")
        return "\n".join(lines) or "nothing was executed"

    def add(self, other: Counters) -> None:
        """Add the totals of another run."""
        self.instructions += other.instructions
        self.bytes += other.bytes
        self.waits += other.waits
        self.async_operations += other.async_operations
        self.tensor_flops += other.tensor_flops
        self.blocks_run += other.blocks_run
        for place, line in other.lines.items():
            self.lines.setdefault(place, Line()).add(line)

    def count_blocks(self, program: Program, runs: list[int], *, lines: bool = False) -> None:
        """Add the instructions of blocks that warps ran `runs[block]` times; with `lines` by source line, too."""
        for block, times in zip(program.blocks, runs, strict=True):
            if not times:
                continue
            for op in block.operations:
                if op.opcode == PROBE:
                    continue
                self.instructions[op.opcode] += times
                if lines:
                    self.lines.setdefault(op.place, Line()).instructions += times
            name, place = _ending(block)
            if name:
                self.instructions[name] += times
                if lines:
                    self.lines.setdefault(place, Line()).instructions += times


def _ending(block: Block) -> tuple[str, Place | None]:
    """Return opcode and place of the instruction that ends a block; "" for none."""
    ending = block.ending
    if isinstance(ending, Return | Exit):
        return ("ret" if isinstance(ending, Return) else "exit"), ending.place
    if isinstance(ending, Jump):
        return ("bra" if ending.place is not None else ""), ending.place
    operation: Operation | None = getattr(ending, "operation", None)
    return ("", None) if operation is None else (operation.opcode, operation.place)
