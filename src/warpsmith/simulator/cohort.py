"""Cohorts: threads at one program point. Splitting, merging, and their order in program time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.program import Block
    from warpsmith.simulator.registers import Rectangle

__all__ = ["Cohort", "Frames", "Point", "box_of", "merge", "narrow", "share_a_warp"]

Frames = tuple[int, ...]
"""Blocks that end with the calls in progress, outermost first."""
Point = tuple[int, Frames, int]
"""Block, frames, and the operation of the block to go on with."""
Trail = tuple[tuple[int, ...], ...]
"""Per frame and at last for the current function: the iteration of each loop around the point, outermost first."""


@final
class Cohort:
    """Threads `rect` where `mask` (`[C, T]`; None: all), about to run operation `start` of `block`."""

    __slots__ = (
        "bits",
        "block",
        "frames",
        "key",
        "mask",
        "rect",
        "released",
        "spin",
        "start",
        "timed_out",
        "trail",
        "turns",
        "warps",
    )

    def __init__(self, block: int, frames: Frames, trail: Trail, rect: Rectangle, mask: NDArray[np.bool_] | None) -> None:
        self.block = block
        self.frames = frames
        self.trail = trail
        self.rect = rect
        self.mask = mask
        self.start = 0
        self.turns = 0
        """Blocks run, and what waiting politely cost: cohorts that ran less go first, in coarse steps."""
        self.key: Any = None
        self.bits: int | None = None
        self.timed_out = False
        self.released = False
        """It goes on though lanes it should have met are missing."""
        self.spin: Any = None
        self.warps = count_warps(rect, mask)

    @property
    def point(self) -> Point:
        """Where it is."""
        return self.block, self.frames, self.start

    def active(self) -> NDArray[np.bool_]:
        """Return the mask of its threads `[C, T]`."""
        c0, c1, t0, t1 = self.rect
        return np.ones((c1 - c0, t1 - t0), np.bool_) if self.mask is None else self.mask

    def warp_bits(self) -> int:
        """Return the warps with a thread as a bit set: bit 32 · row + warp."""
        if self.bits is None:
            c0, c1, t0, t1 = self.rect
            warps = np.zeros((c1 - c0, 32), np.bool_)
            warps[:, t0 // 32 : t1 // 32] = True if self.mask is None else self.mask.reshape(c1 - c0, -1, 32).any(axis=2)
            self.bits = int.from_bytes(np.packbits(warps, bitorder="little").tobytes(), "little") << 32 * c0
        return self.bits

    def part(self, mask: NDArray[np.bool_]) -> Cohort:
        """Return a cohort of the lanes `mask` `[C, T]` of this one's rectangle, at the same point."""
        rect, inner = narrow(self.rect, mask)
        out = Cohort(self.block, self.frames, self.trail, rect, inner)
        out.start, out.turns, out.key = self.start, self.turns, self.key
        return out


def count_warps(rect: Rectangle, mask: NDArray[np.bool_] | None) -> int:
    """Return the number of warps with a thread."""
    c0, c1, t0, t1 = rect
    if mask is None:
        return (c1 - c0) * (t1 - t0) // 32
    return int(np.count_nonzero(mask.reshape(mask.shape[0], -1, 32).any(axis=2)))


def box_of(mask: NDArray[np.bool_]) -> Rectangle:
    """Return the smallest rectangle of whole warps around the true lanes (there must be one)."""
    warps: Any = mask.reshape(mask.shape[0], -1, 32).any(axis=2)
    rows = np.flatnonzero(warps.any(axis=1))
    columns = np.flatnonzero(warps.any(axis=0))
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]) * 32, int(columns[-1]) * 32 + 32


def narrow(rect: Rectangle, mask: NDArray[np.bool_]) -> tuple[Rectangle, NDArray[np.bool_] | None]:
    """Shrink a rectangle around the true lanes of its mask; the mask is None where all of the new one are true."""
    c0, _, t0, _ = rect
    r0, r1, u0, u1 = box_of(mask)
    inner = mask[r0:r1, u0:u1]
    return (c0 + r0, c0 + r1, t0 + u0, t0 + u1), None if inner.all() else inner.copy()


