"""Reads of shared memory by products that no one has asked for yet: kept as they came, and noted in the shadow when needed.

A product reads thousands of cells for each of its four warps, and as a rule the next who looks at them is the copy that
refills the whole tile. That copy need not look at cells: it takes the entries of the products whose bytes lie within its own
(`inside`), and drops them (`drop`) if its thread knows of all. Whoever else asks for reads of the shadow settles the log
there first (`Shadow.reads_of`), and finds what noting each product at once would have left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.check.entries import Entries
    from warpsmith.simulator.check.lane_reads import LaneReads

    Cells = NDArray[np.int64]

__all__ = ["WARPS", "ProductLog"]

WARPS = 4
"""Of a warpgroup."""
_ROOM = 1 << 10
"""Products there is room for at first; and at most, `_MOST`, unless one instruction has more."""
_MOST = 1 << 15
_KINDS: Any = np.dtype([("low", np.int64), ("high", np.int64), ("first", np.int64), ("entries", np.uint64, WARPS)])


class _Note(NamedTuple):
    """What the products of one instruction have read of one operand: cells `[i, m]`, and their place in the log."""

    cells: Cells
    products: slice


@final
class ProductLog:
    """The reads of one shadow that are not in its cells yet, oldest first."""

    def __init__(self, lanes: LaneReads) -> None:
        self.lanes = lanes
        self._notes: dict[Any, _Note] = {}
        self._end = 0
        self._all: Any = np.zeros(_ROOM, _KINDS)
        """One for each product: the cells `low:high` that hold all it reads (none once dropped), the place of its first warp
        among the readers of a cell, which the others follow, and the entries of the four."""

    def __bool__(self) -> bool:
        return bool(self._notes)

    def add(self, key: Any, cells: Cells, low: Cells, high: Cells, first: Cells, entries: Entries) -> bool:
        """Add reads of cells `[i, m]`, in `low:high` each; False, and nothing added: there is no room, the log must be settled.

        Reads with equal keys are of the same cells by the same warps, so that the later ones replace the earlier.
        """
        old = self._notes.pop(key, None)
        if old is not None:
            self._all["high"][old.products] = 0
        start, self._end = self._end, self._end + len(cells)
        if self._end > len(self._all) and not self._grow(len(cells)):
            self._end = start
            return False
        some = slice(self._end - len(cells), self._end)
        new = self._all[some]
        new["low"], new["high"], new["first"], new["entries"] = low, high, first, entries
        self._notes[key] = _Note(cells, some)
        return True

    def meets(self, low: int, high: int) -> bool:
        """Say whether a product may have read one of the cells `low:high`."""
        return bool(self._notes) and bool(self._met(low, high).any())

    def inside(self, low: int, high: int) -> Entries | None:
        """Return the entries of products that read in cells `low:high`; None if one of them reads elsewhere, too."""
        met = self._all[: self._end][self._met(low, high)]
        if (met["low"] < low).any() or (met["high"] > high).any():
            return None
        return met["entries"].reshape(-1)

    def drop(self, low: int, high: int) -> None:
        """Forget the products that read in cells `low:high`: the bytes have been written since."""
        self._all["high"][: self._end][self._met(low, high)] = 0

    def settle(self, reads: Entries, low: int = 0, high: int = 1 << 62) -> None:
        """Note the reads of cells `low:high` in `reads` `[cells, readers]`, in the order in which they came.

        With them those of products that have a cell in common with one of these, and so on: they may overwrite each other.
        """
        met = self._together(low, high)
        if met.any():
            for note in self._notes.values():
                self._settle(note, met[note.products], reads)
        ends = self._all["high"][: self._end]
        ends[met] = 0
        if not ends.any():
            self._notes, self._end = {}, 0

    def _together(self, low: int, high: int) -> NDArray[np.bool_]:
        """Say which products read in cells `low:high`, or in those of others that do."""
        some = self._all[: self._end]
        while (met := self._met(low, high)).any():
            lowest, highest = min(low, int(some["low"][met].min())), max(high, int(some["high"][met].max()))
            if (lowest, highest) == (low, high):
                break
            low, high = lowest, highest
        return met

    def _settle(self, note: _Note, which: NDArray[np.bool_], reads: Entries) -> None:
        one = self._all[note.products]
        for place in sorted(set(one["first"][which].tolist())):
            mine = which & (one["first"] == place)
            cells, entries = note.cells[mine], one["entries"][mine][:, None]
            if self.lanes.used:
                at = cells[..., None] * reads.shape[1] + place + np.arange(WARPS)
                self.lanes.replaced(reads.reshape(-1), at, entries)
            reads[cells, place : place + WARPS] = entries

    def _met(self, low: int, high: int) -> NDArray[np.bool_]:
        some = self._all[: self._end]
        return (some["low"] < high) & (some["high"] > low)

    def _grow(self, more: int) -> bool:
        """Make room for `more` products where the dropped ones go; say whether there is."""
        live = {k: n for k, n in self._notes.items() if (self._all["high"][n.products] > 0).any()}
        kept = sum(len(n.cells) for n in live.values())
        room = len(self._all)
        while room < 2 * (kept + more):
            room *= 2
        if kept and room > _MOST:
            return False
        new, end = np.zeros(room, _KINDS), 0
        self._notes = {}
        for key, note in live.items():
            some = slice(end, end + len(note.cells))
            new[some] = self._all[note.products]
            self._notes[key], end = _Note(note.cells, some), some.stop
        self._all, self._end = new, end + more
        return True
