"""What a switch point answers: go on, or wait for a condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes

__all__ = ["DONE", "Condition", "Done", "Outcome", "Until", "Wait"]


class Condition(Protocol):
    """What a parked cohort waits for."""

    timed: bool
    """True: it may give up. When nothing else can happen the cohort is run again with `x.timed_out` set."""

    def ready(self) -> NDArray[np.bool_] | bool:
        """Say which lanes may go on: a bool for all, or a mask `[C, T]` of the cohort's rectangle when it parked."""
        ...

    def describe(self) -> str:
        """Say what is awaited, for the report of a deadlock, e.g. `mbarrier [0x400] phase 1: 0 of 2 arrivals`."""
        ...


@final
@dataclass(slots=True)
class Until:
    """A condition made of two functions."""

    test: Callable[[], Any]
    text: Callable[[], str]
    timed: bool = False

    def ready(self) -> Any:
        """Call the test."""
        return self.test()

    def describe(self) -> str:
        """Call the text."""
        return self.text()


@final
@dataclass(frozen=True, slots=True)
class Done:
    """All active lanes go on to the next instruction."""


@final
@dataclass(frozen=True, slots=True)
class Wait:
    """The active lanes outside `passed` wait for `condition`.

    With `retry` the instruction runs again for the lanes the condition lets go; without, they go on behind it
    (their arrival has been counted already).
    """

    condition: Condition
    passed: NDArray[np.bool_] | None = None
    """Lanes `[C, T]` that go on now; None for none."""
    retry: bool = True
    after: Callable[[Lanes], None] | None = None
    """Without `retry`: called with the lanes that go on, to write a result."""


Outcome = Done | Wait
DONE = Done()
