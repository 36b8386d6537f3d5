"""Copies out of shared memory: the source is read at one moment, the result is visible at a later one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.simulator.async_access import Lane, claim, who
from warpsmith.simulator.asynchronous import AsyncOperation, Extent
from warpsmith.simulator.units import units_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine

__all__ = ["two_step"]


def two_step(
    x: Lanes,
    lane: Lane,
    kind: str,
    read: Callable[[Machine], Any],
    write: Callable[[Machine, Any], None],
    reads: list[Extent],
    writes: list[Extent],
) -> None:
    """Issue a copy of the lane's open bulk group: `read` when the schedule says so, `write` of what it returned later."""
    held: list[Any] = []
    threads = who(x, lane)

    def first(machine: Machine) -> None:
        held.append(read(machine))
        member.read = True
        machine.progress()

    def second(machine: Machine) -> None:
        if held:  # nothing was read where another CTA had the memory by then
            write(machine, held.pop())
        machine.progress()

    reading = AsyncOperation(f"{kind} (reading)", first, lane.row, x.place, threads, reads=reads)
    writing = AsyncOperation(kind, second, lane.row, x.place, threads, writes=writes, eligible=lambda: reading.done)
    member = units_of(x.machine).bulk.add(x, writing, lane.mask)
    claim(x, lane, reading)
    x.issue(reading)
    x.issue(writing)
