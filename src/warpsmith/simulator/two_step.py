"""Copies out of shared memory: the source is read at one moment, the result is visible at a later one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.simulator.async_access import Lane, claim, who
from warpsmith.simulator.asynchronous import AsyncOperation, Extent
from warpsmith.simulator.check.transit import Issuer
from warpsmith.simulator.units import units_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine

__all__ = ["two_step"]


def two_step(
    x: Lanes,
    lane: Lane,
    kind: str,
    read: Callable[[Machine], Any],
    write: Callable[[Machine, Any], bool],
    reads: list[Extent],
    writes: list[Extent],
    *,
    strength: int = 0,
    rows: tuple[NDArray[np.int64], int] | None = None,
) -> None:
    """Issue a copy of the lane's open bulk group: `read` when the schedule says so, `write` of what it returned later.

    `write` says whether undefined bytes reached global memory, which is reported as a store of them would be.
    `rows` of global memory (starts, bytes of each) are written besides `writes`; `strength` is that of the writes.
    """
    held: list[Any] = []
    threads = who(x, lane)

    def first(machine: Machine) -> None:
        held.append(read(machine))
        member.read = True
        machine.progress()

    def second(machine: Machine) -> None:
        if held and write(machine, held.pop()) and machine.checking:  # else another CTA had the memory by then
            machine.findings.report(
                "uninitialised-read",
                f"`{kind}`: bytes of shared memory that nobody wrote are stored to global memory",
                writing.place,
                threads,
                repair="write the whole box before it is stored, or store a smaller one",
            )
        machine.progress()

    reading = AsyncOperation(f"{kind} (reading)", first, lane.row, x.place, threads, reads=reads)
    writing = AsyncOperation(kind, second, lane.row, x.place, threads, writes=writes, eligible=lambda: reading.done)
    member = units_of(x.machine).bulk.add(x, writing, lane.mask)
    claim(x, lane, reading)
    _follow(x, lane, reading, writing, strength, rows)
    x.issue(reading)
    x.issue(writing)


def _follow(
    x: Lanes,
    lane: Lane,
    reading: AsyncOperation,
    writing: AsyncOperation,
    strength: int,
    rows: tuple[NDArray[np.int64], int] | None,
) -> None:
    """Note the bytes of both operations, and judge them."""
    races = x.machine.races
    if races is None:
        return
    transit, groups, thread = races.transit, units_of(x.machine).bulk, x.t0 + lane.t
    issuer = Issuer(lane.mask, lane.row, (thread,))
    mark = transit.of_group("cp.async.bulk.read", groups, lane.row, thread)
    for e in reading.reads:
        if races.shadow_of(e.space) is not None:
            transit.reads(x, issuer, e.space, transit.extent(e), [mark])
    mark = transit.of_group("cp.async.bulk", groups, lane.row, thread)
    for e in writing.writes:
        if races.shadow_of(e.space) is not None:
            transit.writes(x, issuer, e.space, transit.extent(e), mark, strength=strength)
    space = x.machine.global_
    if rows is not None and races.shadow_of(space) is not None:
        transit.writes(x, issuer, space, transit.rows(space, *rows), mark, strength=strength)
    reading.followed = writing.followed = True
