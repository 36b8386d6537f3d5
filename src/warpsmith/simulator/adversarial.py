"""The adversarial schedule: operations in flight finish as late or as early as they may, and one role is starved."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from warpsmith.simulator.cohort import Cohort, program_time
from warpsmith.simulator.schedule import QUANTUM, lanes_of, piece, take_point

if TYPE_CHECKING:
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.program import Block

__all__ = ["Adversarial"]

PATIENCE = 2048
"""Turns after which an operation completes, or the starved warps run, although others can go on."""
_MODES = ("late", "early", "newest first", "starve the rest")


@final
class Adversarial:
    """By seed modulo 4: operations complete when nothing can run, the oldest first (0); before every turn, all that can (1);
    when nothing can run, the newest first (2); as in 0, and all warps but the chosen one are starved (3).

    The warp that is starved, of every CTA: none for seeds 0 to 3 (the last, for mode 3, warp 0), then warp 0, 1, … in turn.
    """

    def __init__(self, seed: int, warps: int) -> None:
        self.mode = _MODES[seed % 4]
        turn = seed // 4
        self.chosen = None if turn == 0 and self.mode != "starve the rest" else max(turn - 1, 0) % warps
        self.turns = 0
        self.parted: set[object] = set()
        """Where warps have been parted already: those that have met again for a collective go on together."""

    def pick(self, ready: list[Cohort], blocks: list[Block]) -> Cohort:
        """Take the cohort that is furthest behind, the starved warps only when there are no others."""
        self.turns += 1
        if self.chosen is None or self.turns % PATIENCE == 0:
            return self._take(ready, ready, blocks)
        rest = [c for c in ready if self._not_starved(c)]
        if not rest:
            return self._take(ready, ready, blocks)
        taken = self._take(ready, rest, blocks)
        free, key = self._not_starved(taken), (taken.point, taken.trail, taken.warp_bits())
        if free == taken.warp_bits() or key in self.parted:
            return taken
        self.parted.add(key)
        lanes = taken.active() & lanes_of(taken, free)
        if not lanes.any():
            return taken
        ready.append(piece(taken, taken.active() & ~lanes))
        return piece(taken, lanes)

    def _not_starved(self, c: Cohort) -> int:
        """Return the warps of a cohort that are not starved, as a bit set."""
        assert self.chosen is not None
        one = sum(1 << (32 * row + self.chosen) for row in range(c.rect[0], c.rect[1]))
        return c.warp_bits() & (one if self.mode == "starve the rest" else ~one)

    @staticmethod
    def _take(ready: list[Cohort], among: list[Cohort], blocks: list[Block]) -> Cohort:
        """Take the cohort furthest behind of some, or one that shares a warp with it and is further behind still."""
        if len(ready) == 1:
            return ready.pop()
        chosen = min(among, key=lambda c: (c.turns // QUANTUM, program_time(blocks, c)))
        warps = chosen.warp_bits()
        near = [c for c in ready if c.warp_bits() & warps]
        chosen = min(near, key=lambda c: (c.turns // QUANTUM, program_time(blocks, c)))
        return take_point(ready, chosen, blocks)

    def polls(self, steps: int) -> bool:
        """Look at what is parked at every turn: what can go on does."""
        del steps
        return True

    def complete_some(self, machine: Machine) -> None:
        """Complete all operations that can, or once in a long while the oldest."""
        if self.mode == "early":
            while candidates := machine.asynchronous.candidates():
                machine.asynchronous.complete(candidates[0], machine)
        elif self.turns % PATIENCE == PATIENCE - 1:
            self.complete_one(machine)

    def complete_one(self, machine: Machine) -> bool:
        """Complete the oldest operation that can, or the newest."""
        candidates = machine.asynchronous.candidates()
        if not candidates:
            return False
        machine.asynchronous.complete(candidates[-1 if self.mode == "newest first" else 0], machine)
        return True
