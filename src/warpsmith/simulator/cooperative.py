"""What the driver and the system keep for cooperative groups: the workspace of a grid, scratch in reserved shared memory.

Both exist only for programs that ask where they are: `%envreg1` and `%envreg2` are the high and the low half of the
workspace's address (a word of size and the barrier's word), `%reserved_smem_offset_1` (PTX ISA 10.29) is where the scratch
starts, below the kernel's own shared memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.base.errors import InputError
from warpsmith.simulator.memory import GLOBAL_BASE, SHARED_START, Allocation

if TYPE_CHECKING:
    from warpsmith.simulator.machine import Machine

__all__ = ["grid_workspace", "group_scratch", "is_cooperative", "provide"]

_WORKSPACE, _SCRATCH = "grid workspace", "group scratch"
WORKSPACE = 8
SCRATCH = 288
"""Bytes of reserved shared memory that cooperative groups count on."""


def grid_workspace(machine: Machine) -> int:
    """Return the address of the grid's workspace, which only a cooperative launch has."""
    found: int | None = machine.state.get(_WORKSPACE)
    if found is None:
        start = machine.global_.allocate("the workspace of the cooperative launch", WORKSPACE)
        machine.global_.data[start] = WORKSPACE
        found = machine.state[_WORKSPACE] = start + GLOBAL_BASE
    return found


def is_cooperative(machine: Machine) -> bool:
    """Say whether the lowered program asked where the grid's workspace is."""
    return _WORKSPACE in machine.state


def group_scratch(machine: Machine) -> int:
    """Return the shared address of the scratch memory of cooperative groups.

    It counts as written: the groups clear their own bits of its words by `red.and`, and ask nothing of the others.
    """
    machine.state[_SCRATCH] = True
    return SHARED_START - SCRATCH


def provide(machine: Machine) -> None:
    """Make ready what the lowered program asked for.

    Raise `InputError` when not all CTAs of a cooperative launch can be resident, as the driver refuses such a launch.
    """
    grid = machine.grid[0] * machine.grid[1] * machine.grid[2]
    if is_cooperative(machine) and machine.rows < grid:
        raise InputError(
            f"the kernel synchronises its grid (a cooperative launch): {grid} CTAs, and {machine.rows} are resident on "
            f"{machine.device.name}; launch at most {machine.rows}"
        )
    if _SCRATCH in machine.state:
        machine.shared.lend(SHARED_START - SCRATCH, SCRATCH)
        machine.shared.allocations.append(Allocation("memory reserved for cooperative groups", SHARED_START - SCRATCH, SCRATCH))
