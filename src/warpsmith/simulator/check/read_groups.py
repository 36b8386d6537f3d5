"""Loads that come again at the same addresses: which lanes read a cell together, found once.

Loops read their tiles at the same places of shared memory again and again, and many lanes often the same word. When the
addresses of a load are met for the second time, or its lanes share cells, they are grouped by cell; from then on noting
the load takes one entry for each group instead of one for each lane.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes

    Ints = NDArray[np.int64]

__all__ = ["GroupedLoads", "ReadGroups", "grouped"]

_BYTES = 1 << 26
"""Of addresses that are kept in all."""
_NOBODY = 1 << 62
"""In place of the key of a lane that does not read: above all."""
_TRIES = 12
"""Times that a load may come with new addresses before it is taken to never repeat them."""


@final
@dataclass(slots=True)
class ReadGroups:
    """The groups `[m]` of lanes of one warp that read one cell with one instruction."""

    cells: Ints
    at: Ints
    """Their places in the shadow, `LaneReads.of`; no place is there twice."""
    rows: Ints
    """Their CTAs, from the first of the rectangle on."""
    threads: Ints
    """The lowest thread of each, from the first of the rectangle on."""
    numbers: Ints
    """Which of the instruction's operations, 0 for a single one."""
    masks: NDArray[np.uint32]
    slots: Ints
    several: NDArray[np.bool_]
    strong: bool
    version: int = -1
    which: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """The vectors of those places that have one (`chosen`; None: all; `lacking`: those without; None: none)."""
    chosen: Ints | None = None
    lacking: NDArray[np.bool_] | None = None
    settled: tuple[int, int] = (-1, -1)
    """When (`LaneReads.version`, `.changes`) the places, and the slots `vector_at` of the vectors, had the groups' masks."""
    turns: int = 0
    """Times that they had not."""
    vector_at: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    _agents: Ints | None = None

    def agents(self, columns: int, x: Lanes) -> Ints:
        """Return the agents of the lowest lanes; `columns` are those of a CTA."""
        if self._agents is None:
            self._agents = (self.rows + x.c0) * columns + self.threads + x.t0
        return self._agents


@final
class GroupedLoads:
    """The loads of shared memory whose addresses have been met, with their groups, or None where nobody has needed them yet."""

    def __init__(self) -> None:
        self._met: dict[tuple[Any, ...], tuple[Ints, ReadGroups | None]] = {}
        self._misses: dict[int, int] = {}
        self._bytes = 0
        self._cell = 0

    def find(self, x: Lanes, index: Ints, cell: int) -> tuple[ReadGroups | None, bool]:
        """Return the groups of a load at flat addresses `[…, C, T]`, if they are known, and whether it is time to group."""
        if (misses := self._misses.get(id(x.op), 0)) > _TRIES:
            return None, False
        if cell != self._cell:
            self._clear(cell)
        key = _key(x, index)
        met = self._met.get(key)
        if met is not None and np.array_equal(met[0], index):
            self._misses[id(x.op)] = 0
            return met[1], met[1] is None
        self._misses[id(x.op)] = misses + 1
        if met is None:
            self._bytes += index.size * 16
            if self._bytes > _BYTES:
                self._clear(cell)
        self._met[key] = (index.copy(), None)
        return None, False

    def keep(self, x: Lanes, index: Ints, groups: ReadGroups) -> None:
        """Keep the groups of a load that has just been looked for."""
        key = _key(x, index)
        if (met := self._met.get(key)) is not None:
            self._met[key] = (met[0], groups)

    def _clear(self, cell: int) -> None:
        self._met.clear()
        self._bytes, self._cell = 0, cell


def _key(x: Lanes, index: Ints) -> tuple[Any, ...]:
    return id(x.op), x.rect, index.shape, int(index.flat[0]), int(index.flat[-1])


def grouped(x: Lanes, at: Ints, readers: int, *, deep: bool, strong: bool) -> ReadGroups | None:
    """Group the active lanes that read with places `at` `[…, C, T]`, or `deep` `[…, C, T, k]` of cells with `readers` each.

    None where several operations read one place.
    """
    at = np.ascontiguousarray(np.moveaxis(at, -1, 0)) if deep else at
    shape = at.shape
    keys = x.warps(at) * 32 + np.arange(32)
    if x.mask is not None:
        keys = np.where(x.warps(x.mask), keys, _NOBODY)
    keys.sort(axis=-1)
    place, lane = keys >> 5, keys & 31
    first = keys < _NOBODY
    bits = np.where(first, np.uint32(1) << lane.astype(np.uint32), np.uint32(0))
    first[..., 1:] &= place[..., 1:] != place[..., :-1]
    start = np.flatnonzero(first)
    place, lane, threads = place.reshape(-1)[start], lane.reshape(-1)[start], shape[-1]
    number = start // (shape[-2] * threads) % shape[-3] if at.ndim - deep > 2 else np.zeros_like(start)
    if at.ndim - deep > 2:
        ordered = np.sort(place)
        if (ordered[1:] == ordered[:-1]).any():
            return None
    masks = np.bitwise_or.reduceat(bits.reshape(-1), start) if start.size else np.zeros(0, np.uint32)
    several = masks != np.uint32(1) << lane.astype(np.uint32)
    rows, lowest = start // threads % shape[-2], start % threads // 32 * 32 + lane
    return ReadGroups(place // readers, place, rows, lowest, number, masks, lane, several, strong)
