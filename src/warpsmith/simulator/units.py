"""The state of the units that work beside the threads: barriers, copy groups, tensor cores."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, final

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.copy_groups import CopyGroups
from warpsmith.simulator.mbarrier import MBarriers

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.isa import Match
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine

__all__ = ["Units", "units_of"]


@final
class Units:
    """One per launch."""

    def __init__(self, machine: Machine) -> None:
        rows, threads = machine.rows, machine.threads
        self.barriers = MBarriers(machine.shared)
        self.copies = CopyGroups(rows, threads, "cp.async")
        """Groups of `cp.async`."""
        self.bulk = CopyGroups(rows, threads, "cp.async.bulk")
        """Groups of `cp.async.bulk`."""
        self.wgmma = CopyGroups(rows, threads, "wgmma")
        """Groups of `wgmma.mma_async`."""
        machine.end_hooks.append(partial(_row_end, machine, self))
        machine.row_hooks += [groups.commits.begin for groups in (self.copies, self.bulk, self.wgmma)]
        self._other_fences = machine.fence_hook
        machine.fence_hook = self._fence

    def _fence(self, x: Lanes, match: Match) -> None:
        """Note that the barriers of the executing CTAs are published to the asynchronous proxy."""
        if self._other_fences is not None:
            self._other_fences(x, match)
        if match.mnemonic.startswith(("fence.mbarrier_init", "fence.proxy.async")):
            rows = {x.c0 + c for c in np.flatnonzero(x.active().any(axis=1)).tolist()}
            for barrier in self.barriers.by_index.values():
                if barrier.row in rows:
                    barrier.fenced = True


def units_of(machine: Machine) -> Units:
    """Return the units of a machine; they are made at the first use."""
    found = machine.state.get("units")
    if found is None:
        found = machine.state["units"] = Units(machine)
    return found


def _row_end(machine: Machine, units: Units, row: int) -> None:
    """Report transactions that the barriers of an ended CTA still expect, and forget the barriers."""
    cta = "({},{},{})".format(*machine.cta_of(row))
    for barrier in [b for b in units.barriers.by_index.values() if b.row == row]:
        del units.barriers.by_index[barrier.index]
        if not barrier.tx or any(not op.done for op, _ in barrier.signals):
            continue
        where = f"mbarrier [{barrier.address:#x}] in phase {barrier.phase}"
        kind = "leftover" if barrier.tx > 0 else "tx-mismatch"
        text = f"{where} still expects {barrier.tx} bytes" if barrier.tx > 0 else f"{where} got {-barrier.tx} bytes too many"
        last = (barrier.events or barrier.previous)[-1]
        machine.findings.report(
            kind,
            f"cta {cta} ended while {text}",
            last.place,
            last.threads,
            related=(Related("the barrier was initialised here", barrier.place),),
            repair="Expect exactly the bytes that the copies of each phase bring.",
        )
