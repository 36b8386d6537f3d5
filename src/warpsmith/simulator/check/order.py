"""What orders threads: barriers of CTAs, warps and clusters, mbarriers, fences and strong accesses (PTX ISA 8.8, 8.9.4).

Each rule turns an event into messages of `check.clocks`: who arrives releases, who has waited acquires. Not counted:
`shfl`, `vote`, `match`, `redux`, `elect` and the matrix instructions (they meet, but the manual gives them no memory
order), and the order of two `fence.sc` without a value passed between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.check.clocks import KNOWN, OBSERVED, Message
from warpsmith.simulator.check.columns import ORDINAL
from warpsmith.simulator.check.places import Places
from warpsmith.simulator.check.sites import fences_memory
from warpsmith.simulator.units import units_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.check.races import RaceWatch
    from warpsmith.simulator.check.sites import Site
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.mbarrier import MBarrier
    from warpsmith.simulator.memory import Space

    Mask = NDArray[np.bool_]

__all__ = ["Order", "Telling"]


class Telling(NamedTuple):
    """What an arrival at an mbarrier tells waits of any scope, and besides those of the cluster's scope."""

    near: Message | None
    far: Message | None = None


@final
class Order:
    """Follows the synchronisation of a launch."""

    def __init__(self, machine: Machine, races: RaceWatch) -> None:
        self.machine, self.races, self.clocks = machine, races, races.clocks
        rows, threads = machine.rows, machine.threads
        self.waiting = np.zeros((rows, 16, threads), np.bool_)
        """Threads that wait at each barrier of each CTA."""
        self.arrived: dict[tuple[int, int], Message] = {}
        """(row, barrier) -> what `bar.arrive` has told its generation in progress."""
        self.cluster: dict[int, Message] = {}
        self.cluster_done: dict[int, Message] = {}
        """First row of a cluster -> what its barrier was told in the phase in progress, and in the last complete one."""
        self.places = Places(self.clocks, cluster=machine.cluster_size, remembers=races.remembers)
        self._barriers = 0
        machine.row_hooks.append(self._begin)

    def _begin(self, row: int) -> None:
        self.waiting[row] = False
        self.arrived = {k: v for k, v in self.arrived.items() if k[0] != row} if self.arrived else {}
        self.places.begin(row, row * self.machine.shared.row, (row + 1) * self.machine.shared.row)

    def _rows(self, x: Lanes, lanes: Mask) -> Any:
        """Yield (row, its threads `[threads]`) for the rows with lanes."""
        for c in np.flatnonzero(lanes.any(axis=1)).tolist():
            mine = np.zeros(self.machine.threads, np.bool_)
            mine[x.t0 : x.t1] = lanes[c]
            yield x.c0 + c, mine

    def message(self, x: Lanes, lanes: Mask) -> Message | None:
        """Release: return what the lanes know and have done."""
        out: Message | None = None
        for row, mine in self._rows(x, lanes):
            out = self.clocks.release(row, mine).joined(out)
        return out

    # --- barriers of CTAs and clusters ------------------------------------------------------------------------------

    def barrier_at_once(self, x: Lanes) -> None:
        """All threads of the CTAs of a rectangle pass a barrier together."""
        self.clocks.everyone(np.arange(x.c0, x.c1))

    def barrier_arrive(self, x: Lanes, number: int, lanes: Mask, *, waits: bool) -> None:
        """Note arrivals; those that wait are told when the barrier completes."""
        if waits:
            self.waiting[x.c0 : x.c1, number, x.t0 : x.t1] |= lanes
            return
        for row, mine in self._rows(x, lanes):
            self.arrived[row, number] = self.clocks.release(row, mine).joined(self.arrived.get((row, number)))

    def barrier_complete(self, number: int, rows: NDArray[np.int64]) -> None:
        """Tell those who wait at a barrier of `rows` what all who arrived have done."""
        whole: list[int] = []
        for row in rows.tolist():
            waiting = self.waiting[row, number]
            told = self.arrived.pop((row, number), None)
            if told is None and np.array_equal(waiting, self.machine.live[row]):
                whole.append(row)
            elif waiting.any():
                mine = waiting.copy()
                self.clocks.acquire(row, mine, self.clocks.release(row, mine).joined(told))
        self.waiting[rows, number] = False
        if whole:
            self.clocks.everyone(np.array(whole))

    def cluster_arrive(self, x: Lanes, lanes: Mask, *, relaxed: bool) -> None:
        """Note arrivals at the cluster barrier; relaxed ones release what a fence has covered (8.8)."""
        for row, mine in self._rows(x, lanes):
            first = int(self.machine.cluster_first[row])
            for told in self._relaxed(row, mine, 2) if relaxed else [self.clocks.release(row, mine)]:
                self.cluster[first] = told.joined(self.cluster.get(first))

    def cluster_complete(self, first: int) -> None:
        """Note that a phase of a cluster barrier has completed."""
        if (told := self.cluster.pop(first, None)) is not None:
            self.cluster_done[first] = told

    def cluster_pass(self, x: Lanes, lanes: Mask) -> None:
        """Tell lanes that have waited at the cluster barrier what was released there."""
        for row, mine in self._rows(x, lanes):
            if (told := self.cluster_done.get(int(self.machine.cluster_first[row]))) is not None:
                self.clocks.acquire(row, mine, told)

    def warp_sync(self, x: Lanes) -> None:
        """Let the lanes of each warp that execute `bar.warp.sync` together know each other."""
        self.clocks.warp_sync(x.c0, x.t0, x.active())

    # --- mbarriers --------------------------------------------------------------------------------------------------

    def barrier_begins(self, x: Lanes, barrier: MBarrier, lanes: Mask) -> None:
        """Give a new mbarrier a column, and note who has initialised it."""
        c, t = np.argwhere(lanes)[0].tolist()
        barrier.maker = (x.c0 + c, x.t0 + t, self.clocks.now)
        barrier.column = self.races.columns.barrier(self._barriers)
        self._barriers += 1

    def judge_init(self, x: Lanes, barrier: MBarrier, lanes: Mask) -> None:
        """Report lanes that use a barrier though nothing orders its initialisation before them."""
        if barrier.maker is None:
            return
        users = x.rect, lanes.tobytes()
        if users in barrier.known_by:
            return
        barrier.known_by.add(users)
        maker_row, maker, time = barrier.maker
        for row, mine in self._rows(x, lanes):
            threads = np.flatnonzero(mine)
            warps = {(row, w) for w in np.unique(threads // 32).tolist()} - barrier.known_to
            if not warps:
                continue
            mine, its, thread, when, fence = (
                np.full(threads.size, n) for n in (row, maker_row, maker, time, barrier.published)
            )
            known = self.clocks.ordered(mine, threads, its, thread, when)
            if barrier.published:
                known |= self.clocks.ordered(mine, threads, its, thread, fence, self.clocks.executed)
            barrier.known_to |= warps
            if known.all():
                continue
            bad = np.zeros(x.shape, np.bool_)
            bad[row - x.c0, threads[~known] - x.t0] = True
            behind = self.clocks.executed != KNOWN and bool(
                self.clocks.ordered(mine, threads, its, thread, when, self.clocks.executed)[~known].all()
            )
            text = f"`{x.op.text}` uses mbarrier [{barrier.address:#x}], whose mbarrier.init nothing orders before it"
            repair = "Let all users pass a barrier (bar.sync, or that of the cluster) after mbarrier.init."
            if behind:  # as CUTLASS leaves the last of its barriers
                text += "; it runs later, but what is between is .relaxed"
                repair = "Put fence.mbarrier_init.release.cluster behind mbarrier.init, in the thread that has executed it."
            x.finding(
                "uninitialised-barrier", text, lanes=bad, severity="portability" if behind else "error",
                related=[Related("initialised here", barrier.place)], repair=repair,
            )  # fmt: skip

    def arrival(self, x: Lanes, barrier: MBarrier, lanes: Mask, *, relaxed: bool, wide: bool) -> Telling:
        """Return what arrivals of lanes tell; `wide`: at the scope of the cluster, else of the CTA.

        Threads of another CTA than the barrier's and those who wait there synchronise where both scopes are the cluster's
        (8.5); else the arrival comes before the wait, and no memory is ordered.
        """
        near: Message | None = None
        far: Message | None = None
        for row, mine in self._rows(x, lanes):
            away = row != barrier.row
            for told in self._relaxed(row, mine, 1 + away) if relaxed else [self.clocks.release(row, mine)]:
                here = self.clocks.in_execution(told) if away else told
                near = near if here is None else here.joined(near)
                far = told.joined(far) if away and wide else far
        return Telling(near, far)

    def _relaxed(self, row: int, lanes: Mask, scope: int) -> list[Message]:
        """Return what a relaxed arrival of threads `[threads]` of a row tells: that it comes later, and what fences covered."""
        executed = self.clocks.in_execution(self.clocks.release(row, lanes))
        out = [] if executed is None else [executed]
        return [*out, *self.places.fenced(row, lanes, scope)]

    def _publish(self, x: Lanes) -> None:
        """Note `fence.mbarrier_init`: it orders what its threads have initialised, and nothing else (9.7.15.4).

        Whoever executes behind it knows of those barriers, be what lies between relaxed.
        """
        active = x.active()
        for barrier in units_of(self.machine).barriers.by_index.values():
            if barrier.maker is None or barrier.published:
                continue
            c, t = barrier.maker[0] - x.c0, barrier.maker[1] - x.t0
            if 0 <= c < active.shape[0] and 0 <= t < active.shape[1] and active[c, t]:
                barrier.published = self.clocks.now
        self.clocks.now += 1

    def tell(self, barrier: MBarrier, told: Telling | None) -> None:
        """Add what an arrival tells to the phase in progress."""
        if told is None:
            return
        if told.near is not None:
            barrier.telling = told.near.joined(barrier.telling)
        if told.far is not None:
            barrier.telling_far = told.far.joined(barrier.telling_far)

    def copies_told(self, x: Lanes, lanes: Mask) -> Telling:
        """Return what `cp.async.mbarrier.arrive` will tell: the copies that the lanes have issued so far."""
        opened = units_of(self.machine).copies.open
        out: Message | None = None
        for row, mine in self._rows(x, lanes):
            warps = np.unique(np.flatnonzero(mine) // 32).tolist()
            last = ORDINAL + int(opened[row][mine].max()) + 1
            known = [(self.races.columns.group("cp.async", w), last) for w in warps]
            out = self.races.transit.message(row, known).joined(out)
        return Telling(out)

    def phase_complete(self, barrier: MBarrier) -> None:
        """A phase has completed: whoever waits for it learns of its arrivals, and of the copies that completed on it."""
        told = barrier.telling if barrier.tells is None else barrier.tells.joined(barrier.telling)
        if barrier.telling_far is not None:
            barrier.tells_far = barrier.telling_far.joined(barrier.tells_far)
        barrier.telling = barrier.telling_far = None
        if told is None or barrier.row not in told.vectors:
            told = Message({**(told.vectors if told is not None else {}), barrier.row: self.clocks.nothing()})
        barrier.tells = self.clocks.with_column(told, barrier.row, barrier.column, ORDINAL + barrier.phase)

    def observe(self, x: Lanes, barrier: MBarrier, lanes: Mask, *, relaxed: bool, wide: bool) -> None:
        """Tell lanes that have waited for a phase what it tells; `wide`: at the scope of the cluster."""
        near = barrier.tells
        if near is None:
            return
        told = near.joined(barrier.tells_far) if wide else near
        if relaxed:
            if self.clocks.planes <= OBSERVED:
                return
            told, self.places.observing = self.clocks.observed(told), True
        for row, mine in self._rows(x, lanes):
            self.clocks.acquire(row, mine, told)
            if relaxed:
                far = {2: barrier.tells_far} if wide and barrier.tells_far is not None else {}
                self.places.remember(row, mine, ("mbarrier", barrier.column), {1: near, **far})

    # --- fences and strong accesses -----------------------------------------------------------------------------------

    def fence(self, x: Lanes, mnemonic: str) -> None:
        """Note a fence: a fence of the generic proxy ends an acquire pattern and begins a release pattern."""
        words = mnemonic.split(".")
        if words[1] == "proxy":
            if planes := self.races.proxies.planes(mnemonic):
                for row, mine in self._rows(x, x.active()):
                    self.clocks.proxy_fence(row, mine, planes)
            return
        if words[1] == "mbarrier_init":
            self._publish(x)
        if not fences_memory(words):
            return
        scope = 1 if "cta" in words else 2 if "cluster" in words else 3
        active = x.active()
        if "release" not in words:
            for row, mine in self._rows(x, active) if self.places.observing else ():
                self.places.acquire_fence(row, mine, scope)
        if "acquire" not in words:
            self.places.release_fence((slice(x.c0, x.c1), slice(x.t0, x.t1)), active, scope)
        self.clocks.now += 1

    def loaded(self, x: Lanes, space: Space, index: NDArray[np.int64], lanes: Mask, site: Site) -> None:
        """Note strong reads at flat indices `[…, C, T]`: they learn what the values tell, at once or at the next fence."""
        if not (self.places.told or (self.places.read and site.acquires)) or site.operation.opcode in ("atom", "red"):
            return
        if index.ndim > 2:
            for each in index:
                self.loaded(x, space, each, lanes, site)
            return
        for at in np.unique(index[lanes]).tolist():
            key = (space.name, at)
            told = self.places.told.get(key)
            if told is None and not (self.places.read and site.acquires):
                continue
            for row, mine in self._rows(x, lanes & (index == at)):
                self.places.learn(row, mine, key, told, site)

    def stored(self, x: Lanes, space: Space, index: NDArray[np.int64], lanes: Mask, site: Site) -> None:
        """Note strong writes: their values tell what the thread released, itself or by an earlier fence."""
        telling = self.places.telling((slice(x.c0, x.c1), slice(x.t0, x.t1)), lanes, site)
        if site.operation.opcode in ("atom", "red"):
            self._exchanged(x, space, index, lanes, telling, site)
            return
        if self.places.told:
            for at in np.unique(index[lanes]).tolist():
                self.places.pop((space.name, at))
        for c, t in np.argwhere(telling).tolist():
            self.places.tell((space.name, int(index[c, t])), (x.c0 + c, x.t0 + t), site, None)
        if site.releases:
            self.clocks.now += 1

    def _exchanged(
        self, x: Lanes, space: Space, index: NDArray[np.int64], lanes: Mask, telling: Mask, site: Site
    ) -> None:  # fmt: skip
        """Note atomic operations, one lane after the other: each learns what is told before it, and adds to that."""
        places = self.places
        if not (places.told or (places.read and site.acquires)) and not telling.any():
            return
        for c, t in np.argwhere(lanes).tolist():
            key, thread = (space.name, int(index[c, t])), (x.c0 + c, x.t0 + t)
            before = places.told.get(key)
            if not site.reduces and (before is not None or places.read):
                mine = np.zeros(self.machine.threads, np.bool_)
                mine[thread[1]] = True
                places.learn(thread[0], mine, key, before, site)
            if before is not None or telling[c, t]:
                places.tell(key, thread, site, before)
            if telling[c, t] and site.releases:
                self.clocks.now += 1

    def store_issued(self, x: Lanes, lanes: Mask, row: int, column: int, ordinal: int) -> Message:
        """Return what an asynchronous release store of one lane will tell: what its thread knows now, and itself (8.8)."""
        ((_, mine),) = self._rows(x, lanes)
        return self.clocks.with_column(self.clocks.release(row, mine), row, column, ordinal)

    def store_completed(self, space: Space, index: int, message: Message, row: int, *, reduces: bool) -> None:
        """An asynchronous release store (at the scope of the GPU) has completed: the place tells what its thread released."""
        key = (space.name, index)
        self.places.put(key, row, message, self.places.told.get(key) if reduces else None)
