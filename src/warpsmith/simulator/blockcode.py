"""The compiled code of a block: variants made when first needed, bound per rectangle of threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from warpsmith.simulator.blockwriter import Writer
from warpsmith.simulator.program import Sync

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.program import Block

__all__ = ["GROUPED_LANES", "BlockCode"]

GROUPED_LANES = 8192
"""Rectangles of more lanes than this fill numpy calls well enough by single operations, and the caches too."""


@final
class BlockCode:
    """The compiled variants of one block."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.made: dict[tuple[bool, bool, int, bool], tuple[Callable[..., Any], list[Any]]] = {}
        self.bound: dict[tuple[Any, ...], Callable[[Lanes], Any]] = {}

    def bind(self, x: Lanes, masked: bool, tracked: bool, start: int = 0) -> Callable[[Lanes], int]:
        """Return the code for the rectangle of `x`: `run(x)` executes the operations from `start`."""
        grouped = x.shape[0] * x.shape[1] <= GROUPED_LANES
        key = (masked, tracked, start, grouped)
        if key not in self.made:
            writer = Writer(self.block.operations[start:], masked, tracked, start)
            self.made[key] = writer.compile(self.block, grouped=grouped)
        make, binds = self.made[key]
        return make(*[b(x) for b in binds])

    def bind_sync(self, x: Lanes, masked: bool, tracked: bool) -> Callable[[Lanes], Any]:
        """Return the code of the switch point that ends the block: `run(x)` gives its outcome, None to wait for lanes."""
        ending = self.block.ending
        assert isinstance(ending, Sync)
        key = (masked, tracked, -1, False)
        if key not in self.made:
            self.made[key] = Writer([ending.operation], masked, tracked, 0).compile_sync(self.block)
        make, binds = self.made[key]
        return make(*[b(x) for b in binds])
