"""What each thread knows of what the others have done: vector clocks (PTX ISA 8.9.4, 8.9.5).

Time is one counter for the launch; it moves with every release, so that what a thread does after a release has a later
time than what it released. A vector has a *column* for every thread of a CTA, and for everything else that writes memory
there (see `check.columns`): the time up to which the holder knows what that column has done. Vectors have up to six
planes: `KNOWN`; `OBSERVED`, what relaxed reads have shown besides, which a fence turns into knowledge; `EXECUTED`, where a
program needs it, what has been executed before, whether or not its memory is ordered: what tensor memory goes by (9.7.18.6.3);
and from `proxied` on, what the asynchronous proxy may rely on: one plane, or two where fences of shared and of global memory
differ, and last, beside `EXECUTED`, what of shared memory was fenced so before.

Threads that know the same share a vector: `base` names its slot. Threads that learn something move to another slot
together. What a thread has done itself it always knows, so a slot does not say it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Vector = NDArray[np.uint32]

__all__ = ["EXECUTED", "KNOWN", "OBSERVED", "Clocks", "Message"]

KNOWN, OBSERVED, EXECUTED = 0, 1, 2


@final
class Message:
    """What a release tells: for each CTA (by its row) a vector `[planes, columns]`."""

    __slots__ = ("vectors",)

    def __init__(self, vectors: dict[int, Vector]) -> None:
        self.vectors = vectors

    def joined(self, other: Message | None) -> Message:
        """Return what both tell."""
        if other is None or other is self:
            return self
        out = dict(self.vectors)
        for row, vector in other.vectors.items():
            mine = out.get(row)
            out[row] = vector if mine is None or mine is vector else np.maximum(mine, vector)
        return Message(out)


@final
class Clocks:
    """The knowledge of all resident threads: `rows` CTAs of `threads` (whole warps), `columns` in all per CTA."""

    def __init__(self, rows: int, threads: int, columns: int, planes: int, proxied: int, behind: int | None = None) -> None:
        self.rows, self.threads, self.columns, self.planes = rows, threads, columns, planes
        self.proxied = proxied
        """First plane of the asynchronous proxy, which may not be there."""
        self.executed = EXECUTED if proxied > EXECUTED else KNOWN
        """The plane of what has been executed; the known one where a program does not tell them apart."""
        self.behind = behind
        """The plane of what was executed and fenced towards the asynchronous proxy."""
        self.warps = threads // 32
        self.now = 1
        self._dynamic = rows * (1 + self.warps)
        """Slots below: one for each row and one for each warp, used by threads of it alone."""
        self.known: NDArray[np.uint32] = np.zeros((self._dynamic + 32, planes, columns), np.uint32)
        self.base = np.repeat(np.arange(rows, dtype=np.int64)[:, None], threads, axis=1)
        self.foreign: dict[int, dict[int, Vector]] = {}
        """Slot -> what it knows of other rows."""
        self.birth = np.zeros(rows, np.int64)
        """Time at which the CTA of a row began."""
        self.floor = np.zeros(rows, np.int64)
        """Time of the last barrier of all threads of a row: what threads did until then, every thread there knows."""
        self.common: NDArray[np.uint64] = np.zeros((rows, columns), np.uint64)
        """What every thread of a row has known since then of the row's columns."""
        self.fenced = np.zeros((max(planes - proxied, 0), rows, threads), np.uint32)
        """For each plane from `proxied` on: time up to which a thread has fenced its own accesses to that memory."""
        self._free: list[int] = []

    def begin(self, row: int) -> None:
        """Give a row to a new CTA, which knows nothing."""
        for slot in np.unique(self.base[row]).tolist():
            self.foreign.pop(slot, None)
        self.known[row] = 0
        self.base[row] = row
        self.birth[row] = self.floor[row] = self.now
        self.common[row] = 0
        self.fenced[:, row] = 0
        self.now += 1

    # --- telling and learning -------------------------------------------------------------------------------------

    def release(self, row: int, lanes: Mask) -> Message:
        """Return what threads `lanes` `[threads]` of a row know and have done, and let time move on."""
        vector = self._joined(row, lanes)
        vector[: self.proxied, : self.threads][:, lanes] = self.now
        if self.planes > self.proxied:
            own = vector[self.proxied :, : self.threads]
            own[:, lanes] = np.maximum(own[:, lanes], self.fenced[:, row][:, lanes])
        self.now += 1
        return Message({**self._others(row, lanes), row: vector})

    def snapshot(self, row: int, thread: int, time: int) -> Message:
        """Return what a thread knows, and of its own what it had done at `time` (that of its last fence).

        What it has executed by now it tells in any case, and time moves on if that is kept apart.
        """
        slot = int(self.base[row, thread])
        vector = self.known[slot].copy()
        vector[: self.proxied, thread] = time
        if self.executed != KNOWN:
            vector[self.executed, thread] = self.now
            self.now += 1
        if self.planes > self.proxied:
            vector[self.proxied :, thread] = np.minimum(time, self.fenced[:, row, thread])
        return Message({**self.foreign.get(slot, {}), row: vector})

    def acquire(self, row: int, lanes: Mask, message: Message) -> None:
        """Let threads `lanes` `[threads]` of a row know what they are told."""
        base = self.base[row]
        own = message.vectors.get(row)
        others = {r: v for r, v in message.vectors.items() if r != row}
        for slot in _distinct(base[lanes]):
            if (own is None or (self.known[slot] >= own).all()) and not self._news(slot, others):
                continue
            learn = lanes & (base == slot)
            target = slot
            if np.count_nonzero(learn) != np.count_nonzero(base == slot):
                target = self._new_slot()
                self.known[target] = self.known[slot]
                if slot in self.foreign:
                    self.foreign[target] = dict(self.foreign[slot])
                base[learn] = target
            if own is not None:
                np.maximum(self.known[target], own, out=self.known[target])
            if others:
                self._learn(target, others)

    def nothing(self) -> Vector:
        """Return a vector that knows nothing."""
        return np.zeros((self.planes, self.columns), np.uint32)

    def with_column(self, message: Message, row: int, column: int, time: int) -> Message:
        """Return a message that also knows what a column of a row has done up to `time`."""
        vector = message.vectors[row].copy()
        known = vector[: self.proxied, column]
        np.maximum(known, np.uint32(time), out=known)
        return Message({**message.vectors, row: vector})

    def observed(self, message: Message) -> Message:
        """Return a message as what a relaxed read shows: `OBSERVED` and executed, and nothing known."""
        out: dict[int, Vector] = {}
        for row, vector in message.vectors.items():
            out[row] = np.zeros_like(vector)
            out[row][OBSERVED] = vector[KNOWN]
            self._execution(vector, out[row])
        return Message(out)

    def in_execution(self, message: Message) -> Message | None:
        """Return what of a message is order of execution alone; None where that is not kept apart."""
        if self.executed == KNOWN:
            return None
        out = {row: np.zeros_like(vector) for row, vector in message.vectors.items()}
        for row, vector in message.vectors.items():
            self._execution(vector, out[row])
        return Message(out)

    def _execution(self, vector: Vector, out: Vector) -> None:
        """Copy what of a vector is order of execution."""
        if self.executed != KNOWN:
            out[self.executed] = vector[self.executed]
        if self.behind is not None:
            out[self.behind] = vector[self.behind]

    def proxy_fence(self, row: int, lanes: Mask, planes: Iterable[int]) -> None:
        """Let the asynchronous proxy rely on all that threads of a row know and have done (`fence.proxy.async`)."""
        for plane in planes:
            self.fenced[plane - self.proxied, row][lanes] = self.now
            self._raise(row, lanes, KNOWN, plane)
        self.now += 1

    def fence(self, row: int, lanes: Mask) -> None:
        """Let threads of a row know what they have observed."""
        self._raise(row, lanes, OBSERVED, KNOWN)

    def _raise(self, row: int, lanes: Mask, source: int, target: int) -> None:
        """Raise one plane of what threads of a row know to another."""
        base = self.base[row]
        for slot in _distinct(base[lanes]):
            vectors = {row: self.known[slot], **self.foreign.get(slot, {})}
            if all((v[target] >= v[source]).all() for v in vectors.values()):
                continue
            for other, vector in vectors.items():
                vectors[other] = vector.copy()
                np.maximum(vector[target], vector[source], out=vectors[other][target])
            self.acquire(row, lanes & (base == slot), Message(vectors))

    # --- barriers of whole CTAs and warps ---------------------------------------------------------------------------

    def everyone(self, rows: NDArray[np.int64]) -> None:
        """Let all threads of each of `rows` know all of their row: a barrier of the CTA."""
        base = self.base[rows]
        first = base[:, :1]
        if (base == first).all():
            vectors = self.known[first[:, 0]]
        else:
            vectors = np.stack([self.known[_distinct(b)].max(axis=0) for b in base])
        if self.foreign:
            for row, slots in zip(rows.tolist(), base, strict=True):
                others = self._union(_distinct(slots))
                for slot in _distinct(slots):
                    self.foreign.pop(slot, None)
                if others:
                    self.foreign[row] = others
        vectors[:, : self.proxied, : self.threads] = self.now
        if self.planes > self.proxied:
            own = vectors[:, self.proxied :, : self.threads]
            np.maximum(own, self.fenced[:, rows].swapaxes(0, 1), out=own)
        self.known[rows] = vectors
        self.common[rows] = vectors[:, KNOWN]
        self.base[rows] = rows[:, None]
        self.floor[rows] = self.now
        self.now += 1

    def warp_sync(self, c0: int, t0: int, lanes: NDArray[np.bool_]) -> None:
        """Let the lanes of each warp that execute `bar.warp.sync` together know each other; `lanes` `[C, T]` from (c0, t0)."""
        warps = lanes.reshape(lanes.shape[0], -1, 32)
        full = warps.all(axis=2)
        for c, w in np.argwhere(warps.any(axis=2) & ~full).tolist():
            self.meet(c0 + c, t0 + 32 * w, warps[c, w])
        rows, at = np.nonzero(full)
        if rows.size:
            self._whole_warps(rows + c0, at + t0 // 32)

    def meet(self, row: int, first: int, lanes: Mask) -> None:
        """Let some threads of a row, from thread `first` on, know each other."""
        mine = np.zeros(self.threads, np.bool_)
        mine[first : first + lanes.size] = lanes
        self.acquire(row, mine, self.release(row, mine))

    def _whole_warps(self, rows: NDArray[np.int64], warps: NDArray[np.int64]) -> None:
        threads = 32 * warps[:, None] + np.arange(32)
        base = self.base[rows[:, None], threads]
        vectors = self.known[base[:, 0]]
        for i in np.flatnonzero((base != base[:, :1]).any(axis=1)).tolist():
            vectors[i] = self.known[_distinct(base[i])].max(axis=0)
        slots = self.rows + rows * self.warps + warps
        if self.foreign:
            for slot, mine in zip(slots.tolist(), base, strict=True):
                others = self._union(_distinct(mine))
                self.foreign.pop(slot, None)
                if others:
                    self.foreign[slot] = others
        each = np.arange(rows.size)[:, None]
        for plane in range(min(self.planes, self.proxied)):
            vectors[each, plane, threads] = self.now
        for plane in range(self.proxied, self.planes):
            fenced = self.fenced[plane - self.proxied][rows[:, None], threads]
            vectors[each, plane, threads] = np.maximum(vectors[each, plane, threads], fenced)
        self.known[slots] = vectors
        self.base[rows[:, None], threads] = slots[:, None]
        self.now += 1

    def learn(
        self, rows: NDArray[np.int64], warps: NDArray[np.int64], columns: NDArray[np.int64], times: NDArray[np.int64]
    ) -> None:
        """Let whole warps each know a column of their row up to a time."""
        if not rows.size:
            return
        threads = 32 * warps[:, None] + np.arange(32)
        base = self.base[rows[:, None], threads]
        new = self.known[base, KNOWN, columns[:, None]] < times[:, None]
        if not new.any():
            return
        for i in np.flatnonzero(new.any(axis=1) & (base != base[:, :1]).any(axis=1)).tolist():
            mine = np.zeros(self.threads, np.bool_)
            mine[threads[i]] = True
            vector = self.nothing()
            vector[: self.proxied, columns[i]] = times[i]
            self.acquire(int(rows[i]), mine, Message({int(rows[i]): vector}))
        plain = np.flatnonzero(new.any(axis=1) & (base == base[:, :1]).all(axis=1))
        slots = self.rows + rows[plain] * self.warps + warps[plain]
        vectors = self.known[base[plain, 0]]
        for plane in range(min(self.planes, self.proxied)):
            before = vectors[np.arange(plain.size), plane, columns[plain]]
            vectors[np.arange(plain.size), plane, columns[plain]] = np.maximum(before, times[plain])
        if self.foreign:
            for slot, old in zip(slots.tolist(), base[plain, 0].tolist(), strict=True):
                if old in self.foreign:
                    self.foreign[slot] = dict(self.foreign[old])
                elif slot != old:
                    self.foreign.pop(slot, None)
        self.known[slots] = vectors
        self.base[rows[plain][:, None], threads[plain]] = slots[:, None]

    # --- questions --------------------------------------------------------------------------------------------------

    def ordered(
        self, rows: Any, threads: Any, other_rows: Any, columns: Any, times: Any, plane: int = KNOWN
    ) -> NDArray[np.bool_]:
        """Say whether threads know what columns of (other) rows did at `times`; all arrays of one dimension."""
        slots = self.base[rows, threads]
        same = other_rows == rows
        plane = min(plane, self.planes - 1)
        mine = times > self.birth[rows]
        if plane >= self.proxied:
            mine &= self.fenced[plane - self.proxied, rows, np.minimum(threads, self.threads - 1)] >= times
        out = same & (((columns == threads) & mine) | (self.known[slots, plane, columns] >= times))
        if not self.foreign:
            return out
        for i in np.flatnonzero(~same).tolist():
            vector = self.foreign.get(int(slots[i]), {}).get(int(other_rows[i]))
            out[i] = vector is not None and vector[plane, columns[i]] >= times[i]
        return out

    # --- slots ------------------------------------------------------------------------------------------------------

    def _joined(self, row: int, lanes: Mask) -> Vector:
        slots = _distinct(self.base[row][lanes])
        return self.known[slots[0]].copy() if len(slots) == 1 else self.known[slots].max(axis=0)

    def _others(self, row: int, lanes: Mask) -> dict[int, Vector]:
        return self._union(_distinct(self.base[row][lanes])) if self.foreign else {}

    def _union(self, slots: list[int]) -> dict[int, Vector]:
        out = Message({})
        for slot in slots:
            if (mine := self.foreign.get(slot)) is not None:
                out = out.joined(Message(mine))
        return dict(out.vectors)

    def _news(self, slot: int, others: dict[int, Vector]) -> bool:
        mine = self.foreign.get(slot, {})
        return any(r not in mine or (mine[r] is not v and (mine[r] < v).any()) for r, v in others.items())

    def _learn(self, slot: int, others: dict[int, Vector]) -> None:
        self.foreign[slot] = Message(self.foreign.get(slot, {})).joined(Message(others)).vectors

    def _new_slot(self) -> int:
        if not self._free:
            used = set(np.unique(self.base).tolist())
            self._free = [s for s in range(self._dynamic, len(self.known)) if s not in used]
            for slot in self._free:
                self.foreign.pop(slot, None)
        if not self._free:
            old = len(self.known)
            self.known = np.concatenate([self.known, np.zeros((old, self.planes, self.columns), np.uint32)])
            self._free = list(range(old, 2 * old))
        return self._free.pop()


def _distinct(slots: NDArray[np.int64]) -> list[int]:
    """Return the distinct slots among some (at least one)."""
    first = slots[0]
    return [int(first)] if (slots == first).all() else np.unique(slots).tolist()
