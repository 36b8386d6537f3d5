"""Groups of asynchronous copies: which operations a thread has committed, and which it waits for (PTX ISA 9.7.10.28.3, .6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from warpsmith.simulator.commits import CommitWatch
from warpsmith.simulator.outcome import DONE, Outcome, Wait

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.asynchronous import AsyncOperation
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.registers import Rectangle

    Window = tuple[slice, slice]

__all__ = ["CopyGroups", "GroupWait", "Held", "Member"]


@final
class Member:
    """Operations of one instruction, with the threads `[C, T]` of its rectangle that issued them and their open groups."""

    __slots__ = ("group", "lanes", "ops", "owner", "read", "rect")

    def __init__(
        self,
        ops: list[AsyncOperation],
        rect: Rectangle,
        lanes: NDArray[np.bool_],
        group: NDArray[np.int32],
        owner: NDArray[np.int16] | None,
    ) -> None:
        self.ops = ops
        self.rect = rect
        self.lanes = lanes
        self.group = group
        self.owner = owner
        """Which of several operations is that of a lane."""
        self.read = False
        """Its sources have been read (`wait_group.read` asks for no more)."""

    @property
    def left(self) -> int:
        """Operations that are in flight."""
        return sum(not op.done for op in self.ops)

    def undone(self) -> NDArray[np.bool_]:
        """Return the lanes whose operation is in flight."""
        if self.owner is None:
            return np.zeros_like(self.lanes) if self.ops[0].done else self.lanes
        return self.lanes & np.array([not op.done for op in self.ops], np.bool_)[self.owner]


@final
class CopyGroups:
    """Open group number of every thread, and the members in flight."""

    def __init__(self, rows: int, threads: int, kind: str) -> None:
        self.kind = kind
        self.commits = CommitWatch(rows, threads)
        self.open = np.zeros((rows, threads), np.int32)
        """Number of the group that the next operation joins: groups committed so far."""
        self.members: list[Member] = []

    def add(self, x: Lanes, op: AsyncOperation, lanes: NDArray[np.bool_]) -> Member:
        """Put an operation of `lanes` in their open groups."""
        return self._add(x, [op], lanes.copy(), None)

    def add_each(self, x: Lanes, ops: list[AsyncOperation], owner: NDArray[np.int16]) -> Member:
        """Put operations in the open groups of their lanes: `ops[owner]` is that of a lane `[C, T]`, -1 none."""
        return self._add(x, ops, owner >= 0, owner)

    def _add(self, x: Lanes, ops: list[AsyncOperation], lanes: NDArray[np.bool_], owner: NDArray[np.int16] | None) -> Member:
        c0, c1, t0, t1 = x.rect
        member = Member(ops, x.rect, lanes, self.open[c0:c1, t0:t1].copy(), owner)
        self.members.append(member)
        self.commits.add(x, lanes)
        return member

    def commit(self, x: Lanes) -> None:
        """Close the open group of the active lanes."""
        c0, c1, t0, t1 = x.rect
        self.commits.commit(x, self.kind)
        self.open[c0:c1, t0:t1] += x.active()

    def wait(self, x: Lanes, keep: int | None, *, read: bool = False) -> Outcome:
        """Let the active lanes wait for all but their latest `keep` groups, or (None) for every operation.

        None closes the open group as well (9.7.10.28.3.3). With `read` it is enough that the sources have been read. A warp
        waits as one.
        """
        self.members = [m for m in self.members if m.left]
        if keep is not None:
            self.commits.wait(x, self.kind)
        c0, c1, t0, t1 = x.rect
        lanes = x.active()
        limit = None if keep is None else self.open[c0:c1, t0:t1] - keep
        if keep is None:
            self.open[c0:c1, t0:t1] += lanes
            self.commits.forget(x)
        waiting: list[Held] = []
        for m in self.members:
            both = _common(m, x.rect)
            if both is None or (read and m.read):
                continue
            mine, its = both
            hit = m.lanes[its] & lanes[mine]
            if limit is not None:
                hit &= m.group[its] < limit[mine]
            if hit.any():
                waiting.append(Held(m, hit, mine, its, x.shape))
        if not waiting:
            return DONE
        condition = GroupWait(waiting, lanes, read)
        return Wait(condition, condition.ready(), retry=False)

    def prior(self, rect: Rectangle, lanes: NDArray[np.bool_]) -> list[AsyncOperation]:
        """Return the operations in flight that `lanes` issued."""
        out: list[AsyncOperation] = []
        for m in self.members:
            both = _common(m, rect)
            if both is None or not m.left:
                continue
            hit = m.lanes[both[1]] & lanes[both[0]]
            if m.owner is None:
                out += m.ops if hit.any() else []
            else:
                out += [m.ops[i] for i in np.unique(m.owner[both[1]][hit]).tolist() if not m.ops[i].done]
        return out


def whole_warps(lanes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Spread lanes `[C, T]` over their warps: a warp waits as one."""
    c, t = lanes.shape
    return np.repeat(lanes.reshape(c, t // 32, 32).any(-1), 32, axis=1)


def _common(m: Member, rect: Rectangle) -> tuple[Window, Window] | None:
    """Return the threads that a rectangle shares with a member's, as windows of the one and of the other."""
    c0, c1, t0, t1 = rect
    a0, a1, b0, b1 = max(c0, m.rect[0]), min(c1, m.rect[1]), max(t0, m.rect[2]), min(t1, m.rect[3])
    if a0 >= a1 or b0 >= b1:
        return None
    mine = (slice(a0 - c0, a1 - c0), slice(b0 - t0, b1 - t0))
    return mine, (slice(a0 - m.rect[0], a1 - m.rect[0]), slice(b0 - m.rect[2], b1 - m.rect[2]))


@final
class Held:
    """The lanes of a waiting rectangle that a member holds."""

    __slots__ = ("hit", "its", "left", "member", "mine", "warps")

    def __init__(
        self,
        member: Member,
        hit: NDArray[np.bool_],
        mine: tuple[slice, slice],
        its: tuple[slice, slice],
        shape: tuple[int, int],
    ) -> None:
        self.member, self.hit, self.mine, self.its = member, hit, mine, its
        self.left = -1
        self.warps = np.zeros(shape, np.bool_)
        """Lanes of the warps that are held."""

    def update(self) -> bool:
        """Look which operations are still in flight; say whether that changed."""
        left = self.member.left
        if left == self.left:
            return False
        self.left = left
        self.warps[...] = False
        self.warps[self.mine] = self.hit & self.member.undone()[self.its]
        self.warps = whole_warps(self.warps)
        return True


@final
class GroupWait:
    """The condition of lanes that wait for groups. The members are fixed: a thread that waits issues nothing."""

    timed = False

    def __init__(self, waiting: list[Held], lanes: NDArray[np.bool_], read: bool) -> None:
        self.waiting, self.lanes, self.read = waiting, lanes.copy(), read
        self.free = np.zeros_like(lanes)

    def ready(self) -> NDArray[np.bool_]:
        """Return the lanes that no operation holds any more."""
        left = [w for w in self.waiting if not (self.read and w.member.read)]
        changed = len(left) != len(self.waiting)
        for w in left:
            changed |= w.update()
        if changed:
            self.waiting = [w for w in left if w.left]
            held = np.zeros_like(self.lanes)
            for w in self.waiting:
                held |= w.warps
            self.free = self.lanes & ~held
        return self.free

    def describe(self) -> str:
        """Say what is in flight."""
        kinds = sorted({op.kind for w in self.waiting for op in w.member.ops if not op.done})
        return f"{sum(w.member.left for w in self.waiting)} operations in flight ({', '.join(kinds)})"
