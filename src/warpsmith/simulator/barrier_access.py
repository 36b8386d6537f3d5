"""From the lanes of an instruction to mbarrier objects, and the findings about using them wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.findings import threads_text, warps_of
from warpsmith.simulator.mbarrier import MAX_TX, Arrival, MBarrier
from warpsmith.simulator.memory import OUTSIDE
from warpsmith.simulator.units import units_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine

    Mask = NDArray[np.bool_]

__all__ = ["arrive", "complete_tx", "expect_tx", "find", "groups", "note_arrivers", "related", "settled"]


def groups(x: Lanes, space: str | None, address: NDArray[np.int64], size: int = 8) -> Iterator[tuple[int, Mask]]:
    """Yield (flat index in shared memory, lanes) for each distinct object that the active lanes address."""
    for at in x.locate(space, address, size):
        lanes = np.broadcast_to(x.active() if at.mask is None else at.mask, x.shape)
        index = np.broadcast_to(at.index, x.shape)
        flat = index[lanes]
        if flat.size == 0:
            continue
        if at.space is not x.machine.shared:
            x.finding(
                "uninitialised-barrier",
                f"an mbarrier in {at.space.name} memory: they live in shared memory only",
                lanes=lanes,
                repair="Use an address in shared memory.",
                stop=True,
            )
            continue
        outside = (at.space.shadow.take(index + 7) & OUTSIDE != 0) & lanes
        if outside.any():
            x.machine.check.outside(x, at.space, np.broadcast_to(address, x.shape), size, outside)
            continue
        if flat.size == 1 or (flat == flat[0]).all():
            yield int(flat[0]), lanes
            continue
        for value in np.unique(flat).tolist():
            yield value, lanes & (index == value)


def find(x: Lanes, index: int, lanes: Mask, doing: str) -> MBarrier | None:
    """Return the barrier at a flat index; report and return None when there is none, or its bytes were overwritten."""
    barriers = units_of(x.machine).barriers
    row, address = divmod(index, x.machine.shared.row)
    barrier = barriers.get(index, int(x.machine.row_cta[row]))
    if barrier is None:
        x.finding(
            "uninitialised-barrier",
            f"{doing} mbarrier [{address:#x}], on which no mbarrier.init has run",
            lanes=lanes,
            repair="Initialise the barrier in one thread, then let every user pass a barrier (and a fence for remote or "
            "asynchronous users) before the first use.",
            stop=True,
        )
    elif not barriers.intact(barrier):
        x.finding(
            "uninitialised-barrier",
            f"{doing} mbarrier [{address:#x}], whose 8 bytes were overwritten since mbarrier.init",
            lanes=lanes,
            related=[Related("initialised here", barrier.place)],
            repair="Keep other data off the barrier's 8 bytes, or run mbarrier.inval first and mbarrier.init after.",
            stop=True,
        )
        return None
    elif x.machine.order is not None:
        x.machine.order.judge_init(x, barrier, lanes)
    return barrier


def related(barrier: MBarrier, limit: int = 3) -> list[Related]:
    """Return where the barrier was initialised and who acted on it last."""
    out = [Related(f"mbarrier [{barrier.address:#x}] initialised with {barrier.expected} arrivals", barrier.place)]
    events = barrier.events or barrier.previous
    for e in events[-limit:]:
        out.append(Related(f"{e.what} by {e.threads}", e.place))
    return out


def arrive(
    x: Lanes,
    barrier: MBarrier,
    lanes: Mask,
    counts: NDArray[np.int64],
    *,
    tx: NDArray[np.int64] | None = None,
    drop: bool = False,
    no_complete: bool = False,
    states: NDArray[np.uint64] | None = None,
) -> None:
    """Count the arrivals of `lanes` (`counts` `[C, T]` each); `tx` bytes are expected first; fill in `states`."""
    note_arrivers(x, barrier, lanes)
    each = counts[lanes]
    total = int(each.sum())
    threads = threads_text(x, lanes)
    if states is not None:
        before = barrier.pending - (np.cumsum(each) - each)
        states[lanes] = np.uint64(barrier.phase) << np.uint64(32) | np.maximum(before, 0).astype(np.uint64)
    if tx is not None:
        _expect(x, barrier, lanes, int(tx[lanes].sum()), threads)
    limit = barrier.pending - 1 if no_complete else barrier.pending
    if total > limit or int(each.min()) < 1:
        _over(x, barrier, lanes, total, limit)
    what = f"{'arrive_drop' if drop else 'arrive'} ({total})"
    if total <= barrier.pending:
        barrier.pending -= total
        barrier.expected -= total if drop else 0
        barrier.events.append(Arrival(what, total, x.place, threads))
        settled(x.machine, barrier)
    else:
        for count in each.tolist():
            barrier.pending = max(0, barrier.pending - count)
            barrier.expected -= count if drop else 0
            barrier.events.append(Arrival(what, count, x.place, threads))
            settled(x.machine, barrier)
    units_of(x.machine).barriers.store(barrier)
    x.machine.memory_version += 1


def note_arrivers(x: Lanes, barrier: MBarrier, lanes: Mask) -> None:
    """Keep who has ever arrived, for the report of a deadlock."""
    if not x.machine.checking:
        return
    known = barrier.arrivers.setdefault((x.op.text, x.place), set())
    known.update(warps_of(x, lanes))


def _over(x: Lanes, barrier: MBarrier, lanes: Mask, total: int, limit: int) -> None:
    x.finding(
        "over-arrival",
        f"{total} arrivals at mbarrier [{barrier.address:#x}] in phase {barrier.phase}, which can take {max(limit, 0)} "
        f"of its {barrier.expected} now",
        lanes=lanes,
        related=related(barrier),
        repair="Initialise the barrier with the number of arrivals of a phase, or let one elected thread arrive.",
    )


def expect_tx(x: Lanes, barrier: MBarrier, lanes: Mask, amount: int) -> None:
    """Add to the bytes the phase in progress waits for."""
    _expect(x, barrier, lanes, amount, threads_text(x, lanes))
    settled(x.machine, barrier)
    units_of(x.machine).barriers.store(barrier)
    x.machine.memory_version += 1


def _expect(x: Lanes, barrier: MBarrier, lanes: Mask, amount: int, threads: str) -> None:
    barrier.tx += amount
    barrier.events.append(Arrival(f"expect_tx {amount}", amount, x.place, threads))
    if abs(barrier.tx) > MAX_TX:
        x.finding(
            "tx-mismatch",
            f"the transaction count of mbarrier [{barrier.address:#x}] becomes {barrier.tx}; it holds at most {MAX_TX}",
            lanes=lanes,
            related=related(barrier),
            repair="Split the copies over several barriers or phases.",
        )


def complete_tx(machine: Machine, barrier: MBarrier, amount: int, arrival: Arrival) -> None:
    """Count completed bytes."""
    barrier.tx -= amount
    barrier.events.append(arrival)
    settled(machine, barrier)
    units_of(machine).barriers.store(barrier)
    machine.memory_version += 1


def settled(machine: Machine, barrier: MBarrier) -> None:
    """Complete the phase if it is due; report copies issued for it that are still on their way."""
    phase, events = barrier.phase, barrier.events
    if not barrier.settle():
        return
    if machine.order is not None:
        machine.order.phase_complete(barrier)
    late = [op for op, issued in barrier.signals if issued <= phase]
    if not late:
        return
    expected = sum(e.amount for e in events if e.what.startswith("expect_tx"))
    copies = "1 copy" if len(late) == 1 else f"{len(late)} copies"
    machine.findings.report(
        "tx-mismatch",
        f"phase {phase} of mbarrier [{barrier.address:#x}] completes after the {expected} bytes that "
        f"expect_tx announced, while {copies} issued for it are still in flight",
        late[0].place,
        late[0].threads,
        related=tuple(Related(f"{e.what} by {e.threads}", e.place) for e in events[-3:]),
        repair="Expect exactly the bytes of all copies that signal the barrier in this phase.",
    )
    barrier.signals = [(op, issued) for op, issued in barrier.signals if issued > phase]
