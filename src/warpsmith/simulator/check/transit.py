"""Operations in flight as parties of a race: copies, products, asynchronous stores (PTX ISA 8.9.1.1, 8.6).

An operation is judged when it is issued, by what its issuing thread knows: of the bytes it reads, who wrote them; of those
it writes, who wrote or read them. Its own reads and writes are entries of a column that counts what can be waited for:
a phase of an mbarrier, or a group. Whoever touches the bytes later must know that number. Whether the copy happened to be
complete by then does not matter, so that the answer is the same under every schedule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.check.clocks import KNOWN, Message
from warpsmith.simulator.check.columns import ORDINAL
from warpsmith.simulator.check.entries import STRENGTH, agents_of, entry, times_of
from warpsmith.simulator.check.race_report import APART, KINDS, REPAIR, TOGETHER, WIDEN, severity_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from warpsmith.base.findings import Severity
    from warpsmith.simulator.access import Located
    from warpsmith.simulator.asynchronous import Extent
    from warpsmith.simulator.check.entries import Entries
    from warpsmith.simulator.check.races import RaceWatch
    from warpsmith.simulator.check.shadow import Shadow
    from warpsmith.simulator.copy_groups import CopyGroups
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.mbarrier import MBarrier
    from warpsmith.simulator.memory import Space

    Mask = NDArray[np.bool_]
    Cells = NDArray[np.int64]

__all__ = ["Issuer", "Mark", "Transit"]

_READ, _WRITE = "async-read-before-complete", "async-overwrite"
_MEND = {
    _READ: "Wait for the operation that writes the bytes (its mbarrier phase, or its group) in every thread that uses them.",
    _WRITE: "Wait until the operation in flight has finished with the bytes before they are written again.",
    "missing-proxy-fence": "Put fence.proxy.async behind the stores, before the barrier that lets the operation begin.",
}

_SITES = np.uint64(STRENGTH)
_ALIKE = np.uint64(1 << STRENGTH)
"""Entries that differ by less are of one agent, at one time."""


class Issuer(NamedTuple):
    """Who issues an operation: lanes `[C, T]` of the rectangle, their row, and threads that must know of the bytes."""

    lanes: Mask
    row: int
    threads: tuple[int, ...]
    proxied: bool = True
    """It goes through the asynchronous proxy."""
    together: bool = False
    """The warps of the threads, a warpgroup, issue it together."""


class Mark(NamedTuple):
    """How an operation stands in the shadow: its agent, and the number of the phase or group that ends it."""

    agent: int
    ordinal: int
    warp: int = -1
    """It reads as a part of that warp, in its place of the shadow."""


@final
class Transit:
    """Judges and notes the accesses of operations in flight."""

    def __init__(self, races: RaceWatch) -> None:
        self.races, self.clocks, self.columns = races, races.clocks, races.columns
        self._stored = 0
        """Asynchronous release stores so far."""

    # --- what is waited for -----------------------------------------------------------------------------------------

    def of_barrier(self, barrier: MBarrier) -> Mark:
        """Return the mark of an operation that will complete on a barrier's phase in progress."""
        return Mark(barrier.row * self.columns.count + barrier.column, ORDINAL + barrier.phase + 1)

    def of_group(self, kind: str, groups: CopyGroups, row: int, thread: int, *, warp: int = -1) -> Mark:
        """Return the mark of an operation that joins the open group of a thread."""
        column = self.columns.group(kind, thread // 32)
        return Mark(row * self.columns.count + column, ORDINAL + int(groups.open[row, thread]) + 1, warp)

    def waited(self, x: Lanes, kinds: Sequence[str], groups: CopyGroups, keep: int | None) -> None:
        """Let the active lanes know their groups but the latest `keep` (None: every operation, committed or not)."""
        active = x.active()
        window = (slice(x.c0, x.c1), slice(x.t0, x.t1))
        limits = x.warps(np.where(active, groups.open[window] + (1 if keep is None else -keep), 0)).max(axis=-1)
        warps = x.warps(active)
        for kind in kinds:
            some = np.argwhere(warps.any(axis=-1) & (limits > 0))
            full = np.asarray(warps.all(axis=-1))[some[:, 0], some[:, 1]]
            rows, at = some[:, 0] + x.c0, some[:, 1] + x.t0 // 32
            columns = self.columns.group(kind, 0) + at
            times = ORDINAL + limits[some[:, 0], some[:, 1]].astype(np.int64)
            self.clocks.learn(rows[full], at[full], columns[full], times[full])
            for i in np.flatnonzero(~full).tolist():
                mine = np.zeros(self.clocks.threads, np.bool_)
                mine[32 * at[i] : 32 * at[i] + 32] = warps[some[i, 0], some[i, 1]]
                row = int(rows[i])
                self.clocks.acquire(row, mine, self.message(row, [(int(columns[i]), int(times[i]))]))

    def of_store(self, x: Lanes, row: int, thread: int) -> Mark:
        """Return the mark of an asynchronous release store to global memory that a thread issues now."""
        column = self.columns.store(x.op, thread // 32)
        self._stored += 1
        return Mark(row * self.columns.count + column, ORDINAL + self._stored)

    def message(self, row: int, known: Sequence[tuple[int, int]]) -> Message:
        """Return a message that tells of columns of a row alone."""
        vector, plain = self.clocks.nothing(), self.clocks.proxied
        for column, time in known:
            vector[:plain, column] = np.maximum(vector[:plain, column], time)
        return Message({row: vector})

    # --- copies of the bulk kind, products ----------------------------------------------------------------------------

    def reads(self, x: Lanes, who: Issuer, space: Space, cells: Cells | slice, marks: Sequence[Mark]) -> None:
        """Judge and note bytes that an operation reads."""
        shadow = self.races.shadow_of(space)
        if shadow is None:
            return
        shadow.used = True
        self._judge(x, who, shadow, _distinct(shadow.writes[cells]), "reads", written=True)
        if self.races.strong is not None and shadow is self.races.shared:
            self._judge(x, who, shadow, self.races.strong.of(cells), "reads", written=True)
        site = self.races.sites.of(x.op)
        noted = np.array([entry(m.ordinal, m.agent, site.strength, site.number) for m in marks], np.uint64)
        first = 0
        if shadow is self.races.shared:
            first = marks[0].warp % self.races.places if marks[0].warp >= 0 else shadow.readers - 1
            if marks[0].warp >= 0 and shadow.lanes is not None:
                flat = np.atleast_1d(np.asarray(cells))[:, None] * shadow.readers + first + np.arange(len(marks))
                shadow.lanes.replaced(shadow.reads.reshape(-1), flat, noted)
        reads = shadow.settled_reads if marks[0].warp < 0 else shadow.reads  # products have no place of an asynchronous reader
        reads[cells, first : first + len(marks)] = noted  # marks of several warps are of consecutive ones

    def writes(
        self, x: Lanes, who: Issuer, space: Space, cells: Cells | slice, mark: Mark, *, strength: int = 0
    ) -> None:  # fmt: skip
        """Judge and note bytes that an operation writes."""
        shadow = self.races.shadow_of(space)
        if shadow is None:
            return
        shadow.used = True
        before = _distinct(shadow.writes[cells])
        site = self.races.sites.of(x.op)
        if space is self.races.machine.global_:  # two copies of the same bytes are no fault, and values are not known yet
            before = before[agents_of(before) % self.columns.count < self.columns.threads]
        self._judge(x, who, shadow, before, "writes", written=True, strength=strength)
        if self.races.strong is not None and shadow is self.races.shared:
            self._judge(x, who, shadow, self.races.strong.of(cells), "writes", written=True, strength=strength)
            self.races.strong.shadow.clear_reads(cells)
        if not self._only_products(who, shadow, cells):
            reads = [_columns(shadow.reads_at(cells))]
            if (more := shadow.many(cells)) is not None:
                reads.append(_distinct(more))
            self._judge(x, who, shadow, np.concatenate(reads), "writes", written=False, strength=strength)
            shadow.clear_reads(cells)
        shadow.writes[cells] = entry(mark.ordinal, mark.agent, strength, site.number)

    def _only_products(self, who: Issuer, shadow: Shadow, cells: Cells | slice) -> bool:
        """Forget who has read cells about to be written, if nobody has but products of which the issuer knows."""
        log = shadow.products
        if log is None or not isinstance(cells, slice) or shadow.settled_reads[cells].any():
            return False
        entries = log.inside(cells.start, cells.stop)
        if entries is None or not self._known(who, entries):
            return False
        log.drop(cells.start, cells.stop)
        return True

    def _known(self, who: Issuer, entries: Entries) -> bool:
        """Say whether the threads that must know of entries do."""
        if entries.size == 0:
            return True
        rows, columns = np.divmod(agents_of(entries), self.columns.count)
        mine = np.full(entries.size, who.row)
        return all(
            self.clocks.ordered(mine, np.full(entries.size, thread), rows, columns, times_of(entries)).all()
            for thread in {int(self.clocks.base[who.row, t]): t for t in who.threads}.values()
        )

    def copies(self, x: Lanes, at: Located, lanes: Mask, n: int, groups: CopyGroups) -> None:
        """Judge and note the bytes that `cp.async` of lanes writes: each lane for the group of its warp."""
        window = (slice(x.c0, x.c1), slice(x.t0, x.t1))
        columns = self.columns.group("cp.async", 0) + (np.arange(x.t0, x.t1, dtype=np.int64) >> 5)
        agents = np.arange(x.c0, x.c1, dtype=np.int64)[:, None] * self.columns.count + columns
        times = ORDINAL + groups.open[window].astype(np.int64) + 1
        site = self.races.sites.of(x.op)
        self.races.store_as(x, at, n, lanes, entry(0, agents, 0, site.number) | times.astype(np.uint64) << np.uint64(39))

    def rows(self, space: Space, starts: NDArray[np.int64], length: int) -> Cells:
        """Return the cells of rows of bytes of a followed space."""
        shadow = self.races.shadow_of(space)
        assert shadow is not None
        bits = int(np.bitwise_or.reduce(starts, initial=0)) | length | 16
        n = bits & -bits
        return shadow.cells((starts[:, None] + np.arange(0, length, n)).reshape(-1), n).reshape(-1)

    def extent(self, e: Extent) -> slice:
        """Return the cells of an extent of a followed space."""
        shadow = self.races.shadow_of(e.space)
        assert shadow is not None
        return shadow.span(e.start, e.stop)

    # --- judging ----------------------------------------------------------------------------------------------------

    def _judge(
        self, x: Lanes, who: Issuer, shadow: Shadow, entries: Entries, verb: str, *, written: bool, strength: int = 0
    ) -> None:  # fmt: skip
        """Judge the distinct entries of bytes an operation touches: `written`, else read, by whoever they name."""
        some = entries
        if some.size == 0:
            return
        other_rows, columns = np.divmod(agents_of(some), self.columns.count)
        times = times_of(some)
        generic = columns < self.columns.threads
        chosen = who.threads
        if len(chosen) > 1 and not generic.any():  # those that know the same answer the same
            chosen = tuple({int(self.clocks.base[who.row, t]): t for t in chosen}.values())
        for thread in chosen:
            rows, threads = np.full(some.size, who.row), np.full(some.size, thread)
            known = self.clocks.ordered(rows, threads, other_rows, columns, times, KNOWN)
            if strength:
                known |= self.races.morally_strong(rows, other_rows, some, strength)
            if not known.all():
                apart = self.races.executed(rows, threads, some)
                fenced = apart & ~generic & (verb != "reads")  # writes that have completed before are done
                if (plane := self.races.proxies.behind) is not None and written and who.proxied:
                    fenced |= apart & self.clocks.ordered(rows, threads, other_rows, columns, times, plane)
                mates = self._fenced_by_mates(who, other_rows, columns, times) & ~apart
                i = int(np.where(known, 3, 2 * mates + apart + fenced).argmin())
                how = {"written": written, "apart": bool(apart[i]), "fenced": bool(fenced[i])}
                self._report(x, who, shadow, some[i], verb, together=bool(mates[i]), **how)
            if not written or not who.proxied or not generic.any():
                continue
            fenced = ~generic
            if (plane := self.races.proxies.of[shadow.space.name]) is not None:
                fenced |= self.clocks.ordered(rows, threads, other_rows, columns, times, plane)
            if not (missing := known & ~fenced).any():
                continue
            other, name = self.races.party(int(some[missing][0]))
            text = (
                f"`{x.op.text}` {verb} {shadow.space.name} memory through the asynchronous proxy, which {name} has written "
                f"through the generic one, and no fence.proxy.async of {shadow.space.name} memory stands between"
            )
            self._say(x, who, "missing-proxy-fence", text, other, name)

    def _fenced_by_mates(
        self, who: Issuer, rows: NDArray[np.int64], columns: NDArray[np.int64], times: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Say which accesses are of a thread of the issuing warpgroup that has fenced them towards the asynchronous proxy."""
        out = np.zeros(rows.size, np.bool_)
        plane = self.races.proxies.of["shared"]
        if not who.together or plane is None:
            return out
        for i in np.flatnonzero((rows == who.row) & (columns // 128 == who.threads[0] // 128)).tolist():
            out[i] = self.clocks.fenced[plane - self.clocks.proxied, who.row, columns[i]] >= times[i]
        return out

    def _report(
        self, x: Lanes, who: Issuer, shadow: Shadow, item: np.uint64, verb: str, *, written: bool, apart: bool, fenced: bool,
        together: bool = False,
    ) -> None:  # fmt: skip
        other, name = self.races.party(int(item))
        asynchronous = int(agents_of(np.array([item]))[0]) % self.columns.count >= self.columns.threads
        name_of = shadow.space.name
        if asynchronous:
            kind = _READ if verb == "reads" else _WRITE
            did = "written" if written else "read"
            by = other.short if other is not None else name
            text = f"`{x.op.text}` {verb} {name_of} memory before its thread can know that {by} has {did} it"
        else:
            kind = KINDS[shadow.space.name]
            did = "has written" if written else "has read"
            nothing = TOGETHER if together else "" if apart else "; nothing orders the two"
            text = f"`{x.op.text}` {verb} {name_of} memory, which {name} {did}{nothing}"
        severity = severity_of(name_of, overwrites=not written, apart=apart or together, fenced=fenced or together)
        self._say(x, who, kind, text + APART * apart, other, name, severity)

    def _say(
        self, x: Lanes, who: Issuer, kind: str, text: str, other: object, name: str, severity: Severity = "error"
    ) -> None:  # fmt: skip
        operation = getattr(other, "operation", None)
        related = [Related(f"`{operation.text}` by {name}", operation.place)] if operation is not None else []
        repair = WIDEN if text.endswith(APART) else _MEND.get(kind) or REPAIR[kind.partition("-")[0]]
        x.finding(kind, text, lanes=who.lanes, severity=severity, related=related, repair=repair)


def _distinct(entries: Entries) -> Entries:
    """Return the distinct entries but 0."""
    flat = entries.reshape(-1)
    if flat.size == 0:
        return flat
    if (flat == flat[0]).all():
        return flat[:1] if flat[0] else flat[:0]
    some = np.unique(flat)
    return some[some != 0]


def _columns(entries: Entries) -> Entries:
    """Return of each column `[n, columns]` entries but 0 that stand for all: of those that differ by instruction alone one."""
    if len(entries) == 0:
        return entries.reshape(-1)
    first = entries[0]
    alike = ((entries ^ first) < _ALIKE).all(axis=0)
    some = [first[alike & (first != 0)]]
    for k in np.flatnonzero(~alike).tolist():
        _, at = np.unique(entries[:, k] >> _SITES, return_index=True)
        some.append(entries[at, k])
    found = np.concatenate(some)
    return found[found != 0]
