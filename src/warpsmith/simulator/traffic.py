"""What accesses cost by source line: wavefronts of shared memory and their bank conflicts, sectors of global memory.

Shared memory has 32 banks of 4 bytes. A wavefront serves one word of each bank to all lanes that want it. A warp's request
of 8-byte items is served by half-warps, one of 16-byte items by quarter-warps, so that 128 bytes are the most at once; a
request takes as many wavefronts as the busiest bank has different words, added up over its parts. A matrix of ldmatrix
or stmatrix is a part of eight rows of 16 bytes. (CUDA C++ Programming Guide, Shared Memory, for 4-byte items; the parts of
wider ones are as measured by many and not documented.) Global memory moves in sectors of 32 bytes.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.counters import Line

if TYPE_CHECKING:
    from collections.abc import Generator

    from numpy.typing import NDArray

    from warpsmith.base.source import Place
    from warpsmith.simulator.access import Located
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.memory import Space
    from warpsmith.simulator.program import Operation

__all__ = ["Traffic", "as_one", "sectors_of", "wavefronts_of"]

_PLAIN = ("ld", "ldu", "st", "atom", "red")
_ONCE = ("atom", "red")
"""They read and write: counted when they read."""
_NOWHERE = np.int64(-1)


def wavefronts_of(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the wavefronts of parts of requests: word addresses `[part, word]`, -1 for none."""
    parts = len(words)
    ordered = np.sort(words, axis=1)
    new = ordered != _NOWHERE
    new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    part = np.broadcast_to(np.arange(parts)[:, None], words.shape)
    bank = (part * 32 + (ordered & 31))[new]
    return np.bincount(bank, minlength=32 * parts).reshape(parts, 32).max(axis=1)


def sectors_of(index: NDArray[np.int64], active: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the sectors that requests touch: byte indices `[request, 32]` of items that do not cross one."""
    sector = np.where(active, index >> 5, _NOWHERE)
    ordered = np.sort(sector, axis=1)
    new = ordered != _NOWHERE
    new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return new.sum(axis=1)


@contextmanager
def as_one(x: Lanes, located: list[Located], n: int) -> Generator[None, None, None]:
    """Count n-byte accesses as such, and not the parts that they are made of: `with as_one(x, located, 32): …`."""
    traffic = x.machine.traffic
    if traffic is None:
        yield
        return
    for at in located:
        traffic.access(x, at.space, at.index, n, at.mask)
    traffic.muted = True
    yield
    traffic.muted = False


@final
class Traffic:
    """Counts the accesses of a launch by source line."""

    def __init__(self, lines: dict[Place | None, Line]) -> None:
        self.lines = lines
        self.muted = False
        """Parts of an access that has been counted as a whole are under way."""

    def line(self, place: Place | None) -> Line:
        """Return the counts of a line."""
        found = self.lines.get(place)
        if found is None:
            found = self.lines[place] = Line()
        return found

    def access(
        self, x: Lanes, space: Space, index: NDArray[np.int64], n: int, mask: Any, operations: list[Operation] | None = None
    ) -> None:
        """Count n-byte accesses at flat indices `[…, C, T]` (`[k, C, T]` for `operations`) of the lanes `mask` (None: all)."""
        if x.op.opcode not in _PLAIN or self.muted or space.name not in ("shared", "global"):
            return
        active = np.broadcast_to(True if mask is None else mask, x.shape)
        if operations is None:
            self._count(x, x.op.place, space, np.broadcast_to(index, x.shape), n, active)
            return
        for op, each in zip(operations, index, strict=True):
            self._count(x, op.place, space, np.broadcast_to(each, x.shape), n, active)

    def store(self, x: Lanes, space: Space, index: NDArray[np.int64], n: int, mask: Any) -> None:
        """Count a store."""
        if x.op.opcode not in _ONCE:
            self.access(x, space, index, n, mask)

    def copy(self, x: Lanes, space: Space, index: NDArray[np.int64], n: int, mask: Any) -> None:
        """Count one side of a `cp.async`."""
        if space.name in ("shared", "global"):
            active = np.broadcast_to(True if mask is None else mask, x.shape)
            self._count(x, x.op.place, space, np.broadcast_to(index, x.shape), n, active)

    def matrices(self, x: Lanes, rows: NDArray[np.int64]) -> None:
        """Count the rows `[matrix, row, C, W]` (addresses) of ldmatrix or stmatrix, eight rows a part."""
        active = x.warps(x.active()).any(axis=-1).reshape(-1)
        parts = np.moveaxis(rows.reshape(-1, 8, active.size), -1, 0)[active]
        words = (parts[..., None] >> 2) + np.arange(4)
        line = self.line(x.op.place)
        line.shared_requests += int(active.sum())
        line.wavefronts += int(wavefronts_of(words.reshape(-1, 32)).sum())
        line.ideal_wavefronts += parts.shape[0] * parts.shape[1]

    def _count(
        self, x: Lanes, place: Place | None, space: Space, index: NDArray[np.int64], n: int, active: NDArray[np.bool_]
    ) -> None:
        here = active.reshape(-1, 32)
        some = here.any(axis=1)
        at, here = index.reshape(-1, 32)[some], here[some]
        if not len(at):
            return
        line = self.line(place)
        if space.name == "global":
            line.global_requests += len(at)
            line.sectors += int(sectors_of(at, here).sum())
            line.global_bytes += n * int(here.sum())
            return
        parts = max(1, n // 4)
        words = np.where(here[..., None], (at[..., None] >> 2) + np.arange(parts), _NOWHERE).reshape(-1, 32)
        words = words[(words != _NOWHERE).any(axis=1)]
        line.shared_requests += len(at)
        line.wavefronts += int(wavefronts_of(words).sum())
        line.ideal_wavefronts += len(words)
