"""The bytes that the products of one instruction read, judged and noted together for all warpgroups of a cohort.

A faultless program is the common case, and to find that nothing is at fault needs no order among products: a read is
judged by last writes alone, and products write registers only. So all are looked at at once; if any could be at fault,
nothing is noted, and the caller goes through the products one by one (`Transit.reads`), which words the findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from warpsmith.simulator.check.clocks import KNOWN
from warpsmith.simulator.check.columns import ORDINAL
from warpsmith.simulator.check.entries import TIME, agents_of, entry, times_of
from warpsmith.simulator.check.product_log import WARPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.check.entries import Entries
    from warpsmith.simulator.check.races import RaceWatch
    from warpsmith.simulator.copy_groups import CopyGroups
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.operand_places import Places

    Cells = NDArray[np.int64]

__all__ = ["ProductReads"]


@final
class ProductReads:
    """Products of an instruction: their rows `[i]`, and the first of the 128 threads of each `[i]`."""

    def __init__(self, races: RaceWatch, rows: Cells, first: Cells) -> None:
        self.races, self.rows, self.first = races, rows, first

    def clear(self, operands: list[Places]) -> bool:
        """Say whether no product is at fault: swizzle modes, order and proxy of whoever wrote the bytes last."""
        races = self.races
        if races.places < races.machine.threads // 32:  # warps share places: which read is kept depends on the order
            return False
        if races.strong is not None and races.strong.used:
            return False
        for o in operands:
            if o.swizzle is None or not races.tags.alike(o.at, o.swizzle):
                return False
            if not self._ordered(races.shared.writes.take(o.cells(races.shared.cell))):
                return False
        return True

    def note(self, x: Lanes, operands: list[Places], groups: CopyGroups) -> None:
        """Note the reads of each product's four warps, as members of their open groups."""
        races, shadow = self.races, self.races.shared
        shadow.used = True
        warps = (self.first >> 5)[:, None] + np.arange(WARPS)
        agents = self.rows[:, None] * races.columns.count + races.columns.group("wgmma", 0) + warps
        times = ORDINAL + groups.open[self.rows[:, None], 32 * warps].astype(np.int64) + 1
        site = races.sites.of(x.op)
        noted = entry(0, agents, site.strength, site.number) | times.astype(np.uint64) << np.uint64(TIME)
        places = self.first // 32 % races.places
        log = shadow.products
        assert log is not None
        for o in operands:
            reads = o.cells(shadow.cell), o.starts >> shadow.shift, o.stops >> shadow.shift, places, noted
            if not log.add((o, places.tobytes()), *reads):
                log.settle(shadow.settled_reads)
                log.add((o, places.tobytes()), *reads)

    def _ordered(self, entries: Entries) -> bool:
        """Say whether a thread of each warp knows of the writes `[i, m]` of its product's bytes, and through the proxy."""
        first = entries[:, 0]
        if (entries == first[:, None]).all():
            product, at = np.flatnonzero(first), np.intp(0)
        else:
            new = entries != 0
            new[:, 1:] &= entries[:, 1:] != entries[:, :-1]
            product, at = np.nonzero(new)
        if product.size == 0:
            return True
        count, clocks = self.races.columns, self.races.clocks
        some = np.repeat(entries[product, at], WARPS)
        rows = np.repeat(self.rows[product], WARPS)
        threads = (self.first[product][:, None] + np.arange(0, 32 * WARPS, 32)).reshape(-1)
        other_rows, columns = np.divmod(agents_of(some), count.count)
        times = times_of(some)
        if not clocks.ordered(rows, threads, other_rows, columns, times, KNOWN).all():
            return False
        generic = columns < count.threads
        if not generic.any():
            return True
        plane = self.races.proxies.of["shared"]
        if plane is None:
            return False
        return bool((~generic | clocks.ordered(rows, threads, other_rows, columns, times, plane)).all())
