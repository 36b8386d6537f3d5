"""Loads as parties of a race: judged by last writes, and noted for the writes that follow.

Most loads read what a barrier of their CTA has ordered, at addresses that come again. Those are looked up by groups of lanes
(`check.read_groups`) and vouched for as a whole; lanes are judged one by one where that fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from warpsmith.simulator.check.entries import entry
from warpsmith.simulator.check.race_report import Accesses
from warpsmith.simulator.check.read_groups import GroupedLoads, grouped
from warpsmith.simulator.check.shadow import note_last_two

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.check.races import RaceWatch
    from warpsmith.simulator.check.read_groups import ReadGroups
    from warpsmith.simulator.check.shadow import Shadow
    from warpsmith.simulator.check.sites import Site
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.memory import Space
    from warpsmith.simulator.program import Operation

    Mask = NDArray[np.bool_]
    Ints = NDArray[np.int64]

__all__ = ["LEAST", "Loads", "Piece"]

LEAST = np.array([1], np.uint64)
"""The least entry that is one."""


class Piece(NamedTuple):
    """What each lane of a warp reads of a matrix of eight rows: n bytes of row `rows[lane]` from byte `offsets[lane]` on."""

    rows: NDArray[np.intp]
    offsets: NDArray[np.intp]
    n: int


@final
class Loads:
    """Judges and notes the loads of a launch."""

    def __init__(self, races: RaceWatch) -> None:
        self.races, self.machine, self.clocks = races, races.machine, races.clocks
        self.grouped = GroupedLoads()

    def load(self, x: Lanes, space: Space, index: Ints, n: int, operations: list[Operation] | None = None) -> None:
        """Note n-byte loads (at most 16) at flat indices `[…, C, T]`, of several `operations` `[k, C, T]`."""
        races = self.races
        shadow = races.shadow_of(space)
        if shadow is None:
            return
        shadow.used = True
        site = races.sites.of(x.op)
        groups, again = self.grouped.find(x, index, shadow.cell) if self._may_group(shadow) else (None, False)
        if groups is None or not self._vouched(x, groups):
            a = Accesses(shadow, site, index, shadow.cells(index, n, reading=True), "reads")
            self._judge(x, a, operations)
            if groups is None:
                self._note_lanes(x, a, operations, group=again)
        if groups is not None:
            self._note_groups(x, groups, site, operations)
        if site.strength and races.through_memory and self.machine.order is not None:
            self.machine.order.loaded(x, space, index, x.active(), site)

    def matrices(self, x: Lanes, space: Space, index: Ints, pieces: list[Piece]) -> None:
        """Note that all warps read matrices of which each has eight rows of 16 bytes at flat indices `[matrix, C, 8·W]`."""
        races = self.races
        shadow = races.shadow_of(space)
        if shadow is None:
            return
        shadow.used = True
        site = races.sites.of(x.op)
        groups, each = None, None
        if self._may_group(shadow):
            groups, _ = self.grouped.find(x, index, shadow.cell)
            if groups is None:
                each = _of_lanes(x, index, pieces)
                if (groups := self._group_all(x, shadow, each, pieces[0].n)) is not None:
                    self.grouped.keep(x, index, groups)
            if groups is not None and self._vouched(x, groups):
                self._note_groups(x, groups, site, None)
                return
        for at in each or _of_lanes(x, index, pieces):
            a = Accesses(shadow, site, at, shadow.cells(at, pieces[0].n, reading=True), "reads")
            self._judge(x, a, None)
            if groups is None:
                self._note_lanes(x, a, None, group=False)
        if groups is not None:
            self._note_groups(x, groups, site, None)

    def _may_group(self, shadow: Shadow) -> bool:
        races = self.races
        watched = races.strong is not None and races.strong.used
        return shadow is races.shared and not watched and races.places == self.machine.threads // 32

    # --- judging ----------------------------------------------------------------------------------------------------

    def _judge(self, x: Lanes, a: Accesses, operations: list[Operation] | None) -> None:
        """Judge loads lane by lane."""
        races, shadow = self.races, a.shadow
        written = shadow.writes.take(a.cells, mode="clip")
        if (suspicious := written >= self._bound(x, a)).any():
            races.judge(x, a, suspicious, written, operations=operations)
        if races.strong is not None and shadow is races.shared:
            races.strong.judge(x, a, None, operations=operations)

    def _vouched(self, x: Lanes, groups: ReadGroups) -> bool:
        """Say whether a barrier of their CTA has ordered before all lanes whatever they read."""
        races = self.races
        written = races.shared.writes.take(groups.cells, mode="clip")
        bound = races.bound(x)
        low: Any = bound[0] if bound.size == 1 or (bound == bound[0]).all() else bound[groups.rows]
        suspicious = written >= low
        if not suspicious.any():
            return True
        suspicious &= races.untold(written, None if self.machine.cluster_size == 1 else groups.rows + x.c0)
        return not suspicious.any()

    def _bound(self, x: Lanes, a: Accesses) -> Any:
        if a.shadow is not self.races.shared:
            return LEAST
        return self.races.bound(x)[(..., None, *(None,) * (a.cells.ndim - a.at.ndim))]

    # --- noting -----------------------------------------------------------------------------------------------------

    def _note_lanes(self, x: Lanes, a: Accesses, operations: list[Operation] | None, *, group: bool) -> None:
        """Note loads lane by lane; with `group` their groups are kept for the next time."""
        races, shadow, site, cells = self.races, a.shadow, a.site, a.cells
        deep = (None,) * (cells.ndim - a.at.ndim)
        entries = entry(self.clocks.now, races.agents(x), site.strength, site.number)
        if operations is not None:
            entries = (entries.astype(np.int64) + self._numbers(site, operations)[:, None, None]).astype(np.uint64)
        entries = entries[(..., *deep)]
        if shadow.lanes is None:
            note_last_two(shadow, cells, entries, races.columns.count, ctas=x.c1 - x.c0)
            return
        at, mask = races.places_of(x, shadow, a.at, cells), None if x.mask is None else x.mask[(..., *deep)]
        if not group and shadow.lanes.note(shadow.reads_of(cells).reshape(-1), at, entries, mask, self._bound(x, a)):
            return
        groups = grouped(x, at, shadow.readers, deep=bool(deep), strong=site.strength > 0)
        if groups is not None:
            self.grouped.keep(x, a.at, groups)
            self._note_groups(x, groups, site, operations)
            return
        for i, op in enumerate(operations or ()):  # several read one place: one after the other
            one = grouped(x, at[i], shadow.readers, deep=bool(deep), strong=site.strength > 0)
            assert one is not None
            self._note_groups(x, one, races.sites.of(op), None)

    def _group_all(self, x: Lanes, shadow: Shadow, each: list[Ints], n: int) -> ReadGroups | None:
        """Group the reads of several matrices; None where two of them have a place in common."""
        index = np.stack(each)
        cells = shadow.cells(index, n, reading=True)
        at = self.races.places_of(x, shadow, index, cells)
        return grouped(x, at, shadow.readers, deep=cells.ndim > index.ndim, strong=False)

    def _note_groups(self, x: Lanes, groups: ReadGroups, site: Site, operations: list[Operation] | None) -> None:
        races = self.races
        entries = entry(self.clocks.now, groups.agents(races.columns.count, x), site.strength, site.number)
        if operations is not None:
            entries += self._numbers(site, operations).astype(np.uint64)[groups.numbers]
        assert races.shared.lanes is not None
        reads = races.shared.reads_of(groups.cells).reshape(-1)
        races.shared.lanes.note_groups(reads, groups, entries, lambda: races.bound(x)[groups.rows])

    def _numbers(self, site: Site, operations: list[Operation]) -> Ints:
        """Return how far the number of each operation's site is from that of the first."""
        return np.array([self.races.sites.of(op).number - site.number for op in operations], np.int64)


def _of_lanes(x: Lanes, index: Ints, pieces: list[Piece]) -> list[Ints]:
    """Return the flat indices `[C, T]` that lanes read, matrix by matrix and piece by piece."""
    rows = index.reshape(*index.shape[:2], -1, 8)
    return [x.threads_of(matrix[..., piece.rows] + piece.offsets) for matrix in rows for piece in pieces]
