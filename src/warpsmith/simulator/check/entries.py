"""Entries of the shadow: who touched a cell, when, and how.

64 bits each, 0 for none:

    63:39  time (`check.clocks`)         17:16  strength: 0 weak, strong at 1 cta, 2 cluster, 3 gpu or sys scope
    38:18  agent: row · columns + column  15:0   site: number of the instruction
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Entries = NDArray[np.uint64]

__all__ = ["AGENT", "AGENTS", "SITE", "SITES", "STRENGTH", "TIME", "agents_of", "entry", "times_of"]

TIME, AGENT, STRENGTH, SITE = 39, 18, 16, 0
"""Lowest bits of the fields of an entry."""
AGENTS, SITES = 1 << (TIME - AGENT), 1 << STRENGTH


def entry(time: int, agent: Any, strength: int, site: int) -> Any:
    """Return an entry; `agent` may be an array of int64."""
    low = np.uint64((time << TIME) | (strength << STRENGTH) | site)
    return np.asarray(agent).astype(np.uint64) << np.uint64(AGENT) | low


def times_of(entries: Entries) -> NDArray[np.int64]:
    """Return the times of entries."""
    return (entries >> np.uint64(TIME)).astype(np.int64)


def agents_of(entries: Entries) -> NDArray[np.int64]:
    """Return the agents of entries."""
    return (entries >> np.uint64(AGENT)).astype(np.int64) & (AGENTS - 1)
