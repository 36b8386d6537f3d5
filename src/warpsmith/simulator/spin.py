"""Loops that poll memory: a cohort that repeats itself while nothing changes waits until something does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.outcome import Wait

if TYPE_CHECKING:
    from warpsmith.simulator.cohort import Cohort
    from warpsmith.simulator.engine import Engine

__all__ = ["SpinWatch"]

PATIENCE = 24
"""Times round a loop without a change of memory before its registers are compared."""


@final
class _Spin:
    __slots__ = ("count", "snapshot", "target", "version")

    def __init__(self, target: int, version: int) -> None:
        self.target, self.version = target, version
        self.count = 0
        self.snapshot: Any = None


@final
class SpinWatch:
    """Watches the backward branches of cohorts."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def seen(self, c: Cohort, target: int) -> bool:
        """Note that a cohort goes back to `target`; park it and return True if it has gone round without any change."""
        m = self.engine.machine
        version = m.memory_version
        spin: _Spin | None = c.spin
        if spin is None or spin.target != target or spin.version != version:
            c.spin = _Spin(target, version)
            return False
        spin.count += 1
        if spin.count < PATIENCE:
            return False
        now = self._snapshot(c)
        if spin.snapshot is None or not all(np.array_equal(a, b) for a, b in zip(spin.snapshot, now, strict=True)):
            spin.snapshot = now
            spin.count = 0 if spin.count > 2 * PATIENCE else spin.count
            return False
        c.spin = None
        ending = self.engine.blocks[c.block].ending
        operation = getattr(ending, "operation", None)
        if operation is None:
            operation = replace(m.no_operation, text="bra", place=getattr(ending, "place", None))
        self.engine.move(c, target)
        self.engine.park(c, Wait(_Changed(m, version)), operation)
        return True

    def _snapshot(self, c: Cohort) -> list[Any]:
        banks = self.engine.machine.registers.banks.values()
        c0, c1, t0, t1 = c.rect
        active = c.mask
        return [b[:, c0:c1, t0:t1].copy() if active is None else b[:, c0:c1, t0:t1][:, active] for b in banks]


@final
class _Changed:
    """Waits until memory changes."""

    timed = False

    def __init__(self, machine: Any, version: int) -> None:
        self.machine, self.version = machine, version

    def ready(self) -> bool:
        """Say whether memory has changed."""
        return self.machine.memory_version != self.version

    def describe(self) -> str:
        """Say what the loop waits for."""
        return "memory to change: its loop repeats with the same registers"
