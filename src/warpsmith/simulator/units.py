"""The state of the units that work beside the threads: barriers, copy groups, tensor cores."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from warpsmith.simulator.copy_groups import CopyGroups
from warpsmith.simulator.mbarrier import MBarriers

if TYPE_CHECKING:
    from warpsmith.simulator.machine import Machine

__all__ = ["Units", "units_of"]


@final
class Units:
    """One per launch."""

    def __init__(self, machine: Machine) -> None:
        rows, threads = machine.rows, machine.threads
        self.barriers = MBarriers(machine.shared)
        self.copies = CopyGroups(rows, threads)
        """Groups of `cp.async`."""
        self.bulk = CopyGroups(rows, threads)
        """Groups of `cp.async.bulk`."""
        self.wgmma = CopyGroups(rows, threads)
        """Groups of `wgmma.mma_async`."""


def units_of(machine: Machine) -> Units:
    """Return the units of a machine; they are made at the first use."""
    found = machine.state.get("units")
    if found is None:
        found = machine.state["units"] = Units(machine)
    return found