def merge(cohorts: list[Cohort], *, warpgroups: bool = False) -> list[Cohort]:
    """Join cohorts at one point: those that overlap, and those of one iteration that fill a common rectangle well enough.

    With `warpgroups` those that have warps of one warpgroup join, too. A cohort that joins no other is returned as it is.
    """
    if len(cohorts) == 1:
        return cohorts
    out: list[Cohort] = []
    for c in sorted(cohorts, key=lambda c: (c.rect[2], c.rect[0])):
        for i, other in enumerate(out):
            if (joined := _join(other, c, warpgroups)) is not None:
                out[i] = joined
                break
        else:
            out.append(c)
    return merge(out, warpgroups=warpgroups) if 1 < len(out) < len(cohorts) else out


def share_a_warp(a: Cohort, b: Cohort) -> bool:
    """Say whether two cohorts have threads of one warp."""
    return a.warp_bits() & b.warp_bits() != 0


def _share_a_warpgroup(a: Cohort, b: Cohort) -> bool:
    return _warpgroups(a.warp_bits()) & _warpgroups(b.warp_bits()) != 0


def _warpgroups(warps: int) -> int:
    """Return a bit set of warps with the first warp of each of their warpgroups in their place."""
    size = -(-warps.bit_length() // 32) * 4
    first = int.from_bytes(b"\x11" * size, "little")
    return (warps | warps >> 1 | warps >> 2 | warps >> 3) & first


def _join(a: Cohort, b: Cohort, warpgroups: bool) -> Cohort | None:
    c0, c1 = min(a.rect[0], b.rect[0]), max(a.rect[1], b.rect[1])
    t0, t1 = min(a.rect[2], b.rect[2]), max(a.rect[3], b.rect[3])
    overlap = share_a_warp(a, b)
    belong = overlap or (warpgroups and _share_a_warpgroup(a, b))
    area = (c1 - c0) * (t1 - t0) // 32
    if not belong and (a.trail != b.trail or 2 * (a.warps + b.warps) < area):
        return None
    full = a.mask is None and b.mask is None and not overlap and a.warps + b.warps == area
    mask: NDArray[np.bool_] | None = None
    if not full:
        mask = np.zeros((c1 - c0, t1 - t0), np.bool_)
        for c in (a, b):
            view = mask[c.rect[0] - c0 : c.rect[1] - c0, c.rect[2] - t0 : c.rect[3] - t0]
            if c.mask is None:
                view[...] = True
            else:
                view |= c.mask
        if mask.all():
            mask = None
    out = Cohort(a.block, a.frames, min(a.trail, b.trail), (c0, c1, t0, t1), mask)
    out.start, out.turns = a.start, min(a.turns, b.turns)
    out.timed_out = a.timed_out and b.timed_out
    out.released = a.released and b.released
    return out


def program_time(blocks: list[Block], cohort: Cohort) -> tuple[int, ...]:
    """Return where a cohort is in program time: positions and iterations of every level, outermost frame first."""
    if cohort.key is None:
        out: list[int] = []
        for block, iterations in zip((*cohort.frames, cohort.block), cohort.trail, strict=True):
            for position, iteration in zip(blocks[block].order, (*iterations, 0), strict=True):
                out += (position, iteration)
        out.append(cohort.start)
        cohort.key = tuple(out)
    return cohort.key


def next_trail(trail: tuple[int, ...], here: tuple[int, ...], there: tuple[int, ...]) -> tuple[int, ...]:
    """Return the iterations after the step from the block ordered `here` to the one ordered `there`."""
    common = 0
    for a, b in zip(here[:-1], there[:-1], strict=False):
        if a != b:
            break
        common += 1
    out = list(trail[:common]) + [0] * (len(there) - 1 - common)
    if common and there[common] <= here[common]:
        out[common - 1] += 1
    return tuple(out)
