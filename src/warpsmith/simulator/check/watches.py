"""Which rules about registers a program is followed by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.simulator.check.early_use import Loads
from warpsmith.simulator.check.register_watch import RegisterWatch
from warpsmith.simulator.check.registers import Products

if TYPE_CHECKING:
    from warpsmith.simulator.machine import Machine

__all__ = ["register_watch"]


def register_watch(machine: Machine) -> RegisterWatch | None:
    """Return a watch, when findings are asked for: of warpgroup products or tensor memory loads (no target has both)."""
    rules = (Products.of(machine.program) or Loads.of(machine.program)) if machine.checking else None
    return None if rules is None else RegisterWatch(machine, rules)
