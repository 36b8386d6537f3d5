"""Strong writes that strong operations have found: they come before whatever follows those (PTX ISA 8.9.5, causality).

A write precedes in causality order what base causality orders behind a morally strong read that has found it, or an atomic
operation of its chain (8.9.2), whether or not anything was released: who reads a lock, or adds to a counter, may set it back by
a weak store. The clocks do not hold such knowledge, for it is of one word alone. It is looked up when a weak access meets a
strong write that the clocks do not order: does its thread know, by the clocks, of a later operation that has found it? These
are loads, and `atom`. A `red` has found what was there, too, but tells nobody: that it came later is luck, and in another run
it comes first. Of several stores to a word the one before the last counts as found with it: coherence order (8.9.6) leaves
nothing open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from warpsmith.simulator.check.entries import STRENGTH, agents_of, entry, times_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.check.entries import Entries
    from warpsmith.simulator.check.race_report import Accesses, Pairs
    from warpsmith.simulator.check.races import RaceWatch
    from warpsmith.simulator.check.shadow import Shadow

    Mask = NDArray[np.bool_]

__all__ = ["Observations"]

_KEPT = 256
"""Loads of a word that are kept; where there are more, all strong writes before the latest are taken for found."""


@final
class Observations:
    """Which loads have found strong writes that nothing else orders before them."""

    def __init__(self, races: RaceWatch) -> None:
        self.races = races
        self._loads: dict[tuple[str, int], dict[int, int]] = {}
        """(space, cell) -> agent -> entry of its last load that has found something new."""
        self._lost: dict[tuple[str, int], int] = {}
        """Cells of which loads were forgotten -> the time of the last of these."""

    def begin(self, start: int, stop: int) -> None:
        """Forget the loads of shared memory at flat indices."""
        shift = self.races.shared.shift
        for known in (self._loads, self._lost):
            for key in [k for k in known if k[0] == "shared" and start <= k[1] << shift < stop]:
                del known[key]

    def note(self, accesses: Accesses, pairs: Pairs, found: Mask) -> None:
        """Note loads that have `found` strong writes of which their threads do not know."""
        cells = _cells_of(accesses, pairs)
        space, now, count = accesses.shadow.space.name, self.races.clocks.now, self.races.columns.count
        agents = pairs.rows * count + pairs.threads
        writes = times_of(pairs.entries)
        for i in np.flatnonzero(found).tolist():
            key, agent = (space, int(cells[i])), int(agents[i])
            loads = self._loads.setdefault(key, {})
            if agent in loads and loads[agent] >> 39 > writes[i]:
                continue
            if len(loads) >= _KEPT:
                self._lost[key] = now
                loads.clear()
            loads[agent] = int(entry(now, agent, accesses.site.strength, accesses.site.number))

    def found(self, accesses: Accesses, pairs: Pairs, doubtful: Mask) -> Mask:
        """Say in which of the `doubtful` pairs a thread knows of an operation that has found the strong write of the entry."""
        out = np.zeros(doubtful.shape, np.bool_)
        cells = _cells_of(accesses, pairs)
        for cell in np.unique(cells[doubtful]).tolist():
            later, lost = self._operations(accesses.shadow, cell)
            mine = np.flatnonzero(doubtful & (cells == cell))
            out[mine] = times_of(pairs.entries[mine]) < lost
            if later.size:
                out[mine] |= self._known(pairs, mine, later)
        return out

    def _operations(self, shadow: Shadow, cell: int) -> tuple[Entries, int]:
        """Return the operations on a cell that may have found its earlier writes, and until which time some are forgotten."""
        races, key = self.races, (shadow.space.name, cell)
        here = races.shadow_of(shadow.space)
        assert here is not None
        entries = np.array([*self._loads.get(key, {}).values(), int(here.writes[cell])], np.uint64)
        if here is races.shared and races.strong is not None:
            entries = np.concatenate([entries, races.strong.of(slice(cell, cell + 1))])
        finds = races.sites.finds[(entries & np.uint64(0xFFFF)).astype(np.int64)]
        return entries[finds & (agents_of(entries) % races.columns.count < races.columns.threads)], self._lost.get(key, 0)

    def _known(self, pairs: Pairs, mine: NDArray[np.intp], later: Entries) -> Mask:
        """Say of each of some pairs whether its thread knows of an operation behind its entry."""
        races, count = self.races, self.races.columns.count
        times, agents = times_of(later), agents_of(later)
        rows, threads = np.divmod(agents, count)
        entries = pairs.entries[mine][:, None]
        at, who = times_of(entries), agents_of(entries)
        behind = (times > at) | ((times == at) & (agents > who))  # lanes of one instruction go in turn
        strength = ((later >> np.uint64(STRENGTH)) & np.uint64(3)).astype(np.int64)
        behind &= races.morally_strong(rows, who // count, entries, strength)
        shape = behind.shape
        mine_rows, mine_threads = (np.repeat(a[mine], later.size) for a in (pairs.rows, pairs.threads))
        their_rows, columns, moments = (np.broadcast_to(a, shape).reshape(-1) for a in (rows, threads, times))
        known = races.clocks.ordered(mine_rows, mine_threads, their_rows, columns, moments).reshape(shape)
        return (known & behind).any(axis=1)


def _cells_of(accesses: Accesses, pairs: Pairs) -> NDArray[np.int64]:
    """Return the cell of each pair."""
    return accesses.cells[pairs.where[: accesses.cells.ndim]]
