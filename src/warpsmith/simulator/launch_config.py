"""How a kernel is launched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

__all__ = ["Dim", "LaunchConfig"]

Dim = tuple[int, int, int]


@final
@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """A launch: shape, checks, numerics and schedule."""

    grid: Dim
    block: Dim
    cluster: Dim = (1, 1, 1)
    explicit_cluster: bool = False
    dynamic_shared: int = 0
    check: bool = True
    numerics: Literal["exact", "fast"] = "exact"
    schedule: Literal["fair", "random", "adversarial"] = "fair"
    seed: int = 0
    max_steps: int | None = None
    """Blocks that cohorts may run before the launch ends as a livelock."""
    grid_serial: int = 1
    lines: bool = False
    """Count by source line, too."""
    registers_per_thread: int = 256
    """What `setmaxnreg` begins with."""

    @property
    def schedule_text(self) -> str:
        """The schedule as findings name it."""
        return "fair" if self.schedule == "fair" else f"{self.schedule} seed {self.seed}"
