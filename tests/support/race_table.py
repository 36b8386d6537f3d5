"""What the random programs of both race oracles are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["THREADS", "arguments"]

THREADS = 64


class _Step(Protocol):
    @property
    def at(self) -> Mapping[int, int]: ...


def arguments(steps: Sequence[_Step]) -> np.ndarray:
    """Return the table the program reads: (address or mask, takes part) of every thread in every step."""
    table = np.zeros((len(steps), THREADS, 2), np.uint32)
    for i, step in enumerate(steps):
        for thread, at in step.at.items():
            table[i, thread] = at, 1
    return table
