"""The order of things: which cohort runs next, and when operations in flight complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, final

from warpsmith.simulator.cohort import Cohort, merge, program_time, share_a_warp

if TYPE_CHECKING:
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.program import Block

__all__ = ["Fair", "Random", "Schedule"]

QUANTUM = 2048
"""Blocks a cohort may run ahead of others in program order's favour."""
PATIENCE = 64
"""Turns after which the fair schedule completes an operation although cohorts can still run."""


class Schedule(Protocol):
    """Decides the order of cohorts and completions."""

    def pick(self, ready: list[Cohort], blocks: list[Block]) -> Cohort:
        """Take the next cohort out of `ready`."""
        ...

    def complete_some(self, machine: Machine) -> None:
        """Complete operations in flight before a turn, or none."""
        ...

    def complete_one(self, machine: Machine) -> bool:
        """Complete an operation because nothing can run; return False when none can complete."""
        ...


def _take_point(ready: list[Cohort], chosen: Cohort, blocks: list[Block]) -> Cohort:
    """Remove from `ready` the cohorts that merge with `chosen`, and return the union.

    A cohort that has threads of a warp with an earlier one stays: the earlier threads come first.
    """
    if len(ready) == 1:
        return ready.pop()
    point = chosen.point
    same = [c for c in ready if c is not chosen and c.block == chosen.block and c.point == point]
    same = [c for c in same if not _behind_another(c, ready, blocks)]
    if not same:
        ready.remove(chosen)
        return chosen
    members = {id(chosen), *map(id, same)}
    ready[:] = [c for c in ready if id(c) not in members]
    merged = merge([chosen, *same])
    mine = next(c for c in merged if share_a_warp(c, chosen))
    ready += [c for c in merged if c is not mine]
    return mine


def _behind_another(c: Cohort, ready: list[Cohort], blocks: list[Block]) -> bool:
    """Say whether a ready cohort with threads of the same warp is earlier in program time."""
    now = (c.turns // QUANTUM, program_time(blocks, c))
    warps = c.warp_bits()
    others = (o for o in ready if o.warp_bits() & warps and o is not c and o.point != c.point)
    return any((o.turns // QUANTUM, program_time(blocks, o)) < now for o in others)


@final
class Fair:
    """Cohorts in program order, in coarse steps of fairness; operations complete late, the oldest first."""

    def __init__(self) -> None:
        self.turns = 0

    def pick(self, ready: list[Cohort], blocks: list[Block]) -> Cohort:
        """Take the cohort that is furthest behind."""
        if len(ready) == 1:
            return ready.pop()
        chosen = min(ready, key=lambda c: (c.turns // QUANTUM, program_time(blocks, c)))
        return _take_point(ready, chosen, blocks)

    def complete_some(self, machine: Machine) -> None:
        """Complete the oldest operation every so many turns."""
        self.turns += 1
        if self.turns % PATIENCE == 0:
            self.complete_one(machine)

    def complete_one(self, machine: Machine) -> bool:
        """Complete the oldest operation that can."""
        oldest = machine.asynchronous.oldest()
        if oldest is None:
            return False
        machine.asynchronous.complete(oldest, machine)
        return True


@final
class Random:
    """Cohorts and completions drawn from a counter-based generator with a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.counter = 0

    def draw(self, below: int) -> int:
        """Return the next number below `below`: splitmix64 of seed and counter."""
        self.counter += 1
        z = (self.seed * 0x9E3779B97F4A7C15 + self.counter * 0xD1342543DE82EF95) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return (z ^ (z >> 31)) % below

    def pick(self, ready: list[Cohort], blocks: list[Block]) -> Cohort:
        """Take any cohort; of those that share a warp the one furthest behind."""
        chosen = ready[self.draw(len(ready))] if len(ready) > 1 else ready[0]
        while True:
            warps = chosen.warp_bits()
            near = [c for c in ready if c.warp_bits() & warps]
            first = min(near, key=lambda c: (c.turns // QUANTUM, program_time(blocks, c))) if len(near) > 1 else chosen
            if first is chosen:
                break
            chosen = first
        taken = _take_point(ready, chosen, blocks)
        return self._split(ready, taken)

    def _split(self, ready: list[Cohort], c: Cohort) -> Cohort:
        """Now and then let some warps of a cohort go first."""
        c0, c1, t0, t1 = c.rect
        rows, warps = c1 - c0, (t1 - t0) // 32
        if rows * warps == 1 or self.draw(8):
            return c
        active = c.active()
        first = active.copy()
        if warps > 1:
            first[:, 32 * (1 + self.draw(warps - 1)) :] = False
        else:
            first[1 + self.draw(rows - 1) :] = False
        rest = active & ~first
        if not first.any() or not rest.any():
            return c
        ready.append(c.part(rest))
        return c.part(first)

    def complete_some(self, machine: Machine) -> None:
        """Complete a random operation with one chance in four."""
        if self.draw(4) == 0:
            self.complete_one(machine)

    def complete_one(self, machine: Machine) -> bool:
        """Complete a random operation."""
        candidates = machine.asynchronous.candidates()
        if not candidates:
            return False
        machine.asynchronous.complete(candidates[self.draw(len(candidates))], machine)
        return True
