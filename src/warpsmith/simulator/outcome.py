"""What a switch point answers: go on, or wait for a condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes

__all__ = ["DONE", "Condition", "Done", "Outcome", "Until", "Wait", "Window"]


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


@final
class Window:
    """The condition of a parked cohort of which a part has been let go."""

    def __init__(self, inner: Condition, outer: tuple[int, int, int, int], rect: tuple[int, int, int, int]) -> None:
        c, t = rect[0] - outer[0], rect[2] - outer[2]
        self.shape = (outer[1] - outer[0], outer[3] - outer[2])
        if isinstance(inner, Window):  # a part of a part: look at the whole directly
            c, t = c + (inner.window[0].start or 0), t + (inner.window[1].start or 0)
            self.shape, inner = inner.shape, inner.inner
        self.inner, self.timed = inner, inner.timed
        self.window = (slice(c, c + rect[1] - rect[0]), slice(t, t + rect[3] - rect[2]))

    def ready(self) -> Any:
        """Cut the answer for the whole to the part."""
        answer = self.inner.ready()
        return answer if isinstance(answer, bool) else np.broadcast_to(answer, self.shape)[self.window]

    def describe(self) -> str:
        """Say what the whole says."""
        return self.inner.describe()

    def causes(self) -> Any:
        """Explain a deadlock as the whole does."""
        causes = getattr(self.inner, "causes", None)
        return causes() if causes is not None else ()
