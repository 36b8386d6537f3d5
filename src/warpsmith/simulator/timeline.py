"""When things happened, in blocks that cohorts ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

__all__ = ["Timeline"]


@final
@dataclass(frozen=True, slots=True)
class Timeline:
    """The length of a run."""

    steps: int
    """Blocks that cohorts ran."""
    ended_ctas: int
    """CTAs whose threads all ended."""
    preparing: float = 0.0
    """Seconds it took to lower the kernel and place its arguments."""
    running: float = 0.0
    """Seconds it took to run."""
