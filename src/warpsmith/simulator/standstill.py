"""A guard against faults of the simulator's own scheduler: turns in which nothing is executed, without end.

Cohorts that are held before a collective, or that wait for a condition, are given turns again when others come or the condition
says so. If two of them woke each other for ever, no step limit would end the launch. What is counted are turns in a row
that execute no instruction, while no operation completes and no CTA starts. They are counted where a cohort is held or parked
again, so that a turn that executes something costs nothing. A program that loops by instructions of its own is not meant here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from warpsmith.base.errors import InternalError
from warpsmith.simulator.check.whereabouts import whereabouts

if TYPE_CHECKING:
    from warpsmith.simulator.engine import Engine

__all__ = ["Standstill"]

ENOUGH, EACH = 4096, 64
"""Turns without an instruction that are too many: so many, and so many more for each cohort there is."""
_SHOWN = 12


@final
class Standstill:
    """Counts the turns of an engine in which nothing was executed."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.count = 0
        """Such turns in a row."""
        self._last = -1
        self._state: tuple[int, int] | None = None

    def note(self) -> None:
        """Note that this turn executes nothing; raise `InternalError` when so many have that it would go on for ever."""
        e = self.engine
        state = e.machine.asynchronous.completed, e.next_cta
        follows = e.steps == self._last + 1 and state == self._state
        self.count = self.count + 1 if follows else 1
        self._last, self._state = e.steps, state
        if self.count % ENOUGH == 0 and self.count > EACH * (len(e.ready) + len(e.held) + len(e.parked)):
            raise InternalError(self._message())

    def _message(self) -> str:
        stands = whereabouts(self.engine)
        lines = [f"  {place}: {text}" if place is not None else f"  {text}" for text, place in stands[:_SHOWN]]
        if len(stands) > _SHOWN:
            lines.append(f"  … and {len(stands) - _SHOWN} more groups of threads")
        return "\n".join(
            [
                f"simulator: {self.count:,} turns of the scheduler have executed no instruction and completed no operation, "
                f"after {self.engine.steps:,} in all; what waits wakes itself, and the launch would never end",
                *lines,
            ]
        )
