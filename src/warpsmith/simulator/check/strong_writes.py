"""Strong writes to shared memory, of every lane: they do not race with each other, so that a cell may have several last ones.

A weak access must know of each of them, not only of the one that came last (atomic operations of a warp on one counter, of
which a lane that has not waited for all reads the sum). Kept as reads are (`check.lane_reads`), for programs that have any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.check.entries import entry
from warpsmith.simulator.check.read_groups import grouped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.check.entries import Entries
    from warpsmith.simulator.check.race_report import Accesses
    from warpsmith.simulator.check.races import RaceWatch
    from warpsmith.simulator.check.shadow import Shadow
    from warpsmith.simulator.lanes import Lanes

    Mask = NDArray[np.bool_]

__all__ = ["StrongWrites"]


@final
class StrongWrites:
    """The `reads` of a shadow with the cells of shared memory's, which hold strong writes."""

    def __init__(self, races: RaceWatch, shadow: Shadow) -> None:
        self.races, self.shadow = races, shadow

    @property
    def used(self) -> bool:
        """Whether there has been any."""
        return self.shadow.used

    def judge(self, x: Lanes, a: Accesses, chosen: Mask | None, **more: Any) -> None:
        """Judge accesses (`chosen` of the shape of their cells; None: all active) by the strong writes to their cells."""
        if not self.shadow.used:
            return
        deep = (None,) * (a.cells.ndim - a.at.ndim)
        marks = self.shadow.reads.take(a.cells, axis=0, mode="clip")
        old = marks >= self.races.bound(x)[(..., None, *deep, None)]
        if chosen is not None:
            old &= chosen[..., None]
        if old.any():
            self.races.judge(x, a._replace(shadow=self.shadow), old, marks, **more)

    def note(self, x: Lanes, a: Accesses, lanes: Mask) -> None:
        """Note the strong writes of lanes `[C, T]`."""
        races, shadow = self.races, self.shadow
        shadow.used = True
        assert shadow.lanes is not None
        deep = (None,) * (a.cells.ndim - a.at.ndim)
        at, reads = races.places_of(x, shadow, a.at, a.cells), shadow.reads.reshape(-1)
        entries = entry(races.clocks.now, races.agents(x), a.site.strength, a.site.number)[(..., *deep)]
        if shadow.lanes.note(reads, at, entries, lanes[(..., *deep)], races.bound(x)[(..., None, *deep)]):
            return
        before, x.mask = x.mask, lanes
        groups = grouped(x, at, shadow.readers, deep=bool(deep), strong=True)
        x.mask = before
        assert groups is not None
        entries = entry(races.clocks.now, groups.agents(races.columns.count, x), a.site.strength, a.site.number)
        shadow.lanes.note_groups(reads, groups, entries, lambda: races.bound(x)[groups.rows])

    def of(self, cells: Any) -> Entries:
        """Return the distinct entries of cells (an index) but 0."""
        if not self.shadow.used:
            return np.zeros(0, np.uint64)
        found = [self.shadow.reads[cells].reshape(-1)]
        if (more := self.shadow.many(cells)) is not None:
            found.append(more.reshape(-1))
        some = np.unique(np.concatenate(found))
        return some[some != 0]
