"""mbarrier instructions (PTX ISA 9.7.15.16)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.asynchronous import AsyncOperation
from warpsmith.simulator.barrier_access import arrive, complete_tx, expect_tx, find, groups
from warpsmith.simulator.findings import threads_text, warps_of
from warpsmith.simulator.mbarrier import MAX_COUNT, Arrival
from warpsmith.simulator.meanings.registry import machine, sync
from warpsmith.simulator.multicast import same_offset
from warpsmith.simulator.outcome import DONE, Outcome, Wait
from warpsmith.simulator.phase_wait import PhaseWait, Waiting
from warpsmith.simulator.units import units_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.check.order import Telling
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.mbarrier import MBarrier
    from warpsmith.simulator.meanings.registry import Function

    Mask = NDArray[np.bool_]

__all__: list[str] = []


def _lanes(x: Lanes, value: Any) -> NDArray[np.int64]:
    return np.broadcast_to(np.asarray(value).astype(np.int64), x.shape)


def space_of(m: Match) -> str | None:
    """Return the space of the instruction's address operand."""
    return next(slot.space for slot in m.operands if slot.kind == "address")


@sync("mbarrier.init")
def init(m: Match) -> Function:
    """Make a barrier: the count of arrivals of each phase, and the layout."""
    layout = int("layout::v1" in m.mnemonic)
    limit = MAX_COUNT[layout]

    def run(x: Lanes, address: NDArray[np.int64], count: Any) -> Outcome:
        counts = _lanes(x, count)
        barriers = units_of(x.machine).barriers
        for index, lanes in groups(x, space_of(m), address):
            n = int(counts[lanes][0])
            if not 1 <= n <= limit:
                x.finding(
                    "uninitialised-barrier",
                    f"mbarrier.init with a count of {n}; 1 to {limit} are possible",
                    lanes=lanes,
                    repair="Initialise with the number of arrivals that complete a phase.",
                    stop=True,
                )
                continue
            cta = int(x.machine.row_cta[index // x.machine.shared.row])
            old = barriers.get(index, cta)
            if old is not None and barriers.intact(old) and _in_use(old):
                x.finding(
                    "uninitialised-barrier",
                    f"mbarrier [{old.address:#x}] is initialised again while in use: {old.describe()}",
                    lanes=lanes,
                    related=[Related("initialised here before", old.place)],
                    repair="Initialise once, or run mbarrier.inval when every user is done with it.",
                )
            barrier = barriers.init(index, cta, n, x.place, layout)
            if x.machine.order is not None:
                x.machine.order.barrier_begins(x, barrier, lanes)
            if (peers := x.machine.peers) is not None:
                barrier.born = int(peers.known[barrier.row, barrier.row % x.machine.cluster_size])
        x.machine.memory_version += 1
        return DONE

    return run


def _in_use(barrier: MBarrier) -> bool:
    return barrier.pending != barrier.expected or barrier.tx != 0 or bool(barrier.signals)


@sync("mbarrier.inval")
def inval(m: Match) -> Function:
    """Give the bytes of a barrier back."""

    def run(x: Lanes, address: NDArray[np.int64]) -> Outcome:
        for index, lanes in groups(x, space_of(m), address):
            barrier = find(x, index, lanes, "mbarrier.inval of")
            if barrier is not None and (barrier.tx or barrier.signals):
                x.finding(
                    "uninitialised-barrier",
                    f"mbarrier.inval while the barrier is in use: {barrier.describe()}",
                    lanes=lanes,
                    related=[Related("initialised here", barrier.place)],
                    repair="Wait for the last phase first.",
                )
            units_of(x.machine).barriers.inval(index)
        x.machine.memory_version += 1
        return DONE

    return run


@sync("mbarrier.expect_tx")
def expect(m: Match) -> Function:
    """Announce bytes without arriving."""

    def run(x: Lanes, address: NDArray[np.int64], tx: Any, mask: Any = None) -> Outcome:
        amounts = _lanes(x, tx)
        for index, lanes in same_offset(x, groups(x, space_of(m), address), mask):
            if (barrier := find(x, index, lanes, "mbarrier.expect_tx on")) is not None:
                expect_tx(x, barrier, lanes, int(amounts[lanes].sum()))
        return DONE

    return run


@sync("mbarrier.complete_tx")
def complete(m: Match) -> Function:
    """Simulate the completion of bytes."""

    def run(x: Lanes, address: NDArray[np.int64], tx: Any, mask: Any = None) -> Outcome:
        amounts = _lanes(x, tx)
        for index, lanes in same_offset(x, groups(x, space_of(m), address), mask):
            if (barrier := find(x, index, lanes, "mbarrier.complete_tx on")) is not None:
                amount = int(amounts[lanes].sum())
                event = Arrival(f"complete_tx {amount}", amount, x.place, threads_text(x, lanes))
                complete_tx(x.machine, barrier, amount, event)
        return DONE

    return run


@sync("mbarrier.arrive", "mbarrier.arrive_drop")
def arriving(m: Match) -> Function:
    """Arrive, with a count, with bytes announced first, or with arrivals dropped from the phases to come."""
    names = [slot.name for slot in m.operands][2:]
    expects = ".expect_tx" in m.row.pattern
    drop, no_complete = m.row.pattern.startswith("mbarrier.arrive_drop"), ".noComplete" in m.row.pattern
    space, words = space_of(m), m.mnemonic.split(".")
    relaxed, wide = "relaxed" in words, "cluster" in words

    def run(x: Lanes, state: Any, address: NDArray[np.int64], *operands: Any) -> Outcome:
        v = dict(zip(names, operands, strict=False))
        states = np.zeros(x.shape, np.uint64)
        amount = v.get("tx" if expects else "count")
        given = None if amount is None else _lanes(x, amount)
        counts = np.ones(x.shape, np.int64) if expects or given is None else given
        tx = given if expects else None
        for index, lanes in same_offset(x, groups(x, space, address), v.get("mask")):
            if (barrier := find(x, index, lanes, "arrives at")) is None:
                continue
            own = x.c0 <= barrier.row < x.c1 and bool(lanes[barrier.row - x.c0].any())
            _tell_peers(x, barrier, lanes)
            order = x.machine.order
            told = None if order is None else order.arrival(x, barrier, lanes, relaxed=relaxed, wide=wide)
            if own:
                if order is not None:
                    order.tell(barrier, told)
                arrive(x, barrier, lanes, counts, tx=tx, states=states, drop=drop, no_complete=no_complete)
            else:
                _remote(x, barrier, lanes, counts, tx, drop, told)
        if state is not None:
            x.put(state, states)
        return DONE

    return run


def _tell_peers(x: Lanes, barrier: MBarrier, lanes: Mask) -> None:
    """Let the CTAs of the lanes tell what they know to whoever waits at the barrier."""
    peers = x.machine.peers
    if peers is None:
        return
    rows = [x.c0 + c for c in np.flatnonzero(lanes.any(axis=1)).tolist()]
    for row in rows:
        if row != barrier.row:
            mine = lanes.copy()
            mine[: row - x.c0] = mine[row - x.c0 + 1 :] = False
            peers.touch(x, row, barrier.row, mine, barrier)
    peers.signal(rows, barrier)


def _remote(
    x: Lanes,
    barrier: MBarrier,
    lanes: Mask,
    counts: NDArray[np.int64],
    tx: NDArray[np.int64] | None,
    drop: bool,
    told: Telling | None,
) -> None:
    """Put an arrival at another CTA's barrier in flight."""
    op, rect, place = x.op, x.rect, x.place

    def complete(machine: Machine) -> None:
        y = machine.lanes(rect)
        before = y.op, y.mask
        y.op, y.mask = op, lanes
        if units_of(machine).barriers.get(barrier.index, int(machine.row_cta[barrier.row])) is barrier:
            if machine.order is not None:
                machine.order.tell(barrier, told)
            arrive(y, barrier, lanes, counts, tx=tx, drop=drop)
        y.op, y.mask = before

    row = x.c0 + int(np.nonzero(lanes.any(1))[0][0])
    threads = threads_text(x, lanes)
    x.issue(AsyncOperation("mbarrier.arrive (remote)", complete, row, place, threads, queue=("remote", row, barrier.index)))


@machine("mbarrier.pending_count")
def pending_count(m: Match) -> Function:
    """Return the pending count of a state."""

    def run(x: Lanes, count: Any, state: Any) -> None:
        x.put(count, (np.broadcast_to(state, x.shape).astype(np.uint64) & np.uint64(0xFFFFFFFF)).astype(np.uint32))

    return run


@machine("mbarrier.check_layout")
def check_layout(m: Match) -> Function:
    """Say whether a barrier has the layout of the qualifier."""
    layout = int("layout::v1" in m.mnemonic)

    def run(x: Lanes, p: Any, address: NDArray[np.int64]) -> None:
        same = np.zeros(x.shape, np.bool_)
        for index, lanes in groups(x, space_of(m), address):
            if (barrier := find(x, index, lanes, "mbarrier.check_layout of")) is not None:
                same |= lanes & (barrier.layout == layout)
        x.put(p, same)

    return run


@sync("mbarrier.test_wait", "mbarrier.try_wait")
def waiting(m: Match) -> Function:
    """Test for a phase; `try_wait` parks until it completes, as the hardware suspends the thread.

    The primary and the conditional phase of a barrier are one while nothing reports (see `simulator.mbarrier`); the report
    of a completed phase (predicate and value) is zero, before that it is undefined.
    """
    by_parity = ".parity" in m.row.pattern
    parks = m.row.pattern.startswith("mbarrier.try_wait")
    space = space_of(m)
    has_value, words = any(slot.name == "v" for slot in m.operands), m.mnemonic.split(".")
    relaxed, wide = "relaxed" in words, "cluster" in words

    def run(x: Lanes, done: Any, *operands: Any) -> Outcome:
        p, reported, address, which = _results(done, operands, value=has_value)
        if by_parity:
            parity, phase = _lanes(x, which) & 1, None
        else:
            parity, phase = None, (np.broadcast_to(which, x.shape).astype(np.uint64) >> np.uint64(32)).astype(np.int64)
        passed = np.zeros(x.shape, np.bool_)
        blocked: list[Waiting] = []
        for index, lanes in groups(x, space, address):
            if (barrier := find(x, index, lanes, "waits at")) is None:
                passed |= lanes
                continue
            w = Waiting(barrier, lanes, parity, phase)
            ok = w.passed()
            passed |= ok
            _observe(x, barrier, ok, parity)
            if x.machine.order is not None:
                x.machine.order.observe(x, barrier, ok, relaxed=relaxed, wide=wide)
            if (ok != lanes).any():
                blocked.append(Waiting(barrier, lanes & ~ok, parity, phase))
        if not blocked or not parks or x.timed_out or _first_refusal(x, blocked):
            _answer(x, p, reported, passed)
            return DONE
        if passed.any():
            mask, x.mask = x.mask, passed
            _answer(x, p, reported, passed)
            x.mask = mask
        return Wait(PhaseWait(x, blocked), passed)

    return run


def _results(done: Any, operands: tuple[Any, ...], *, value: bool) -> tuple[Any, list[Any], Any, Any]:
    """Return the predicate, the places of the report, the address and the phase among the operands of a wait."""
    p, *reported = done if isinstance(done, tuple) else (done,)
    if value:
        return p, [*reported, operands[0]], operands[1], operands[2]
    return p, reported, operands[0], operands[1]


def _answer(x: Lanes, p: Any, reported: list[Any], passed: Mask) -> None:
    x.put(p, passed)
    for place in reported:
        x.put(place, 0)
        x.put_undefined(place, ~passed)


def _first_refusal(x: Lanes, blocked: list[Waiting]) -> bool:
    """Say whether this try_wait shall fail once, as its time limit allows: code that ignores the answer goes on too early."""
    first = False
    for w in blocked:
        for key in warps_of(x, w.lanes):
            if w.barrier.refused.get(key) != w.barrier.phase:
                w.barrier.refused[key] = w.barrier.phase
                first = True
    return first


def _observe(x: Lanes, barrier: MBarrier, lanes: Mask, parity: NDArray[np.int64] | None) -> None:
    """Note the phase that each warp has now waited for."""
    if not lanes.any():
        return
    if x.machine.peers is not None:
        x.machine.peers.observe([x.c0 + c for c in np.flatnonzero(lanes.any(axis=1)).tolist()], barrier)
    for key in warps_of(x, lanes):
        meant = barrier.phase - 1 if parity is None else barrier.meant(key, (barrier.phase & 1) ^ 1)
        if meant < barrier.phase:  # else it passes once more for a phase it has seen
            barrier.observed[key] = meant
