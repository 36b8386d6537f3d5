"""What words of memory tell those who read them: release and acquire patterns, and chains between (PTX ISA 8.8, 8.9.2, 8.9.4).

A strong write tells what its thread released by an operation on the same word or by a fence before, each at the scope of that
operation or fence; an atomic operation adds to what its word tells. A reader learns what was released at a scope that includes
it, at once where it acquires, else at a fence or an acquiring read of that word later, whose scope must include the releasing
thread. Between writes and reads of the chain both scopes must include the other, too (8.7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from warpsmith.simulator.check.clocks import KNOWN, Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from warpsmith.simulator.check.clocks import Clocks
    from warpsmith.simulator.check.sites import Site
    from warpsmith.simulator.memory import Space

    Mask = NDArray[np.bool_]
    Key = tuple[str, int]
    Thread = tuple[int, int]

__all__ = ["Levels", "Places", "Told"]

Levels = dict[int, Message]
"""What a thread has read, by the scope (1 CTA, 2 cluster, 3 GPU) that whatever ends its acquire pattern must have."""


class Told(NamedTuple):
    """What a word tells. Whoever has written it keeps the parts of those before in the chain."""

    row: int
    reach: int
    """Row and scope of the last write."""
    parts: dict[tuple[int, int], Message]
    """(row, scope) of the first operation of release patterns -> what they release."""
    wide: Message | None
    """All parts of the scope of the GPU."""
    runs: Message | None
    """What was executed before the writes, where that is kept apart."""

    def levels(self, row: int, cluster: int) -> Levels:
        """Return what a thread of a row may learn; a level may hold what narrower ones do."""
        out: Levels = {}
        _add(out, 1, (self.parts.get((row, scope)) for scope in (1, 2, 3)))
        if cluster > 1:
            first = row // cluster * cluster
            rows = range(first, first + cluster)
            _add(out, 2, (self.parts.get((r, scope)) for r in rows for scope in (2, 3)))
        _add(out, 3, (self.wide,))
        return out


def _add(levels: Levels, level: int, messages: Iterable[Message | None]) -> None:
    for message in messages:
        if message is not None:
            levels[level] = message.joined(levels.get(level))


@final
class Places:
    """The words that tell something, and what threads have released and read but not acquired."""

    def __init__(self, clocks: Clocks, *, cluster: int, remembers: bool) -> None:
        self.clocks, self.cluster, self.remembers = clocks, cluster, remembers
        self.told: dict[Key, Told] = {}
        """(space, flat index) -> what the word there tells."""
        self.released: dict[Key, dict[Thread, tuple[int, int]]] = {}
        """Word -> who has released there by an operation (time and scope): its later strong writes there do so, too (8.8)."""
        self.fences = np.zeros((4, clocks.rows, clocks.threads), np.int64)
        """Time of each thread's last releasing fence of each scope; 0 for none."""
        self.read: dict[Thread, dict[Key, Levels]] = {}
        """What threads have read of words by relaxed operations; kept where a program may end their patterns narrowly."""
        self.observing = False
        """Some thread has observed something that a fence may turn into knowledge."""
        self._releasing = np.zeros((clocks.rows, clocks.threads), np.bool_)
        self._sorted: tuple[str, NDArray[np.int64]] | None = None

    def begin(self, row: int, start: int, stop: int) -> None:
        """Give a row, whose shared memory is at `start` to `stop`, to a new CTA."""
        self.fences[:, row] = 0
        self._releasing[row] = False
        for known in (self.told, self.released):
            for key in [k for k in known if k[0] == "shared" and start <= k[1] < stop]:
                del known[key]
        for thread in [t for t in self.read if t[0] == row]:
            del self.read[thread]
        for by in self.released.values():
            for thread in [t for t in by if t[0] == row]:
                del by[thread]
        self._sorted = None

    def _need(self, row: int, other: int) -> int:
        """Return the scope that includes a thread of another row."""
        return 1 if row == other else 2 if row // self.cluster == other // self.cluster else 3

    # --- fences -----------------------------------------------------------------------------------------------------

    def release_fence(self, window: tuple[slice, slice], lanes: Mask, scope: int) -> None:
        """Note that lanes of a window (rows, threads) have executed a fence that releases at a scope."""
        np.copyto(self.fences[scope][window], self.clocks.now, where=lanes)
        self._releasing[window] |= lanes

    def acquire_fence(self, row: int, lanes: Mask, scope: int) -> None:
        """Let threads `[threads]` of a row know what they have read, of threads that a scope includes."""
        if scope == 3:
            self.clocks.fence(row, lanes)
        for thread in [t for t in self.read if t[0] == row and lanes[t[1]]] if self.read else ():
            if scope < 3:
                for levels in self.read[thread].values():
                    self._acquire(thread, levels, scope)
            else:
                del self.read[thread]

    def fenced(self, row: int, lanes: Mask, scope: int) -> Iterator[Message]:
        """Yield what fences of at least a scope have covered of each of the threads `[threads]` of a row."""
        times = self.fences[scope:, row].max(axis=0)
        for thread in np.flatnonzero(lanes & (times > 0)).tolist():
            yield self.clocks.snapshot(row, thread, int(times[thread]))

    # --- reading ----------------------------------------------------------------------------------------------------

    def remember(self, row: int, lanes: Mask, key: Key, levels: Levels) -> None:
        """Note what threads have read without acquiring it."""
        if not self.remembers:
            return
        for thread in np.flatnonzero(lanes).tolist():
            mine = self.read.setdefault((row, thread), {}).setdefault(key, {})
            for level, message in levels.items():
                mine[level] = message.joined(mine.get(level))

    def _acquire(self, thread: Thread, levels: Levels, scope: int) -> None:
        mine = np.zeros(self.clocks.threads, np.bool_)
        mine[thread[1]] = True
        for level, message in levels.items():
            if level <= scope:
                self.clocks.acquire(thread[0], mine, message)

    def learn(self, row: int, lanes: Mask, key: Key, told: Told | None, site: Site) -> None:
        """Let threads `[threads]` of a row learn what a word told when they read it."""
        if told is not None and min(site.strength, told.reach) >= self._need(row, told.row):
            levels = told.levels(row, self.cluster)
            message: Message | None = None
            for level, part in levels.items():
                if level <= site.strength or not site.acquires:
                    message = part.joined(message)
            if message is not None:
                self.clocks.acquire(row, lanes, message if site.acquires else self.clocks.observed(message))
            if told.runs is not None:
                self.clocks.acquire(row, lanes, told.runs)
            if levels and not site.acquires:
                self.observing = True
                self.remember(row, lanes, key, levels)
        if site.acquires and self.read:
            for thread in np.flatnonzero(lanes).tolist():
                self._acquire((row, thread), self.read.get((row, thread), {}).get(key, {}), site.strength)

    # --- writing ----------------------------------------------------------------------------------------------------

    def telling(self, window: tuple[slice, slice], lanes: Mask, site: Site) -> Mask:
        """Return the lanes of a window whose strong writes tell something."""
        return lanes if site.releases or self.clocks.executed != KNOWN else lanes & self._releasing[window]

    def tell(self, key: Key, thread: Thread, site: Site, before: Told | None) -> None:
        """Note a strong write of a thread; `before`: what its word told, if it is an atomic operation."""
        if before is not None and min(site.strength, before.reach) < self._need(thread[0], before.row):
            before = None
        parts = {} if before is None else dict(before.parts)
        wide, runs = (None, None) if before is None else (before.wide, before.runs)
        for time, scope in self._patterns(key, thread, site):
            message = self.clocks.snapshot(*thread, time)
            parts[thread[0], scope] = message.joined(parts.get((thread[0], scope)))
            wide = message.joined(wide) if scope == 3 else wide
        if self.clocks.executed != KNOWN:
            message = self.clocks.in_execution(self.clocks.snapshot(*thread, 0))
            runs = runs if message is None else message.joined(runs)
        if parts or runs is not None:
            self._put(key, Told(thread[0], site.strength, parts, wide, runs))
        else:
            self.pop(key)

    def _patterns(self, key: Key, thread: Thread, site: Site) -> list[tuple[int, int]]:
        """Return (time, scope) of the release patterns that a strong write of a thread ends, none hidden by a wider one."""
        times = self.fences[:, thread[0], thread[1]].tolist()
        by = self.released.get(key)
        if site.releases:
            by = self.released.setdefault(key, {})
            by[thread] = self.clocks.now, site.strength
            self._releasing[thread] = True
        if by is not None and (own := by.get(thread)) is not None:
            times[own[1]] = max(times[own[1]], own[0])
        return [(times[s], s) for s in (3, 2, 1) if times[s] > max(times[s + 1 :], default=0)]

    def put(self, key: Key, row: int, message: Message, before: Told | None) -> None:
        """Note a write that tells a message at the scope of the GPU; `before`: what its word told, if it adds to that."""
        parts = {} if before is None else dict(before.parts)
        parts[row, 3] = message.joined(parts.get((row, 3)))
        wide = message if before is None else message.joined(before.wide)
        self._put(key, Told(row, 3, parts, wide, None if before is None else before.runs))

    def _put(self, key: Key, told: Told) -> None:
        if key not in self.told:
            self._sorted = None
        self.told[key] = told

    def pop(self, key: Key) -> None:
        """Note that a word tells nothing any more."""
        if self.told.pop(key, None) is not None:
            self._sorted = None

    def overwritten(self, space: Space, index: NDArray[np.int64], n: int, lanes: Mask) -> None:
        """Note weak stores of n bytes at flat indices: words there tell nothing any more."""
        if self._sorted is None or self._sorted[0] != space.name:
            self._sorted = space.name, np.array(sorted(i for s, i in self.told if s == space.name), np.int64)
        words = self._sorted[1]
        if not words.size or index.max() + n <= words[0] or index.min() > words[-1]:
            return
        some = index[lanes]
        first, last = np.searchsorted(words, some), np.searchsorted(words, some + n)
        for a, b in {(a, b) for a, b in zip(first.tolist(), last.tolist(), strict=True) if a < b}:
            for at in words[a:b].tolist():
                self.pop((space.name, at))
