"""Non-bulk asynchronous copies and their groups (PTX ISA 9.7.10.28.3), and their arrival on mbarriers (9.7.15.16.18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.access import Located, inside, read
from warpsmith.simulator.async_access import extents_of, within
from warpsmith.simulator.asynchronous import AsyncOperation
from warpsmith.simulator.barrier_access import arrive, find, groups
from warpsmith.simulator.findings import threads_text
from warpsmith.simulator.mbarrier import MAX_COUNT
from warpsmith.simulator.meanings.mbarrier import space_of
from warpsmith.simulator.meanings.registry import machine, sync
from warpsmith.simulator.memory import SHARED_WINDOW, UNDEFINED
from warpsmith.simulator.outcome import DONE, Outcome
from warpsmith.simulator.units import units_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.mbarrier import MBarrier
    from warpsmith.simulator.meanings.registry import Function

    Mask = NDArray[np.bool_]

__all__: list[str] = []


@machine("cp.async.ca", "cp.async.cg")
def cp_async(m: Match) -> Function:
    """Copy 4, 8 or 16 bytes from global to shared memory, zero-filled behind the source size."""
    names = tuple(slot.name for slot in m.operands)
    space = space_of(m)

    def run(x: Lanes, *operands: Any) -> None:
        v = dict(zip(names, operands, strict=False))
        n = int(v["n"])
        sizes = _sizes(x, v, n)
        partial = (sizes > 0) & (sizes < n)
        sources = []
        with within(x, x.active() & (sizes > 0)):
            if x.active().any():
                sources = x.locate("global", v["a"], n)
                for at in sources:
                    if not partial.any():
                        read(x, at, n)
                    else:
                        _judge_partial(x, at, sizes)
        targets = [inside(x, at, n) for at in x.locate(space, v["d"], n)]
        x.machine.counters.bytes["cp.async"] += int(sizes[x.active()].sum())
        for at in targets:
            _issue(x, at, sources, sizes, n)

    return run


def _judge_partial(x: Lanes, at: Located, sizes: NDArray[np.int64]) -> None:
    """Report lanes whose part of the source, of its own size in each lane, lies in no allocation."""
    for size in np.unique(sizes[sizes > 0]).tolist():
        lanes = (sizes == size) & (x.active() if at.mask is None else at.mask)
        inside(x, Located(at.space, at.index, lanes), size)


def _sizes(x: Lanes, v: dict[str, Any], n: int) -> NDArray[np.int64]:
    if v.get("size") is not None:
        return np.broadcast_to(np.minimum(np.asarray(v["size"]).astype(np.int64), n), x.shape)
    if v.get("ignore") is not None:
        return np.broadcast_to(np.where(v["ignore"], 0, n).astype(np.int64), x.shape)
    return np.full(x.shape, n, np.int64)


def _issue(x: Lanes, at: Located, sources: list[Located], sizes: NDArray[np.int64], n: int) -> None:
    lanes = (x.active() if at.mask is None else at.mask).copy()
    if not lanes.any():
        return
    shift = n.bit_length() - 1
    target, index = at.space, np.broadcast_to(at.index, x.shape).copy()
    sources = [Located(s.space, np.array(s.index), None if s.mask is None else np.array(s.mask)) for s in sources]

    def complete(machine: Machine) -> None:
        data = np.zeros((*lanes.shape, n), np.uint8)
        flags = np.zeros((*lanes.shape, n), np.uint8)
        for s in sources:
            taken = lanes if s.mask is None else lanes & s.mask
            where, size = s.index[taken], sizes[taken][:, None]
            data[taken] = s.space.views[n].take(where >> shift, mode="clip")[:, None].view(np.uint8)
            flags[taken] = s.space.flags(where, n)[:, None].view(np.uint8) & UNDEFINED
            if (size == n).all():
                s.space.note_read(where, n)
                continue
            kept = np.arange(n) < size
            s.space.note_read((where[:, None] + np.arange(n))[kept], 1)
            data[taken] *= kept
            flags[taken] *= kept
        target.write(index[lanes], n, data[lanes].view(target.views[n].dtype)[:, 0])
        if flags.any():
            target.shadow[index[lanes][:, None] + np.arange(n)] |= flags[lanes]
        machine.progress()

    op = AsyncOperation("cp.async", complete, x.c0 + int(np.nonzero(lanes.any(1))[0][0]), x.place, threads_text(x, lanes))
    op.writes = extents_of(target, index[lanes], n)
    if (traffic := x.machine.traffic) is not None:
        traffic.copy(x, target, index, n, lanes)
        for s in sources:
            traffic.copy(x, s.space, s.index, n, (lanes if s.mask is None else lanes & s.mask) & (sizes > 0))
    if x.machine.races is not None:
        x.machine.races.transit.copies(x, at, lanes, n, units_of(x.machine).copies)
        op.followed = True
    units_of(x.machine).copies.add(x, op, lanes)
    x.issue(op)


@machine("cp.async.commit_group")
def commit(m: Match) -> Function:
    """Close the open group."""

    def run(x: Lanes) -> None:
        units_of(x.machine).copies.commit(x)

    return run


@sync("cp.async.wait_group", "cp.async.wait_all")
def wait(m: Match) -> Function:
    """Wait for all but the latest n groups, or for everything."""

    def run(x: Lanes, n: Any = None) -> Outcome:
        groups = units_of(x.machine).copies
        if x.machine.races is not None:
            x.machine.races.transit.waited(x, ("cp.async",), groups, None if n is None else int(n))
        return groups.wait(x, None if n is None else int(n))

    return run


@sync("cp.async.mbarrier.arrive")
def mbarrier_arrive(m: Match) -> Function:
    """Arrive when all copies that the thread has issued so far are complete; without `.noinc` the arrival is also added."""
    noinc = bool(m.get("noinc"))
    space = space_of(m)

    def run(x: Lanes, address: NDArray[np.int64]) -> Outcome:
        if space is None:  # ptxas takes the low 32 bits of a generic address and those of the window off them
            address = np.where(address >> 32 == 0, address + SHARED_WINDOW, address)
        for index, lanes in groups(x, space, address):
            barrier = find(x, index, lanes, "cp.async.mbarrier.arrive on")
            if barrier is None:
                continue
            count = int(lanes.sum())
            if not noinc:
                barrier.pending += count
                _within_limit(x, barrier, lanes)
                units_of(x.machine).barriers.store(barrier)
            _arrive_later(x, barrier, lanes.copy())
        return DONE

    return run


def _within_limit(x: Lanes, barrier: MBarrier, lanes: Mask) -> None:
    limit = MAX_COUNT[barrier.layout]
    if barrier.pending > limit:
        x.finding(
            "over-arrival",
            f"cp.async.mbarrier.arrive raises the pending count of mbarrier [{barrier.address:#x}] to {barrier.pending}; "
            f"it holds at most {limit}",
            lanes=lanes,
            related=[Related("initialised here", barrier.place)],
            repair="Count these arrivals in mbarrier.init and use .noinc, or spread them over barriers.",
        )


def _arrive_later(x: Lanes, barrier: MBarrier, lanes: Mask) -> None:
    prior = units_of(x.machine).copies.prior(x.rect, lanes)
    instruction, rect = x.op, x.rect
    told = x.machine.order.copies_told(x, lanes) if x.machine.order is not None else None

    def complete(machine: Machine) -> None:
        y = machine.lanes(rect)
        before = y.op, y.mask
        y.op, y.mask = instruction, lanes
        if machine.order is not None:
            machine.order.tell(barrier, told)
        arrive(y, barrier, lanes, np.ones(y.shape, np.int64))
        y.op, y.mask = before

    op = AsyncOperation("cp.async.mbarrier.arrive", complete, barrier.row, x.place, threads_text(x, lanes))
    op.eligible = lambda: all(p.done for p in prior)
    x.issue(op)
