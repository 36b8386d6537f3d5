"""Groups of asynchronous copies: which operations a thread has committed, and which it waits for (PTX ISA 9.7.10.28.3, .6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from warpsmith.simulator.outcome import DONE, Outcome, Wait

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.asynchronous import AsyncOperation
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.registers import Rectangle

__all__ = ["CopyGroups", "GroupWait", "Member"]


@final
class Member:
    """An operation in flight with the threads `[C, T]` of a rectangle that issued it, and their open group then."""

    __slots__ = ("group", "lanes", "op", "read", "rect")

    def __init__(self, op: AsyncOperation, rect: Rectangle, lanes: NDArray[np.bool_], group: NDArray[np.int32]) -> None:
        self.op = op
        self.rect = rect
        self.lanes = lanes
        self.group = group
        self.read = False
        """Its sources have been read (`wait_group.read` asks for no more)."""


@final
class CopyGroups:
    """Open group number of every thread, and the members in flight."""

    def __init__(self, rows: int, threads: int) -> None:
        self.open = np.zeros((rows, threads), np.int32)
        """Number of the group that the next operation joins: groups committed so far."""
        self.members: list[Member] = []

    def add(self, x: Lanes, op: AsyncOperation, lanes: NDArray[np.bool_]) -> Member:
        """Put an operation of `lanes` in their open groups."""
        c0, c1, t0, t1 = x.rect
        member = Member(op, x.rect, lanes.copy(), self.open[c0:c1, t0:t1].copy())
        self.members.append(member)
        return member

    def commit(self, x: Lanes) -> None:
        """Close the open group of the active lanes."""
        c0, c1, t0, t1 = x.rect
        self.open[c0:c1, t0:t1] += x.active()

    def wait(self, x: Lanes, keep: int | None, *, read: bool = False) -> Outcome:
        """Let the active lanes wait for all but their latest `keep` groups, or (None) for every operation.

        With `read` it is enough that the sources have been read. A warp waits as one.
        """
        self.members = [m for m in self.members if not m.op.done]
        c0, c1, t0, t1 = x.rect
        lanes = x.active()
        limit = None if keep is None else self.open[c0:c1, t0:t1] - keep
        waiting: list[tuple[Member, NDArray[np.bool_]]] = []
        for m in self.members:
            both = _common(m, x.rect)
            if both is None or (read and m.read):
                continue
            mine, its = both
            hit = m.lanes[its] & lanes[mine]
            if limit is not None:
                hit &= m.group[its] < limit[mine]
            if hit.any():
                held = np.zeros(x.shape, np.bool_)
                held[mine] = hit
                waiting.append((m, whole_warps(held)))
        if not waiting:
            return DONE
        condition = GroupWait(waiting, lanes, read)
        return Wait(condition, condition.ready(), retry=False)

    def prior(self, rect: Rectangle, lanes: NDArray[np.bool_]) -> list[AsyncOperation]:
        """Return the operations in flight that `lanes` issued."""
        return [m.op for m in self.members if not m.op.done and _overlap(m, rect, lanes)]


def whole_warps(lanes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Spread lanes `[C, T]` over their warps: a warp waits as one."""
    c, t = lanes.shape
    return np.repeat(lanes.reshape(c, t // 32, 32).any(-1), 32, axis=1)


def _common(m: Member, rect: Rectangle) -> tuple[tuple[slice, slice], tuple[slice, slice]] | None:
    """Return the threads that a rectangle shares with a member's, as windows of the one and of the other."""
    c0, c1, t0, t1 = rect
    a0, a1, b0, b1 = max(c0, m.rect[0]), min(c1, m.rect[1]), max(t0, m.rect[2]), min(t1, m.rect[3])
    if a0 >= a1 or b0 >= b1:
        return None
    mine = (slice(a0 - c0, a1 - c0), slice(b0 - t0, b1 - t0))
    return mine, (slice(a0 - m.rect[0], a1 - m.rect[0]), slice(b0 - m.rect[2], b1 - m.rect[2]))


def _overlap(m: Member, rect: Rectangle, lanes: NDArray[np.bool_]) -> bool:
    both = _common(m, rect)
    return both is not None and bool((m.lanes[both[1]] & lanes[both[0]]).any())


@final
class GroupWait:
    """The condition of lanes that wait for groups. The members are fixed: a thread that waits issues nothing."""

    timed = False

    def __init__(self, waiting: list[tuple[Member, NDArray[np.bool_]]], lanes: NDArray[np.bool_], read: bool) -> None:
        self.waiting, self.lanes, self.read = waiting, lanes.copy(), read
        self.holding = np.zeros(lanes.shape, np.int32)
        """Per lane: the operations that hold it."""
        for _, held in waiting:
            self.holding += held
        self.free = self.lanes & (self.holding == 0)

    def ready(self) -> NDArray[np.bool_]:
        """Return the lanes that no operation holds any more."""
        left = [w for w in self.waiting if not (w[0].op.done or (self.read and w[0].read))]
        if len(left) != len(self.waiting):
            for m, held in self.waiting:
                if m.op.done or (self.read and m.read):
                    self.holding -= held
            self.waiting = left
            self.free = self.lanes & (self.holding == 0)
        return self.free

    def describe(self) -> str:
        """Say what is in flight."""
        kinds = sorted({m.op.kind for m, _ in self.waiting})
        return f"{len(self.waiting)} operations in flight ({', '.join(kinds)})"
