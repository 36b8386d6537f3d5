"""`shared-race` and `global-race`: two accesses to a byte, one of them a write, and nothing orders them (PTX ISA 8.7.1).

Every access asks the shadow of its bytes who touched them last, and the clocks whether the thread knows of that. Exempt are
pairs of strong accesses whose scopes include each other (morally strong, 8.7), and stores that leave the bytes as they are.
docs/design/checker.md has the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.check.clocks import KNOWN, OBSERVED, Clocks
from warpsmith.simulator.check.columns import ORDINAL, Columns
from warpsmith.simulator.check.proxies import ProxyPlanes
from warpsmith.simulator.check.shadow import AGENT, AGENTS, STRENGTH, TIME, Shadow, agents_of, entry, note_last_two, times_of
from warpsmith.simulator.check.sites import Sites, cell_size, operations_of, orders_through_memory
from warpsmith.simulator.check.swizzle_tags import SwizzleTags
from warpsmith.simulator.check.transit import Transit
from warpsmith.simulator.host_memory import fits
from warpsmith.simulator.memory import GLOBAL_BASE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.access import Located
    from warpsmith.simulator.check.shadow import Entries
    from warpsmith.simulator.check.sites import Site
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.memory import Space
    from warpsmith.simulator.program import Operation, Program
    from warpsmith.simulator.registers import Rectangle

    Mask = NDArray[np.bool_]

__all__ = ["LATEST", "RaceWatch"]

LATEST = ORDINAL - (1 << 18)
"""Time after which entries have no room for more."""
_KINDS = {"shared": "shared-race", "global": "global-race"}
_REPAIR = {
    "shared": "Put a barrier that both threads pass (bar.sync, bar.warp.sync within a warp, an mbarrier) between the accesses.",
    "global": "Order the two accesses (a release and an acquire, a barrier of the grid or of the CTA), or make both atomic.",
}


class _Pairs(NamedTuple):
    """Accesses that may race, one a row: who (row, thread) meets which entry, and where in the array of accesses."""

    where: tuple[NDArray[np.intp], ...]
    rows: NDArray[np.int64]
    threads: NDArray[np.int64]
    entries: Entries


@final
class RaceWatch:
    """Judges the generic accesses of a launch."""

    def __init__(self, machine: Machine, program: Program) -> None:
        self.machine = machine
        self.columns = Columns(machine.threads, {op.opcode for op in operations_of(program)})
        self.through_memory = orders_through_memory(program)
        self.proxies = ProxyPlanes(op.text for op in operations_of(program))
        planes = self.proxies.count or 1 + self.through_memory
        self.clocks = Clocks(machine.rows, machine.threads, self.columns.count, planes)
        self.sites = Sites()
        self.places = machine.threads // 32
        """Places for the reads of warps in a cell of shared memory; fewer than warps where memory is short."""
        cell, bytes_ = cell_size(program, "shared"), machine.shared.data.size * 8
        while self.places > 4 and not fits(bytes_ // cell * (self.places + 3)):
            self.places = max(4, self.places // 2 // 4 * 4)
        if self.places < machine.threads // 32:
            machine.fidelity.note(
                "reads of shared memory", "approximate", f"the last ones of {self.places} groups of warps are kept"
            )
        self.shared = Shadow(machine.shared, self.places + 2, cell)
        cell = cell_size(program, "global")
        self.global_: Shadow | None = None
        if fits(machine.global_.data.size // cell * 24):
            self.global_ = Shadow(machine.global_, 2, cell)
        else:
            machine.fidelity.note("races on global memory", "not modelled", "the arrays are too large to be followed here")
        self._bounds = np.zeros(machine.rows, np.uint64)
        self._bounds_at = -1
        self._agents: dict[Rectangle, NDArray[np.int64]] = {}
        self.transit = Transit(self)
        self.tags = SwizzleTags(self)
        machine.row_hooks.append(self._begin)

    @classmethod
    def of(cls, machine: Machine, program: Program) -> RaceWatch | None:
        """Return a watch when findings are asked for and the launch is not too large to be followed."""
        columns = Columns(machine.threads, {op.opcode for op in operations_of(program)})
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

    def _begin(self, row: int) -> None:
        self.clocks.begin(row)
        if self.shared.used:
            start = row * self.machine.shared.row >> self.shared.shift
            stop = (row + 1) * self.machine.shared.row >> self.shared.shift
            self.shared.writes[start:stop] = 0
            self.shared.reads[start:stop] = 0

    # --- accesses ---------------------------------------------------------------------------------------------------

    def read(self, x: Lanes, at: Located, n: int) -> None:
        """Note n-byte loads at located bytes."""
        if self.shadow_of(at.space) is None:
            return
        before, x.mask = x.mask, at.mask
        self.load(x, at.space, np.broadcast_to(at.index, x.shape), n)
        x.mask = before

    def load(self, x: Lanes, space: Space, index: NDArray[np.int64], n: int, operations: list[Operation] | None = None) -> None:
        """Note n-byte loads (at most 16) at flat indices `[…, C, T]`, of several `operations` `[k, C, T]`."""
        shadow = self.shadow_of(space)
        if shadow is None:
            return
        cells = shadow.cells(index, n)
        shadow.used = True
        deep = (None,) * (cells.ndim - index.ndim)
        site = self.sites.of(x.op)
        written = shadow.writes.take(cells, mode="clip")
        if shadow is self.shared:
            suspicious = written >= self._bound(x)[(..., None, *deep)]
        else:
            suspicious = written != 0
        if suspicious.any():
            self._judge(x, shadow, suspicious, written, site, index, deep, "reads", operations)
        entries = entry(self.clocks.now, self.agents(x), site.strength, site.number)
        if operations is not None:
            numbers = np.array([self.sites.of(op).number - site.number for op in operations], np.int64)
            entries = (entries.astype(np.int64) + numbers[:, None, None]).astype(np.uint64)
        entries = entries[(..., *deep)]
        if shadow is self.shared:
            self._note_shared_reads(x, shadow, index, cells, entries, deep)
        else:
            note_last_two(shadow, cells, entries, self.columns.count)

        if site.strength and self.through_memory and self.machine.order is not None:
            self.machine.order.loaded(x, space, index, x.active(), site)

    def _note_shared_reads(
        self, x: Lanes, shadow: Shadow, index: NDArray[np.int64], cells: NDArray[np.int64], entries: Any, deep: Any
    ) -> None:
        readers = (np.arange(x.t0, x.t1) // 32 % self.places)[(None, ..., *deep)]
        if self.machine.cluster_size > 1:
            away = index // self.machine.shared.row != np.arange(x.c0, x.c1)[:, None]
            if away.any():
                readers = np.where(away[(..., *deep)], shadow.readers - 2, readers)
        shadow.reads.reshape(-1)[cells * shadow.readers + readers] = entries

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
        chosen = np.broadcast_to(lanes[(..., *deep)], cells.shape)
        written, read = shadow.writes.take(cells, mode="clip"), shadow.reads.take(cells, axis=0, mode="clip")
        if shadow is self.shared:
            bound = self._bound(x)[(..., None, *deep)]
            again, after = written >= bound, read >= bound[..., None]
        else:
            again, after = written != 0, read != 0
        same: Mask | None = None
        if again.any():
            same = self._judge(x, shadow, again & chosen, written, site, index, deep, "writes", None, (at, n, values))
        if after.any():
            self._judge(
                x, shadow, after & chosen[..., None], read, site, index, (*deep, None), "overwrites", None, (at, n, values)
            )
        entries = np.broadcast_to(entry(self.clocks.now, self.agents(x), site.strength, site.number)[(..., *deep)], cells.shape)
        if same is not None:
            chosen = chosen & ~same[(..., *deep)]
        where, mine = cells[chosen], entries[chosen]
        shadow.writes[where] = mine
        if site.strength == 0 and (shadow.writes[where] != mine).any():
            self._together(x, shadow, index, lanes, values, site)
        if site.strength and self.through_memory and self.machine.order is not None:
            self.machine.order.stored(x, at.space, index, lanes, site)

    def _together(self, x: Lanes, shadow: Shadow, index: Any, lanes: Mask, values: Any, site: Site) -> None:
        """Judge lanes that store to the same bytes with one instruction: unlike values race."""
        flat, stored = index[lanes], np.broadcast_to(values, x.shape)[lanes]
        _, first, group = np.unique(flat, return_index=True, return_inverse=True)
        unlike = stored.view(_WORDS[stored.itemsize]) != stored.view(_WORDS[stored.itemsize])[first[group]]
        if stored.itemsize == 16:
            unlike = (stored.view(np.uint64).reshape(-1, 2) != stored.view(np.uint64).reshape(-1, 2)[first[group]]).any(axis=1)
        if not unlike.any():
            return
        bad = np.zeros(x.shape, np.bool_)
        bad[lanes] = unlike
        c, t = np.argwhere(bad)[0].tolist()
        kind = _KINDS[shadow.space.name]
        text = (
            f"{site.text}: several threads store different values to {self._address(shadow, int(index[c, t]))} at once, and "
            "nothing orders them"
        )
        x.finding(kind, text, lanes=bad, repair=_REPAIR[shadow.space.name])

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
        written, read = shadow.writes.take(cells, mode="clip"), shadow.reads.take(cells, axis=0, mode="clip")
        bound = np.ones((x.shape[0], 1), np.uint64)[(..., *deep)]
        if shadow is self.shared:
            bound = self._bound(x)[(..., None, *deep)]
        if (again := (written >= bound) & chosen).any():
            self._judge(x, shadow, again, written, site, index, deep, "writes", None)
        if (after := (read >= bound[..., None]) & chosen[..., None]).any():
            self._judge(x, shadow, after, read, site, index, (*deep, None), "overwrites", None)
        shadow.writes[cells[chosen]] = np.broadcast_to(entries[(..., *deep)], cells.shape)[chosen]

    def forget(self, space: Space, start: int, stop: int) -> None:
        """Forget who wrote bytes."""
        if (shadow := self.shadow_of(space)) is not None and shadow.used:
            shadow.writes[shadow.span(start, stop)] = 0

    # --- judging ----------------------------------------------------------------------------------------------------

    def _judge(
        self, x: Lanes, shadow: Shadow, suspicious: Mask, entries: Entries, site: Site, index: Any, deep: Any, verb: str,
        operations: list[Operation] | None, storing: tuple[Located, int, Any] | None = None,
    ) -> Mask | None:  # fmt: skip
        """Report the suspicious accesses that race; return the lanes whose store changes nothing (None: none)."""
        active = x.active()[(..., *deep)]
        where = np.nonzero(suspicious & active)
        if where[0].size == 0:
            return None
        axis = suspicious.ndim - len(deep) - 2
        rows, threads = where[axis] + x.c0, where[axis + 1] + x.t0
        pairs = _Pairs(where, rows, threads, entries[where])
        bad = self._unordered(pairs, site.strength)
        if verb == "overwrites" and bad.any():
            bad &= ~self._read_together(pairs)
        if not bad.any():
            return None
        same: Mask | None = None
        if storing is not None:
            at, n, values = storing
            now = at.space.read(at.index, n)
            kept = np.broadcast_to(_equal(now, np.broadcast_to(values, now.shape)), x.shape)
            same = kept & _lanes_of(x, where, axis, bad)
            bad &= ~kept[where[axis], where[axis + 1]]
            if not bad.any():
                return same
        self._report(x, shadow, pairs, bad, axis, site, index, deep, verb, operations)
        return same

    def _unordered(self, pairs: _Pairs, strength: int) -> Mask:
        """Say which pairs are neither ordered nor morally strong."""
        agents, times = agents_of(pairs.entries), times_of(pairs.entries)
        other_rows, columns = np.divmod(agents, self.columns.count)
        plane = OBSERVED if strength else KNOWN
        bad = ~self.clocks.ordered(pairs.rows, pairs.threads, other_rows, columns, times, plane)
        if strength and bad.any():
            bad &= ~self.morally_strong(pairs.rows, other_rows, pairs.entries, strength)
        return bad

    def _read_together(self, pairs: _Pairs) -> Mask:
        """Say which pairs are a read that the writer's warp has made as one."""
        other_rows, columns = np.divmod(agents_of(pairs.entries), self.columns.count)
        mine = (other_rows == pairs.rows) & (columns // 32 == pairs.threads // 32)
        return mine & self.sites.together[(pairs.entries & np.uint64(0xFFFF)).astype(np.int64)]

    def _report(
        self, x: Lanes, shadow: Shadow, pairs: _Pairs, bad: Mask, axis: int, site: Site, index: Any, deep: Any, verb: str,
        operations: list[Operation] | None,
    ) -> None:  # fmt: skip
        i = int(np.flatnonzero(bad)[0])
        place = tuple(int(w[i]) for w in pairs.where)
        if operations is not None:
            x.op = operations[place[0]]
            site = self.sites.of(x.op)
            bad = bad & (pairs.where[0] == place[0])
        item = int(pairs.entries[i])
        asynchronous = (item >> AGENT & (AGENTS - 1)) % self.columns.count >= self.columns.threads
        kind = _KINDS[shadow.space.name]
        if asynchronous:
            kind = "async-read-before-complete" if verb == "reads" else "async-overwrite"
        if self.machine.findings.known(kind, x.place):
            return
        address = self._address(shadow, int(index[place[: len(place) - len(deep)]]))
        other, who = self.party(item)
        text = f"{site.text} {'reads' if verb == 'reads' else 'writes'} {address}"
        did = "read" if verb == "overwrites" else "written"
        repair = _REPAIR[shadow.space.name]
        if asynchronous:
            by = other.short if other is not None else who
            text += f" before its thread can know that {by} has {did} it"
            repair = "Wait for the operation (its mbarrier phase, or its group), and let all others know by a barrier."
        else:
            text += f", which {who} has {did}; nothing orders the two"
        related = (
            [Related(f"{other.short if asynchronous else other.text} by {who}", other.operation.place)]
            if other is not None
            else []
        )
        x.finding(kind, text, lanes=_lanes_of(x, pairs.where, axis, bad), related=related, repair=repair)

    def morally_strong(self, rows: Any, other_rows: Any, entries: Entries, strength: int) -> Mask:
        """Say which accesses at a strength and entries are both strong, at scopes that include each other."""
        theirs = (entries >> np.uint64(STRENGTH)).astype(np.int64) & 3
        size = self.machine.cluster_size
        need = np.where(other_rows == rows, 1, np.where(other_rows // size == rows // size, 2, 3))
        return np.minimum(theirs, strength) >= need

    @staticmethod
    def kind_of(shadow: Shadow) -> str:
        """Return the kind of a race between threads."""
        return _KINDS[shadow.space.name]

    @staticmethod
    def repair_of(kind: str) -> str:
        """Return how to mend a race."""
        return _REPAIR[kind.partition("-")[0]]

    # --- names ------------------------------------------------------------------------------------------------------

    def party(self, item: int) -> tuple[Site | None, str]:
        """Return the instruction and the name of the agent of an entry."""
        row, column = divmod((item >> AGENT) & (AGENTS - 1), self.columns.count)
        cta = "({},{},{})".format(*self.machine.cta_of(row))
        name = self.columns.name(column)
        return self.sites.at(item & 0xFFFF), f"cta {cta} {name}" if column < self.columns.threads else f"{name} of cta {cta}"

    def _address(self, shadow: Shadow, index: int) -> str:
        space = shadow.space
        return f"{space.name} address {index + GLOBAL_BASE if space.name == 'global' else index % space.row:#x}"

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

    def _bound(self, x: Lanes) -> NDArray[np.uint64]:
        """Return, for each CTA of a rectangle, the least entry that its threads may not know of."""
        if self._bounds_at != self.clocks.now:
            since = self.clocks.floor if self.machine.cluster_size == 1 else self.clocks.birth
            self._bounds = (since + 1).astype(np.uint64) << np.uint64(TIME)
            if self.machine.cluster_size > 1:  # entries of a neighbour may be older than this CTA
                self._bounds[:] = 1
            self._bounds_at = self.clocks.now
        return self._bounds[x.c0 : x.c1]


_WORDS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}


def _equal(a: NDArray[Any], b: NDArray[Any]) -> Mask:
    """Say which items have the same bytes."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    return (a[..., None].view(np.uint8) == b[..., None].view(np.uint8)).all(axis=-1)


def _lanes_of(x: Lanes, where: tuple[NDArray[np.intp], ...], axis: int, chosen: Mask) -> Mask:
    out = np.zeros(x.shape, np.bool_)
    out[where[axis][chosen], where[axis + 1][chosen]] = True
    return out
