"""The order of things: which cohort runs next, and when operations in flight complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, final

import numpy as np

from warpsmith.simulator.cohort import Cohort, merge, program_time, share_a_warp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.asynchronous import AsyncOperation
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.program import Block

__all__ = ["Fair", "Random", "Schedule", "lanes_of", "piece", "take_point"]

QUANTUM = 2048
"""Blocks a cohort may run ahead of others in program order's favour."""
PATIENCE = 64
"""Turns after which the fair schedule completes an operation although cohorts can still run."""
POLL_EVERY = 16
"""Turns between the fair schedule's looks at what is parked while others can run: woken together, cohorts merge."""
TEMPERS = ((4, False, False), (24, True, True), (2, False, True), (96, True, False))
"""By seed modulo 4: average turns between completions, whether some operations are slow (they complete only when nothing
else can go on), and whether warps mostly run on (so that some get far ahead of others)."""
MOSTLY = 8
"""One choice of a warp in so many goes against the temper."""
SLOW = 3
"""One operation in so many is slow, where the temper has slow ones."""
SLOWEST = 1024
"""Turns after which the oldest operation completes although it is slow: a loop that polls with a clock never stands still."""


class Schedule(Protocol):
    """Decides the order of cohorts and completions."""

    def pick(self, ready: list[Cohort], blocks: list[Block]) -> Cohort:
        """Take the next cohort out of `ready`."""
        ...

    def polls(self, steps: int) -> bool:
        """Say whether to look at what is parked although cohorts can still run."""
        ...

    def complete_some(self, machine: Machine) -> None:
        """Complete operations in flight before a turn, or none."""
        ...

    def complete_one(self, machine: Machine) -> bool:
        """Complete an operation because nothing can run; return False when none can complete."""
        ...


def take_point(ready: list[Cohort], chosen: Cohort, blocks: list[Block]) -> Cohort:
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


def piece(c: Cohort, mask: NDArray[np.bool_]) -> Cohort:
    """Return the lanes `mask` of a cohort that is about to run, in the same state."""
    out = c.part(mask)
    out.timed_out, out.released = c.timed_out, c.released
    return out


def lanes_of(c: Cohort, warps: int) -> NDArray[np.bool_]:
    """Return the threads `[C, T]` of a cohort's rectangle whose warps are in a bit set as of `Cohort.warp_bits`."""
    c0, c1, t0, t1 = c.rect
    bits = warps >> 32 * c0 & (1 << 32 * (c1 - c0)) - 1
    each = np.frombuffer(bits.to_bytes(4 * (c1 - c0), "little"), np.uint8)
    set_ = np.unpackbits(each, bitorder="little").reshape(c1 - c0, 32)[:, t0 // 32 : t1 // 32]
    return np.repeat(set_.astype(np.bool_), 32, axis=1)


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
        return take_point(ready, chosen, blocks)

    def polls(self, steps: int) -> bool:
        """Look every so many turns."""
        return steps % POLL_EVERY == 0

    def complete_some(self, machine: Machine) -> None:
        """Complete the oldest operations every so many turns."""
        self.turns += 1
        if self.turns % PATIENCE == 0:
            self.complete_one(machine)

    def complete_one(self, machine: Machine) -> bool:
        """Complete the oldest operation that can and those its instruction issued with it, so that waiters stay together."""
        oldest = machine.asynchronous.oldest()
        if not oldest:
            return False
        machine.asynchronous.complete_batch(oldest, machine)
        return True


@final
class Random:
    """Cohorts and completions drawn from a counter-based generator with a seed; seeds differ in temper, too (`TEMPERS`)."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.counter = 0
        self.turns = 0
        self.delay, self.some_slow, self.runs_on = TEMPERS[seed % len(TEMPERS)]
        self.last = 0
        """Warps of the cohort taken last."""

    def draw(self, below: int) -> int:
        """Return the next number below `below`: splitmix64 of seed and counter."""
        self.counter += 1
        return self._mixed(self.counter) % below

    def _mixed(self, counter: int) -> int:
        z = (self.seed * 0x9E3779B97F4A7C15 + counter * 0xD1342543DE82EF95) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return z ^ (z >> 31)

    def pick(self, ready: list[Cohort], blocks: list[Block]) -> Cohort:
        """Take any cohort; of those that share a warp the one furthest behind."""
        taken = self._take(ready, self._choose(ready), blocks)
        if self.runs_on:
            self.last = taken.warp_bits()
        return taken

    def _choose(self, ready: list[Cohort]) -> Cohort:
        if len(ready) == 1:
            return ready[0]
        if self.runs_on and self.draw(MOSTLY):
            for c in ready:
                if c.warp_bits() & self.last:
                    return c
        return ready[self.draw(len(ready))]

    def _take(self, ready: list[Cohort], chosen: Cohort, blocks: list[Block]) -> Cohort:
        while True:
            warps = chosen.warp_bits()
            near = [c for c in ready if c.warp_bits() & warps]
            first = min(near, key=lambda c: (c.turns // QUANTUM, program_time(blocks, c))) if len(near) > 1 else chosen
            if first is chosen:
                break
            if (ahead := self._without(ready, chosen, near)) is not None:
                return ahead
            chosen = first
        taken = take_point(ready, chosen, blocks)
        return self._split(ready, taken)

    def _without(self, ready: list[Cohort], chosen: Cohort, near: list[Cohort]) -> Cohort | None:
        """Let those warps of `chosen` go first that have no threads in the other cohorts `near`; None: there are none."""
        others = 0
        for c in near:
            others |= c.warp_bits() if c is not chosen else 0
        if not chosen.warp_bits() & ~others:
            return None
        free = chosen.active() & lanes_of(chosen, ~others)
        rest = chosen.active() & ~free
        ready.remove(chosen)
        ready.append(piece(chosen, rest))
        return piece(chosen, free)

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
        ready.append(piece(c, rest))
        return piece(c, first)

    def polls(self, steps: int) -> bool:
        """Look with one chance in four: what a completion has released may go on before the next one."""
        return self.draw(4) == 0

    def complete_some(self, machine: Machine) -> None:
        """Complete a random operation with a chance that the seed decides."""
        self.turns += 1
        if self.some_slow and self.turns % SLOWEST == 0 and (oldest := machine.asynchronous.oldest()):
            machine.asynchronous.complete(oldest[0], machine)
            return
        if self.draw(self.delay) == 0 and (candidates := self._quick(machine.asynchronous.candidates())):
            machine.asynchronous.complete(candidates[self.draw(len(candidates))], machine)

    def _quick(self, candidates: list[AsyncOperation]) -> list[AsyncOperation]:
        return [op for op in candidates if self._mixed(-1 - op.serial) % SLOW] if self.some_slow else candidates

    def complete_one(self, machine: Machine) -> bool:
        """Complete a random operation; the newest slow one if there are no others."""
        candidates = machine.asynchronous.candidates()
        if not candidates:
            return False
        candidates = self._quick(candidates) or candidates[-1:]
        machine.asynchronous.complete(candidates[self.draw(len(candidates))], machine)
        return True
