"""Groups of asynchronous copies: which operations a thread has committed, and which it waits for (PTX ISA 9.7.10.28.3, .6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.asynchronous import AsyncOperation
    from warpsmith.simulator.lanes import Lanes

__all__ = ["CopyGroups", "Member", "whole_warps"]


@final
class Member:
    """An operation in flight with the threads `[C, T]` of a rectangle that issued it, and their open group then."""

    __slots__ = ("group", "lanes", "op", "read", "rect")

    def __init__(
        self, op: AsyncOperation, rect: tuple[int, int, int, int], lanes: NDArray[np.bool_], group: NDArray[np.int32]
    ) -> None:
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

    def blocked(
        self, rect: tuple[int, int, int, int], lanes: NDArray[np.bool_], keep: int | None, *, read: bool = False
    ) -> NDArray[Any]:
        """Return which of `lanes` still wait: for all but the latest `keep` groups, or (None) for every operation."""
        self.members = [m for m in self.members if not m.op.done]
        c0, c1, t0, t1 = rect
        out = np.zeros(lanes.shape, np.bool_)
        limit = None if keep is None else self.open[c0:c1, t0:t1] - keep
        for m in self.members:
            r0, r1, u0, u1 = m.rect
            if r1 <= c0 or c1 <= r0 or u1 <= t0 or t1 <= u0 or (read and m.read):
                continue
            a0, a1, b0, b1 = max(c0, m.rect[0]), min(c1, m.rect[1]), max(t0, m.rect[2]), min(t1, m.rect[3])
            mine = (slice(a0 - c0, a1 - c0), slice(b0 - t0, b1 - t0))
            its = (slice(a0 - m.rect[0], a1 - m.rect[0]), slice(b0 - m.rect[2], b1 - m.rect[2]))
            hit = m.lanes[its]
            if limit is not None:
                hit = hit & (m.group[its] < limit[mine])
            out[mine] |= hit
            if m.rect == rect and out.all():  # members of later groups can add nothing
                break
        out &= lanes
        return out if not out.any() else whole_warps(out) & lanes

    def prior(self, rect: tuple[int, int, int, int], lanes: NDArray[np.bool_]) -> list[AsyncOperation]:
        """Return the operations in flight that `lanes` issued."""
        return [m.op for m in self.members if not m.op.done and _overlap(m, rect, lanes)]


def whole_warps(lanes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Spread lanes `[C, T]` over their warps: a warp waits as one."""
    c, t = lanes.shape
    return np.repeat(lanes.reshape(c, t // 32, 32).any(-1), 32, axis=1)


def _overlap(m: Member, rect: tuple[int, int, int, int], lanes: NDArray[np.bool_]) -> bool:
    c0, c1, t0, t1 = rect
    a0, a1, b0, b1 = max(c0, m.rect[0]), min(c1, m.rect[1]), max(t0, m.rect[2]), min(t1, m.rect[3])
    if a0 >= a1 or b0 >= b1:
        return False
    its = m.lanes[a0 - m.rect[0] : a1 - m.rect[0], b0 - m.rect[2] : b1 - m.rect[2]]
    return bool((its & lanes[a0 - c0 : a1 - c0, b0 - t0 : b1 - t0]).any())
