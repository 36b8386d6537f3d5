"""`shared-race` and `global-race`: two accesses to a byte, one of them a write, and nothing orders them (PTX ISA 8.7.1).

Every access asks the shadow of its bytes who touched them last, and the clocks whether the thread knows of that. Exempt are
pairs of strong accesses whose scopes include each other (morally strong, 8.7), and stores that leave the bytes as they are.
docs/design/checker.md has the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.check.cells import smallest_access, smallest_write
from warpsmith.simulator.check.clocks import EXECUTED, KNOWN, OBSERVED, Clocks
from warpsmith.simulator.check.columns import ORDINAL
from warpsmith.simulator.check.entries import AGENT, AGENTS, STRENGTH, TIME, agents_of, entry, times_of
from warpsmith.simulator.check.lane_reads import LaneReads
from warpsmith.simulator.check.loads import Loads
from warpsmith.simulator.check.observations import Observations
from warpsmith.simulator.check.proxies import ProxyPlanes
from warpsmith.simulator.check.race_report import KINDS, Accesses, Pairs, equal_bytes, lanes_of, report, report_together
from warpsmith.simulator.check.shadow import Shadow
from warpsmith.simulator.check.sites import (
    Sites,
    columns_of,
    is_strong,
    is_strong_write,
    operations_of,
    orders_through_memory,
    remembers_reads,
)
from warpsmith.simulator.check.strong_writes import StrongWrites
from warpsmith.simulator.check.swizzle_tags import SwizzleTags
from warpsmith.simulator.check.transit import Transit
from warpsmith.simulator.check.unused_loads import UnusedLoads
from warpsmith.simulator.host_memory import fits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.access import Located
    from warpsmith.simulator.check.entries import Entries
    from warpsmith.simulator.check.sites import Site
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.memory import Space
    from warpsmith.simulator.program import Operation, Program
    from warpsmith.simulator.registers import Rectangle

    Mask = NDArray[np.bool_]

__all__ = ["LATEST", "RaceWatch"]

_TIME, _AGENT, _AGENTS = np.uint64(TIME), np.uint64(AGENT), np.uint64(AGENTS - 1)
LATEST = ORDINAL - (1 << 18)
"""Time after which entries have no room for more."""


@final
class RaceWatch:
    """Judges the generic accesses of a launch."""

    def __init__(self, machine: Machine, program: Program) -> None:
        self.machine = machine
        self.columns = columns_of(machine.threads, program)
        self.proxies = proxies = ProxyPlanes(program, clusters=machine.cluster_size > 1)
        self.remembers = remembers_reads(program)
        """What a relaxed read has found must be kept for what may end its acquire pattern."""
        self.through_memory = orders_through_memory(program) or proxies.first > EXECUTED
        planes = max(proxies.count, 1 + self.through_memory)
        self.clocks = Clocks(machine.rows, machine.threads, self.columns.count, planes, proxies.first, proxies.behind)
        self.sites = Sites()
        self.places = machine.threads // 32
        """Places for the reads of warps of a CTA in a cell of shared memory; fewer than warps where memory is short."""
        cell, bytes_ = smallest_write(program), machine.shared.data.size * 8
        while self.places > 4 and not fits(bytes_ // cell * (self.places * machine.cluster_size + 2)):
            self.places = max(4, self.places // 2 // 4 * 4)
        if self.places < machine.threads // 32:
            machine.fidelity.note(
                "reads of shared memory", "approximate", f"the last ones of {self.places} groups of warps are kept"
            )
        strong = any(is_strong(op) for op in operations_of(program))
        lanes = LaneReads(machine.threads, self.columns.count, self._lanes_lost, strong=strong)
        self.shared = Shadow(machine.shared, self.places * machine.cluster_size + 1, cell, lanes)
        self.strong: StrongWrites | None = None
        """Strong writes to shared memory, where a program can make any."""
        if any(is_strong_write(op, "shared") for op in operations_of(program)):
            lanes = LaneReads(machine.threads, self.columns.count, self._lanes_lost, strong=False)
            self.shared.twin = Shadow(machine.shared, self.shared.readers, cell, lanes)
            self.strong = StrongWrites(self, self.shared.twin)
        self.loads, self.observations = Loads(self), Observations(self)
        cell = smallest_access(program, "global")
        self.global_: Shadow | None = None
        if fits(machine.global_.data.size // cell * 24):
            self.global_ = Shadow(machine.global_, 2, cell)
        else:
            machine.fidelity.note("races on global memory", "not modelled", "the arrays are too large to be followed here")
        self._bounds = np.zeros(machine.rows, np.uint64)
        self._bounds_at = -1
        self._agents: dict[Rectangle, NDArray[np.int64]] = {}
        self.unused = UnusedLoads(self, program)
        self.transit = Transit(self)
        self.tags = SwizzleTags(self)
        machine.row_hooks.append(self._begin)

    @classmethod
    def of(cls, machine: Machine, program: Program) -> RaceWatch | None:
        """Return a watch when findings are asked for and the launch is not too large to be followed."""
        columns = columns_of(machine.threads, program)
        if not machine.checking:
            return None
        if machine.rows * columns.count >= AGENTS:
            machine.fidelity.note("races", "not modelled", "there are too many resident threads to be followed")
            return None
        return cls(machine, program)

    def give_up(self) -> None:
        """Stop looking for races: the launch has synchronised more often than entries can tell."""
        self.machine.races = self.machine.order = None
        text = "from some point on: the launch synchronises too often"
        self.machine.fidelity.note("races", "not modelled", text)

    def _lanes_lost(self) -> None:
        self.machine.fidelity.note("reads of shared memory", "approximate", "of some bytes the last lane of each warp is kept")

    def _begin(self, row: int) -> None:
        self.clocks.begin(row)
        self.observations.begin(row * self.machine.shared.row, (row + 1) * self.machine.shared.row)
        if self.shared.used:
            start = row * self.machine.shared.row >> self.shared.shift
            stop = (row + 1) * self.machine.shared.row >> self.shared.shift
            self.shared.writes[start:stop] = 0
            self.shared.clear_reads(slice(start, stop))
            if self.shared.twin is not None:
                self.shared.twin.clear_reads(slice(start, stop))

    # --- accesses ---------------------------------------------------------------------------------------------------

    def read(self, x: Lanes, at: Located, n: int) -> None:
        """Note n-byte loads at located bytes."""
        if self.shadow_of(at.space) is None:
            return
        before, x.mask = x.mask, at.mask
        self.loads.load(x, at.space, np.broadcast_to(at.index, x.shape), n)
        x.mask = before

    def places_of(self, x: Lanes, shadow: Shadow, index: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of the threads' warps in cells of shared memory at flat indices, flat in `shadow.reads`."""
        deep = (None,) * (cells.ndim - index.ndim)
        readers = (np.arange(x.t0, x.t1) // 32 % self.places)[(None, ..., *deep)]
        if (size := self.machine.cluster_size) > 1:
            away = (np.arange(x.c0, x.c1)[:, None] - index // self.machine.shared.row) % size
            readers = readers + self.places * away[(..., *deep)]
        return cells * shadow.readers + readers

    def store(self, x: Lanes, at: Located, n: int, values: NDArray[Any]) -> None:
        """Note n-byte stores (at most 16) that are about to happen."""
        shadow = self.shadow_of(at.space)
        if shadow is None:
            return
        index = np.broadcast_to(at.index, x.shape)
        cells = shadow.cells(index, n)
        shadow.used = True
        deep = (None,) * (cells.ndim - index.ndim)
        site = self.sites.of(x.op)
        lanes = x.active() if at.mask is None else np.broadcast_to(at.mask, x.shape)
        self.unused.stored(x, lanes)
        chosen = np.broadcast_to(lanes[(..., *deep)], cells.shape)
        written, read = shadow.writes.take(cells, mode="clip"), shadow.reads_of(cells).take(cells, axis=0, mode="clip")
        if shadow is self.shared:
            bound = self.bound(x)[(..., None, *deep)]
            again, after = written >= bound, read >= bound[..., None]
        else:
            again, after = written != 0, read != 0
        same: Mask | None = None
        accesses = Accesses(shadow, site, index, cells, "writes")
        if again.any():
            same = self.judge(x, accesses, again & chosen, written, storing=(at, n, values))
        if after.any():
            self.judge(x, accesses._replace(verb="overwrites"), after & chosen[..., None], read, storing=(at, n, values))
        if self.strong is not None and shadow is self.shared:
            self.strong.judge(x, accesses, chosen, storing=(at, n, values))
            if site.strength:
                self.strong.note(x, accesses, lanes)
        entries = np.broadcast_to(entry(self.clocks.now, self.agents(x), site.strength, site.number)[(..., *deep)], cells.shape)
        if same is not None:
            chosen = chosen & ~same[(..., *deep)]
        where, mine = cells[chosen], entries[chosen]
        shadow.writes[where] = mine
        if site.strength == 0 and (shadow.writes[where] != mine).any():
            report_together(x, accesses, lanes, values)
        self._tell(x, at.space, index, n, lanes, site)

    def _tell(self, x: Lanes, space: Space, index: NDArray[np.int64], n: int, lanes: Mask, site: Site) -> None:
        """Note what stores tell; time moves on, so that who finds a strong one does so later."""
        order = self.machine.order if self.through_memory else None
        if site.strength:
            if order is not None:
                order.stored(x, space, index, lanes, site)
            self.clocks.now += 1
        elif order is not None and order.places.told:
            order.places.overwritten(space, index, n, lanes)

    def store_as(self, x: Lanes, at: Located, n: int, lanes: Mask, entries: Entries) -> None:
        """Note n-byte stores of lanes that an operation in flight makes for them: `entries` `[C, T]` name it."""
        shadow = self.shadow_of(at.space)
        if shadow is None:
            return
        index = np.broadcast_to(at.index, x.shape)
        cells = shadow.cells(index, n)
        shadow.used = True
        deep = (None,) * (cells.ndim - index.ndim)
        site = self.sites.of(x.op)
        chosen = np.broadcast_to(lanes[(..., *deep)], cells.shape)
        written, read = shadow.writes.take(cells, mode="clip"), shadow.reads_of(cells).take(cells, axis=0, mode="clip")
        bound = np.ones((x.shape[0], 1), np.uint64)[(..., *deep)]
        if shadow is self.shared:
            bound = self.bound(x)[(..., None, *deep)]
        accesses = Accesses(shadow, site, index, cells, "writes")
        if (again := (written >= bound) & chosen).any():
            self.judge(x, accesses, again, written)
        if (after := (read >= bound[..., None]) & chosen[..., None]).any():
            self.judge(x, accesses._replace(verb="overwrites"), after, read)
        shadow.writes[cells[chosen]] = np.broadcast_to(entries[(..., *deep)], cells.shape)[chosen]

    def forget(self, space: Space, start: int, stop: int) -> None:
        """Forget who wrote bytes."""
        if (shadow := self.shadow_of(space)) is not None and shadow.used:
            shadow.writes[shadow.span(start, stop)] = 0
            if shadow.twin is not None:
                shadow.twin.clear_reads(shadow.span(start, stop))

    # --- judging ----------------------------------------------------------------------------------------------------

    def judge(
        self, x: Lanes, accesses: Accesses, suspicious: Mask, entries: Entries, *, operations: list[Operation] | None = None,
        storing: tuple[Located, int, Any] | None = None,
    ) -> Mask | None:  # fmt: skip
        """Report the suspicious accesses that race; return the lanes whose store changes nothing (None: none)."""
        axis = accesses.at.ndim - 2
        own = accesses.shadow is self.shared and self.machine.cluster_size == 1
        rows = None if own else np.arange(x.c0, x.c1)[(..., None, *(None,) * (suspicious.ndim - axis - 2))]
        suspicious = suspicious & self.untold(entries, rows)
        if not suspicious.any():
            return None
        where = np.nonzero(suspicious & x.active()[(..., *(None,) * (suspicious.ndim - axis - 2))])
        if where[0].size == 0:
            return None
        pairs = Pairs(where, where[axis] + x.c0, where[axis + 1] + x.t0, entries[where])
        if suspicious.ndim > accesses.cells.ndim:
            pairs = self._with_lanes(x, accesses, pairs)
        bad = self._unordered(x, accesses, pairs)
        if accesses.verb == "overwrites" and bad.any():
            bad &= ~self._read_together(pairs)
        if not bad.any():
            return None
        where = pairs.where
        same: Mask | None = None
        if storing is not None:
            at, n, values = storing
            now = at.space.read(at.index, n)
            kept = np.broadcast_to(equal_bytes(now, np.broadcast_to(values, now.shape)), x.shape)
            same = kept & lanes_of(x, where, axis, bad)
            bad &= ~kept[where[axis], where[axis + 1]]
            if not bad.any():
                return same
        if (bad := self.unused.keep(x, accesses, pairs, bad, operations, report)).any():
            report(self, x, accesses, pairs, bad, operations)
        return same

    def _with_lanes(self, x: Lanes, accesses: Accesses, pairs: Pairs) -> Pairs:
        """Add to pairs with the last reads of warps those with the reads of their other lanes."""
        shadow, (*access, place) = accesses.shadow, pairs.where
        if shadow.lanes is None:
            return pairs
        found = shadow.lanes.at(shadow.reads, accesses.cells[tuple(access)] * shadow.readers + place)
        if found is None:
            return pairs
        some, reads = found
        pair, slot = np.nonzero(reads >= self.bound(x)[pairs.rows[some] - x.c0, None])
        more = some[pair]
        return Pairs(
            tuple(np.concatenate([w, w[more]]) for w in pairs.where), np.concatenate([pairs.rows, pairs.rows[more]]),
            np.concatenate([pairs.threads, pairs.threads[more]]), np.concatenate([pairs.entries, reads[pair, slot]]),
        )  # fmt: skip

    def _unordered(self, x: Lanes, accesses: Accesses, pairs: Pairs) -> Mask:
        """Say which pairs are neither ordered nor morally strong."""
        agents, times, strength = agents_of(pairs.entries), times_of(pairs.entries), accesses.site.strength
        other_rows, columns = np.divmod(agents, self.columns.count)
        known = self.clocks.ordered(pairs.rows, pairs.threads, other_rows, columns, times)
        if strength and not known.all():
            strong = self.morally_strong(pairs.rows, other_rows, pairs.entries, strength)
            if accesses.verb == "reads" and accesses.site.operation.opcode == "ld" and (found := strong & ~known).any():
                self.observations.note(accesses, pairs, found)
            known |= strong | self.clocks.ordered(pairs.rows, pairs.threads, other_rows, columns, times, OBSERVED)
        doubtful = ~known & self._strong_writes(pairs.entries, columns)
        if doubtful.any() and not self.machine.findings.known(KINDS[accesses.shadow.space.name], x.place, "error"):
            known |= self.observations.found(accesses, pairs, doubtful)
        return ~known

    def _strong_writes(self, entries: Entries, columns: NDArray[np.int64]) -> Mask:
        """Say which entries are of strong writes, or of the reads of atomic operations, by threads."""
        strong = (entries >> np.uint64(STRENGTH) & np.uint64(3)) > 0
        return strong & (columns < self.columns.threads) & self.sites.writes[(entries & np.uint64(0xFFFF)).astype(np.int64)]

    def untold(self, entries: Entries, rows: NDArray[np.int64] | None) -> Mask:
        """Say which entries not all threads of a row know by its last barrier; `rows` None: those of the entries themselves."""
        agents = (entries >> _AGENT & _AGENTS).view(np.int64)
        out = self.clocks.common.reshape(-1).take(agents, mode="clip") < entries >> _TIME
        if rows is not None:
            out |= (agents - rows * self.columns.count).view(np.uint64) >= np.uint64(self.columns.count)
        return out

    def executed(self, rows: NDArray[np.int64], threads: NDArray[np.int64], entries: Entries) -> Mask:
        """Say which entries threads (row, number) come behind in execution, of those that they do not know of."""
        if self.clocks.executed == KNOWN:
            return np.zeros(rows.shape, np.bool_)
        other_rows, columns = np.divmod(agents_of(entries), self.columns.count)
        return self.clocks.ordered(rows, threads, other_rows, columns, times_of(entries), self.clocks.executed)

    def _read_together(self, pairs: Pairs) -> Mask:
        """Say which pairs are a read that the writer's warp has made as one."""
        other_rows, columns = np.divmod(agents_of(pairs.entries), self.columns.count)
        mine = (other_rows == pairs.rows) & (columns // 32 == pairs.threads // 32)
        return mine & self.sites.together[(pairs.entries & np.uint64(0xFFFF)).astype(np.int64)]

    def morally_strong(self, rows: Any, other_rows: Any, entries: Entries, strength: int | NDArray[np.int64]) -> Mask:
        """Say which accesses at a strength and entries are both strong, at scopes that include each other."""
        theirs = (entries >> np.uint64(STRENGTH)).astype(np.int64) & 3
        size = self.machine.cluster_size
        need = np.where(other_rows == rows, 1, np.where(other_rows // size == rows // size, 2, 3))
        return np.minimum(theirs, strength) >= need

    # --- names ------------------------------------------------------------------------------------------------------

    def party(self, item: int) -> tuple[Site | None, str]:
        """Return the instruction and the name of the agent of an entry."""
        row, column = divmod((item >> AGENT) & (AGENTS - 1), self.columns.count)
        cta = "({},{},{})".format(*self.machine.cta_of(row))
        name = self.columns.name(column)
        return self.sites.at(item & 0xFFFF), f"cta {cta} {name}" if column < self.columns.threads else f"{name} of cta {cta}"

    # --- small things -----------------------------------------------------------------------------------------------

    def shadow_of(self, space: Space) -> Shadow | None:
        """Return the shadow of a space, if it is followed."""
        m = self.machine
        return self.shared if space is m.shared else self.global_ if space is m.global_ else None

    def agents(self, x: Lanes) -> NDArray[np.int64]:
        """Return the agents of a rectangle's threads, `[C, T]`."""
        found = self._agents.get(x.rect)
        if found is None:
            if len(self._agents) > 4096:
                self._agents.clear()
            rows = np.arange(x.c0, x.c1, dtype=np.int64)[:, None] * self.columns.count
            found = self._agents[x.rect] = rows + np.arange(x.t0, x.t1, dtype=np.int64)
        return found

    def bound(self, x: Lanes) -> NDArray[np.uint64]:
        """Return, for each CTA of a rectangle, the least entry that its threads may not know of."""
        if self._bounds_at != self.clocks.now:
            since = self.clocks.floor if self.machine.cluster_size == 1 else self.clocks.birth
            self._bounds = (since + 1).astype(np.uint64) << np.uint64(TIME)
            if self.machine.cluster_size > 1:  # entries of a neighbour may be older than this CTA
                self._bounds[:] = 1
            self._bounds_at = self.clocks.now
        return self._bounds[x.c0 : x.c1]
