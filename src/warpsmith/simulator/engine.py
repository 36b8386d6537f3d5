"""The main loop: pick a cohort, run its block, follow its ending; otherwise complete operations, admit CTAs, or give up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.base.errors import CapabilityError
from warpsmith.simulator.blockcode import BlockCode
from warpsmith.simulator.check.deadlock import report_deadlock, report_livelock
from warpsmith.simulator.check.held import bystander, part_complete
from warpsmith.simulator.check.leftover import check_row_end
from warpsmith.simulator.check.races import LATEST
from warpsmith.simulator.check.watches import register_watch
from warpsmith.simulator.cohort import Cohort, merge, narrow, next_trail, program_time
from warpsmith.simulator.ending import Endings
from warpsmith.simulator.ordering import reorder
from warpsmith.simulator.outcome import Condition, Wait, Window
from warpsmith.simulator.program import Sync
from warpsmith.simulator.spin import SpinWatch
from warpsmith.simulator.standstill import Standstill

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.program import Operation
    from warpsmith.simulator.registers import Rectangle
    from warpsmith.simulator.schedule import Schedule

__all__ = ["Engine", "Parked"]

_BOUND_LIMIT = 48
"""Rectangles a block stays bound to."""


@final
class Parked:
    """A cohort that waits at the end of a block."""

    __slots__ = ("after", "cohort", "condition", "operation", "retry", "since")

    def __init__(self, cohort: Cohort, wait: Wait, operation: Operation, since: int) -> None:
        self.cohort = cohort
        self.condition: Condition = wait.condition
        self.retry = wait.retry
        self.after = wait.after
        self.operation = operation
        self.since = since
        """The time when it began to wait."""


@final
class Engine:
    """Runs one launch."""

    def __init__(
        self, machine: Machine, schedule: Schedule, progress: Callable[[int, int], None] | None, first: int, stop: int
    ) -> None:
        self.machine, self.schedule, self.progress = machine, schedule, progress
        self.blocks = machine.program.blocks
        for block in self.blocks:
            block.operations = reorder(block.operations)
            block.count = len(block.operations) + 1
        self.codes = [BlockCode(b) for b in self.blocks]
        self.runs = [0] * len(self.blocks)
        machine.recorder.begin(len(self.blocks))
        self.ready: list[Cohort] = []
        self.held: list[Cohort] = []
        """Cohorts before a collective whose other lanes have not come."""
        self.parked: list[Parked] = []
        self.next_cta, self.stop_cta = first, stop
        """CTAs that have not started, linear in the grid."""
        self.ended_ctas = 0
        self.total_ctas = stop - first
        self.steps = 0
        self.polled = -1
        self.endings = Endings(self)
        self.watch = register_watch(machine)
        self.spins = SpinWatch(self)
        self.standstill = Standstill(self)
        self.running: Cohort | None = None
        """The cohort of this turn, or of the last one."""
        machine.cancel = self.cancel

    # --- CTAs -----------------------------------------------------------------------------------------------------

    def admit(self) -> bool:
        """Give empty rows to CTAs that have not started; return whether any could."""
        m = self.machine
        n = m.cluster_size
        free = np.flatnonzero((m.row_cta < 0).reshape(-1, n).all(axis=1))
        count = min(free.size, (self.stop_cta - self.next_cta) // n)
        if count == 0:
            return False
        rows = (free[:count, None] * n + np.arange(n)).ravel()
        m.settle(rows, self.next_cta)
        self.next_cta += rows.size
        self._fresh(rows)
        mask = np.zeros((m.rows, m.threads), np.bool_)
        mask[rows, : m.threads_per_cta] = True
        m.live[rows] = mask[rows]
        rect, inner = narrow((0, m.rows, 0, m.threads), mask)
        order = self.blocks[m.program.entry].order
        self.ready.append(Cohort(m.program.entry, (), ((0,) * (len(order) - 1),), rect, inner))
        return True

    def cancel(self) -> tuple[int, int, int] | None:
        """Take the next cluster that has not started out of the launch; return the index of its first CTA."""
        m = self.machine
        if self.next_cta >= self.stop_cta:
            return None
        x, y, z = (int(i) * c for i, c in zip(m.cluster_index(self.next_cta // m.cluster_size), m.cluster, strict=True))
        self.next_cta += m.cluster_size
        self.ended_ctas += m.cluster_size
        return x, y, z

    def _fresh(self, rows: NDArray[np.int64]) -> None:
        m = self.machine
        m.barriers.reset(rows)
        m.cluster_barrier.reset(rows)
        m.register_budget.reset(rows)
        m.local_top[rows] = m.program.local_size
        for run in np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1):
            first, stop = int(run[0]), int(run[-1]) + 1
            m.shared.reset(first, stop)
            if m.local.size:
                m.local.reset(first * m.threads, stop * m.threads)
        for hook in m.row_hooks:
            for row in rows.tolist():
                hook(row)
        if m.registers.undefined is not None:
            for flags in m.registers.undefined.values():
                flags[:, rows] = 0
        self._undefined_at_entry(rows)

    def _undefined_at_entry(self, rows: NDArray[np.int64]) -> None:
        m = self.machine
        for bank, slot in m.program.undefined_at_entry if m.checking else ():
            m.registers.track()
            assert m.registers.undefined is not None
            m.registers.undefined[bank][slot, rows] = 255

    def retire(self, c0: int, c1: int) -> None:
        """Empty the rows whose CTAs (whole clusters) have ended."""
        m = self.machine
        n = m.cluster_size
        start, stop = c0 // n * n, -(-c1 // n) * n
        live = m.live[start:stop].any(axis=1).reshape(-1, n).any(axis=1)
        ended = ~live & (m.row_cta[start:stop:n] >= 0)
        for cluster in np.flatnonzero(ended).tolist():
            first = start + cluster * n
            for row in range(first, first + n):
                check_row_end(m, row)
            m.row_cta[first : first + n] = -1
            self.ended_ctas += n
            if self.progress is not None:
                self.progress(self.ended_ctas, self.total_ctas)

    # --- the loop ---------------------------------------------------------------------------------------------------

    def run(self) -> bool:
        """Run to the end; return whether every thread ended."""
        m = self.machine
        limit = m.config.max_steps
        self.admit()
        with np.errstate(all="ignore"):
            while not m.findings.stop:
                if self.ready:
                    self.turn()
                elif not self.idle():
                    break
                if limit is not None and self.steps >= limit:
                    report_livelock(self)
                    return False
        return self.ended_ctas == self.total_ctas and not m.findings.stop

    def turn(self) -> None:
        """Run one block of one cohort, perhaps after completing an operation in flight."""
        m = self.machine
        if m.races is not None and m.races.clocks.now > LATEST:
            m.races.give_up()
        if m.asynchronous.pending:
            self.schedule.complete_some(m)
        if self.parked and m.memory_version != self.polled and self.schedule.polls(self.steps):
            self.poll()
        cohort = self.running = self.schedule.pick(self.ready, self.blocks)
        self.steps += 1
        try:
            self.execute(cohort)
        except CapabilityError as error:
            place = m.lanes(cohort.rect).op.place
            if place is None or not str(error).startswith("simulator:"):
                raise
            raise CapabilityError(f"{place}: {error}") from None

    def idle(self) -> bool:
        """Nothing can run: find something that makes it so; return False when the launch is over or stuck."""
        m = self.machine
        if self.poll() or self.schedule.complete_one(m) or self.release_held():
            return True
        if self.next_cta < self.stop_cta and self.admit():
            return True
        if not self.parked:
            return False
        if self._give_up_waiting():
            return True
        report_deadlock(self)
        return False

    def release_held(self) -> bool:
        """Let warps go on whose lanes have all come; if there are none, the earliest cohort whose other lanes cannot come."""
        if part_complete(self):
            return True
        able = [c for c in self.held if not bystander(self, c)]
        if not able:
            return False
        first = min(able, key=lambda c: program_time(self.blocks, c))
        first.released = True
        self.held.remove(first)
        self.ready.append(first)
        return True

    def _give_up_waiting(self) -> bool:
        """Wake waits with a time limit, once per state of memory."""
        if not any(p.condition.timed for p in self.parked) or self.gave_up == self._state():
            return False
        self.gave_up = self._state()
        for p in self.parked:
            if p.condition.timed:
                p.cohort.timed_out = True
                self.machine.recorder.waited(p.cohort, p.operation, p.since)
                self.ready.append(p.cohort)
        self.parked = [p for p in self.parked if not p.condition.timed]
        return True

    gave_up: Any = None

    def _state(self) -> tuple[int, int, int]:
        m = self.machine
        return m.memory_version, m.asynchronous.completed, self.ended_ctas

    def poll(self) -> bool:
        """Move parked cohorts whose condition holds to the ready ones; return whether there were any."""
        self.polled = self.machine.memory_version
        waiting, self.parked = self.parked, []
        woken = False
        for p in waiting:
            ready = p.condition.ready()
            if ready is False or (ready is not True and not ready.any()):
                self.parked.append(p)
                continue
            woken |= self._wake(p, ready)
        return woken

    def _wake(self, p: Parked, ready: Any) -> bool:
        """Let the lanes of a parked cohort go on that are ready; return whether there were any."""
        c = p.cohort
        if ready is not True:
            c0, c1, t0, t1 = c.rect
            lanes = np.broadcast_to(ready, (c1 - c0, t1 - t0))
            active = lanes if c.mask is None else lanes & c.mask
            rest = ~lanes if c.mask is None else c.mask & ~lanes
            if rest.any():
                if not active.any():
                    self.parked.append(p)
                    return False
                stay = c.part(rest)
                self.parked.append(
                    Parked(stay, self.cut(Wait(p.condition, None, p.retry, p.after), c.rect, stay.rect), p.operation, p.since)
                )
                c = c.part(active)
        self.machine.recorder.waited(c, p.operation, p.since)
        if not p.retry:
            if p.after is not None:
                self.machine.execution += 1  # it may write registers
                x = self.machine.lanes(c.rect)
                x.mask, x.op = c.mask, p.operation
                p.after(x)
            ending = self.blocks[c.block].ending
            if isinstance(ending, Sync):
                self.move(c, ending.target)
        self.ready.append(c)
        return True

    # --- a block ----------------------------------------------------------------------------------------------------

    def bound(self, cohort: Cohort, x: Lanes) -> Callable[[Lanes], Any]:
        """Return the code of the cohort's block, bound to its rectangle."""
        code = self.codes[cohort.block]
        tracked = self.machine.registers.undefined is not None
        key = (cohort.rect, cohort.mask is not None, tracked, cohort.start)
        run = code.bound.get(key)
        if run is None:
            if len(code.bound) >= _BOUND_LIMIT:
                code.bound.clear()
            run = code.bound[key] = code.bind(x, cohort.mask is not None, tracked, cohort.start)
        return run

    def execute(self, cohort: Cohort) -> None:
        """Run the block a cohort stands before, and its ending."""
        m = self.machine
        m.execution += 1
        x = m.lanes(cohort.rect)
        x.mask, x.timed_out, x.released = cohort.mask, cohort.timed_out, cohort.released
        block = self.blocks[cohort.block]
        if self.watch is not None:
            self.watch.enter(x, block)
        cohort.turns += 1
        if cohort.start == 0:
            self.runs[cohort.block] += cohort.warps
            m.instructions_run += block.count
            m.recorder.runs(cohort)
        if block.operations:
            while at := self.bound(cohort, x)(x):
                if at < 0:
                    if at != -1 - cohort.start or not cohort.released:
                        self.hold(cohort, -1 - at)
                        return
                    cohort.start = -1 - at
                else:
                    cohort.start = at
                    m.tracking_began = False
                cohort.key = None
            cohort.start = 0
            cohort.released = False
        if self.watch is not None:
            self.watch.leave(x, block)
        if m.findings.stop:
            return
        self.endings.follow(cohort, x, block)

    def hold(self, cohort: Cohort, start: int) -> None:
        """Keep a cohort before operation `start`, a collective, until more lanes of its warps come to the same point."""
        if start == cohort.start:
            self.standstill.note()
        cohort.start, cohort.key, cohort.released = start, None, False
        same = [*(c for c in self.held if c.point == cohort.point), cohort]
        joined = merge(same, warpgroups=True)
        self.held = [c for c in self.held if c not in same] + [c for c in joined if c in same]
        self.ready += [c for c in joined if c not in same]

    def sync_code(self, cohort: Cohort, x: Lanes) -> Callable[[Lanes], Any]:
        """Return the switch point that ends the cohort's block, bound to its rectangle; called, it gives the outcome."""
        code = self.codes[cohort.block]
        tracked = self.machine.registers.undefined is not None
        key = (cohort.rect, cohort.mask is not None, tracked, -1)
        run = code.bound.get(key)
        if run is None:
            run = code.bound[key] = code.bind_sync(x, cohort.mask is not None, tracked)
        return run

    @staticmethod
    def cut(wait: Wait, outer: Rectangle, inner: Rectangle) -> Wait:
        """Return a wait of a rectangle as that of a part of it."""
        return Wait(Window(wait.condition, outer, inner), None, wait.retry, wait.after)

    def move(self, cohort: Cohort, target: int) -> None:
        """Put a cohort before block `target` of the same function."""
        here = cohort.block
        trail = cohort.trail[-1]
        if len(trail) == 0 and len(self.blocks[target].order) == 1:
            cohort.block, cohort.key = target, None
            return
        new = next_trail(trail, self.blocks[here].order, self.blocks[target].order)
        cohort.trail = (*cohort.trail[:-1], new)
        cohort.block, cohort.key = target, None

    def park(self, cohort: Cohort, wait: Wait, operation: Operation) -> None:
        """Let a cohort wait."""
        self.machine.counters.waits[operation.opcode] += cohort.warps
        if self.machine.traffic is not None:
            self.machine.traffic.line(operation.place).waits += cohort.warps
        self.parked.append(Parked(cohort, wait, operation, self.machine.instructions_run))
