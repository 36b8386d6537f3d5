"""The reads of each lane, kept where several lanes of a warp read one cell of shared memory.

A place, the entry of a cell for one warp, tells of the lane that read last: enough as long as that lane is the only one, or
those that read with it: the place keeps their mask. When others read the cell while the first may still matter (no barrier of
the CTA since), the place gets a *vector*: an entry for each lane, and one for the products of the warp. It keeps its vector,
so that steady traffic costs one scatter, or two. This is FastTrack's "epoch until shared, then a vector" (Flanagan and Freund,
2009), by warps.

An entry of a vector stands for the lanes of its *mask*: lanes that read together are noted once, in the slot of the lowest.
Slots may overlap: each is a read that took place. A slot is only overwritten by one that stands for its lanes, too; else
its vector is spread to single lanes first.

A later read of a lane makes its earlier one redundant, for whoever knows of the later one knows of both; not so where one
of the two is strong, since a strong write may race with the weak one alone. Programs with strong reads have two slots for
each lane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.check.entries import AGENT, STRENGTH, agents_of
from warpsmith.simulator.host_memory import fits

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from warpsmith.simulator.check.entries import Entries
    from warpsmith.simulator.check.read_groups import ReadGroups

    Places = NDArray[np.int64]
    Mask = NDArray[np.bool_]

__all__ = ["LaneReads"]

_SAME = np.uint64(((1 << 23) - 1) << STRENGTH)
"""Agent and strength of an entry."""
_STRONG = np.uint64(3 << STRENGTH)
_LANES = np.arange(32)
_BITS = (1 << _LANES).astype(np.uint32)
_STEPS = ((_LANES[None, :] - _LANES[:, None]) << AGENT).astype(np.uint64)
"""What turns the entry of one lane `[32, 1]` into that of another."""
_TURNS = 8
"""Times that groups may find others at their places, who need them no longer, before the places get vectors."""
_ROOM = 1 << 19
"""Vectors at first: memory that is not touched costs nothing, and moving them does."""


@final
class LaneReads:
    """Vectors of entries `[width, n]`, and which one each place has: `of`, flat as `Shadow.reads`; 0 is none."""

    def __init__(self, threads: int, columns: int, full: Callable[[], None], *, strong: bool) -> None:
        self.threads, self.columns = threads, columns
        self.width = 65 if strong else 33
        self.of: NDArray[np.int32] | None = None
        self.together: NDArray[np.uint32] | None = None
        """Which lanes the entry of each place without a vector stands for, flat as `of`; 0: the one it names."""
        self.version = 0
        """Changes whenever `of` does."""
        self.changes = 0
        """Changes whenever a mask does, or whom the entry of a place names."""
        self.used = False
        """Some lane has read something."""
        self._full = full
        """Called when there is no memory for more vectors (of some cells the last lane alone is known), or reads are lost."""
        self._count = 1
        self._vectors: Entries = np.zeros((self.width, 1), np.uint64)
        self._masks = np.zeros((self.width, 1), np.uint32)

    # --- noting -----------------------------------------------------------------------------------------------------

    def note(self, reads: Entries, at: Places, entries: Entries, lanes: Mask | None, bound: Entries) -> bool:
        """Note reads `entries` by `lanes` (None: all) at places `at` of `reads`; entries below `bound` are past.

        All arrays are `[…]` of one shape, or broadcast to that of `at`. Return False where lanes share a place: then the
        reads must be noted by groups.
        """
        self.used = True
        if any(a is not None and a.take(at, mode="clip").any() for a in (self.of, self.together)):
            return False
        before = reads.take(at, mode="clip")
        alone = ((before ^ entries) & _SAME) == 0
        if lanes is not None:
            alone |= ~lanes
        if not alone.all():
            if not (alone | (before < bound)).all():
                return False
            self.changes += 1
        reads[at] = entries
        alone = ((reads.take(at, mode="clip") ^ entries) & _SAME) == 0
        if lanes is not None:
            alone |= ~lanes
        return bool(alone.all())

    def note_groups(self, reads: Entries, groups: ReadGroups, entries: Entries, bound: Callable[[], Entries]) -> None:
        """Note the reads of groups of lanes, whose `entries` `[m]` name the lowest lane of each, as `note` does."""
        self.used = True
        if groups.settled == (self.version, self.changes):  # every place and slot has the mask it will have
            reads[groups.at] = entries
            if groups.which.size:
                self._vectors.reshape(-1)[groups.vector_at] = entries if groups.chosen is None else entries[groups.chosen]
            return
        self._follow(groups)
        if groups.lacking is not None:
            self._take(reads, groups, entries, bound())
        reads[groups.at] = entries
        if groups.which.size:
            chosen = groups.chosen
            slots = groups.slots if chosen is None else groups.slots[chosen]
            masks = groups.masks if chosen is None else groups.masks[chosen]
            if self.width > 33 and groups.strong:
                slots = slots + 32
            self._put(groups.which, slots, entries if chosen is None else entries[chosen], masks)
            groups.vector_at = slots * self._masks.shape[1] + groups.which
        groups.settled = self.version, self.changes

    def _take(self, reads: Entries, groups: ReadGroups, entries: Entries, bound: Any) -> None:
        """Prepare places without vectors for the entries of groups; those that others still need get vectors."""
        if self.together is None and groups.several.any():
            if not fits(4 * reads.size):
                self._full()
                return
            self.together = np.zeros(reads.size, np.uint32)
        before = reads.take(groups.at, mode="clip")
        lanes = groups.slots + agents_of(before) - agents_of(entries)  # outside of 0 to 31: of another warp, or no lane's
        foreign = (lanes & ~31 != 0) | (((before ^ entries) & _STRONG) != 0)
        held = _BITS[lanes & 31]
        if self.together is not None:
            held |= self.together.take(groups.at, mode="clip")
        foreign |= (held & ~groups.masks) != 0
        groups.turns += 1
        other = foreign & (before != 0) if groups.turns > _TURNS else foreign & (before >= bound)
        if other.any():
            self._share(reads.size, groups.at[other], before[other])
            self._follow(groups)
        self.changes += bool((((before ^ entries) & _SAME) != 0).any())
        if self.together is not None:
            at = groups.at if self.of is None or groups.lacking is None else groups.at[groups.lacking]
            wanted = np.where(groups.several, groups.masks, 0)
            wanted = wanted if at is groups.at else wanted[groups.lacking]
            if not np.array_equal(self.together.take(at), wanted):
                self.together[at] = wanted
                self.changes += 1

    def replaced(self, reads: Entries, at: Places, entries: Entries) -> None:
        """Note that products read at places `at`, before their entries replace those in `reads`."""
        if not self.used:
            return
        before = reads.take(at, mode="clip")
        other = (before != 0) & (((before ^ entries) & _SAME) != 0)
        if other.any():
            self._share(reads.size, at[other], before[other])
        if self.of is None:
            return
        which = self.of.take(at, mode="clip")
        if (chosen := which > 0).any():
            self._vectors[-1, which[chosen]] = np.broadcast_to(entries, at.shape)[chosen]

    def _follow(self, groups: ReadGroups) -> None:
        """Look up which vectors the places of groups have, if that may have changed."""
        if groups.version == self.version:
            return
        groups.version = self.version
        if self.of is None:
            groups.lacking = groups.several | True
            return
        which = self.of.take(groups.at)
        have = which > 0
        groups.lacking = None if have.all() else ~have
        groups.chosen = None if groups.lacking is None else np.flatnonzero(have)
        groups.which = which if groups.chosen is None else which[groups.chosen]

    # --- asking -----------------------------------------------------------------------------------------------------

    def at(self, reads: Entries, places: Places) -> tuple[Places, Entries] | None:
        """Return the entries `[m, lanes]` of all lanes of flat places `[n]` where there are several, and which those are."""
        of = None if self.of is None else self.of.take(places, mode="clip")
        together = None if self.together is None else self.together.take(places, mode="clip")
        return self._of_places(of, together, reads.take(places, mode="clip"))

    def of_cells(self, reads: Entries, cells: Any, readers: int) -> Entries | None:
        """Return the entries of all lanes of cells (an index) where there are several; None where there are none."""
        of = None if self.of is None else self.of.reshape(-1, readers)[cells].reshape(-1)
        together = None if self.together is None else self.together.reshape(-1, readers)[cells].reshape(-1)
        found = self._of_places(of, together, reads.reshape(-1, readers)[cells].reshape(-1))
        return None if found is None else found[1]

    def _of_places(
        self, of: NDArray[np.int32] | None, together: NDArray[np.uint32] | None, reads: Entries
    ) -> tuple[Places, Entries] | None:  # fmt: skip
        which = np.zeros(reads.size, np.int32) if of is None else of
        masks = np.zeros(reads.size, np.uint32) if together is None else together
        some = np.flatnonzero((which != 0) | (masks != 0))
        if not some.size:
            return None
        out, have = np.zeros((some.size, self.width), np.uint64), which[some] != 0
        if have.any():
            out[have] = self._spread(which[some][have])
        if not have.all():
            entries, lanes = reads[some][~have][:, None], (masks[some][~have][:, None] & _BITS) != 0
            lowest = agents_of(entries[:, 0]) % self.columns & 31
            out[~have, :32] = np.where(lanes & (entries != 0), entries + _STEPS[lowest], 0)
        return some, out

    def forget(self, cells: Any, readers: int) -> None:
        """Forget the reads of cells (an index)."""
        if self.together is not None and self.together.reshape(-1, readers)[cells].any():
            self.together.reshape(-1, readers)[cells] = 0
            self.changes += 1
        if self.of is not None and (which := self.of.reshape(-1, readers)[cells]).any():
            self._vectors[:, which[which > 0]] = 0
            self._masks[:, which[which > 0]] = 0
            self.changes += 1

    def lose(self, readers: int) -> None:
        """Forget all reads: they are known of cells that turn out to be too large."""
        self.forget(slice(None), readers)
        self._full()

    def resize(self, cells: int, readers: int, times: int) -> None:
        """Follow a shadow whose cells were split into `times` each, and which has now so many."""
        if self.together is not None:
            old = np.repeat(self.together.reshape(-1, readers), times, axis=0).reshape(-1)
            self.together = np.zeros(cells * readers, np.uint32)
            self.together[: old.size] = old
            self.changes += 1
        if self.of is None:
            return
        new = np.repeat(self.of.reshape(-1, readers), times, axis=0).reshape(-1)
        several = np.flatnonzero(new)
        old = np.concatenate([[0], new[several]])
        self._vectors, self._masks = self._vectors[:, old], self._masks[:, old]
        self._count = old.size
        self.of = np.zeros(cells * readers, np.int32)
        self.of[several] = np.arange(1, several.size + 1)
        self.version += 1

    # --- vectors ----------------------------------------------------------------------------------------------------

    def _slots(self, entries: Entries) -> NDArray[np.int64]:
        column = agents_of(entries) % self.columns
        slots = column & 31
        if self.width > 33:
            slots = slots + 32 * ((entries & _STRONG) != 0)
        return np.where(column < self.threads, slots, self.width - 1)

    def _put(self, which: NDArray[np.int32], slots: Places, entries: Entries, masks: NDArray[np.uint32]) -> None:
        """Write entries that stand for lanes `masks` to slots of vectors."""
        at = slots * self._masks.shape[1] + which
        old = self._masks.reshape(-1).take(at)
        if not np.array_equal(old, masks):
            if (wider := (old & ~masks) != 0).any():
                some = np.unique(which[wider])
                self._vectors[:, some] = spread = self._spread(some).T
                self._masks[:-1, some] = np.where(spread[:-1] != 0, np.tile(_BITS, self.width // 32)[:, None], 0)
            self._masks.reshape(-1)[at] = masks
            self.changes += 1
        self._vectors.reshape(-1)[at] = entries

    def _spread(self, which: NDArray[np.int32]) -> Entries:
        """Return the entries `[m, width]` of vectors with those of masks at every lane they stand for."""
        out, masks = self._vectors.T[which], self._masks.T[which]
        for first in range(0, self.width - 1, 32):
            block, mask = out[:, first : first + 32], masks[:, first : first + 32]
            rows = np.flatnonzero((mask & ~_BITS).any(axis=1))
            for some in np.array_split(rows, rows.size // 256 + 1) if rows.size else ():
                stand = (mask[some][:, :, None] & _BITS) != 0
                block[some] = np.where(stand, block[some][:, :, None] + _STEPS, 0).max(axis=1)
        return out

    def _share(self, places: int, at: Places, before: Entries) -> None:
        """Give vectors to the places `at` that have none, with the entries they had before."""
        if self.of is None:
            if not fits(8 * places):
                self._full()
                return
            self.of = np.zeros(places, np.int32)
        new = self.of[at] == 0
        if not new.any():
            return
        some, first = np.unique(at[new], return_index=True)
        end = self._count + some.size
        if end > self._masks.shape[1]:
            if not fits(24 * end * self.width):
                self._full()
                return
            self._vectors = _grown(self._vectors, self._count, min(max(2 * end, _ROOM), places + 1))
            self._masks = _grown(self._masks, self._count, self._vectors.shape[1])
        self.of[some] = np.arange(self._count, end)
        self._count = end
        self.version += 1
        old = before[new][first]
        kept = old != 0
        slots = self._slots(old[kept])
        masks = np.where(slots < self.width - 1, _BITS[slots & 31], 0).astype(np.uint32)
        if self.together is not None:
            held = self.together[some[kept]]
            masks = np.where(held != 0, held, masks)
            self.together[some] = 0
        self._put(self.of[some[kept]], slots, old[kept], masks)


def _grown(array: NDArray[Any], used: int, room: int) -> NDArray[Any]:
    """Return a copy with room for more vectors; slots that no lane has used stay untouched memory."""
    out = np.zeros((array.shape[0], room), array.dtype)
    if used > 1:
        for slot in np.flatnonzero(array[:, :used].any(axis=1)).tolist():
            out[slot, :used] = array[slot, :used]
    return out
