"""Helpers of asynchronous copies: lanes to bytes, bytes to extents, and the barrier a copy signals."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.asynchronous import AsyncOperation, Extent
from warpsmith.simulator.barrier_access import complete_tx, find, note_arrivers
from warpsmith.simulator.check.transit import Issuer
from warpsmith.simulator.findings import threads_text
from warpsmith.simulator.mbarrier import Arrival
from warpsmith.simulator.memory import OUTSIDE, PENDING_READ, PENDING_WRITE
from warpsmith.simulator.units import units_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.mbarrier import MBarrier
    from warpsmith.simulator.memory import Space

    Mask = NDArray[np.bool_]

_READ = "async-read-before-complete"

__all__ = ["Lane", "claim", "extents_of", "follow", "lanes_of", "signal", "span_of", "watch", "who", "within"]


class Lane(NamedTuple):
    """An active lane of a rectangle: its place in `[C, T]`, and a mask of it alone."""

    c: int
    t: int
    row: int
    mask: Mask

    def at(self, value: Any) -> int:
        """Return its element of `[C, T]` (or of a scalar)."""
        a = np.asarray(value)
        return int(a) if a.ndim == 0 else int(a[min(self.c, a.shape[0] - 1), min(self.t, a.shape[1] - 1)])


def lanes_of(x: Lanes) -> Iterator[Lane]:
    """Yield the active lanes; copies of the bulk kind are issued by one lane or a few."""
    for c, t in np.argwhere(x.active()).tolist():
        mask = np.zeros(x.shape, np.bool_)
        mask[c, t] = True
        yield Lane(c, t, x.c0 + c, mask)


@contextmanager
def within(x: Lanes, lanes: Mask) -> Generator[None, None, None]:
    """Run part of an instruction for some of its lanes: `with within(x, lanes): …`."""
    before, x.mask = x.mask, lanes
    yield
    x.mask = before


def span_of(x: Lanes, lane: Lane, space: str | None, address: int, size: int) -> tuple[Space, int] | None:
    """Return (space, flat index) of `size` bytes at a 16-byte aligned address; None when reported as out of bounds."""
    with within(x, lane.mask):
        found: list[tuple[Space, int]] = []
        for offset in (0, size - 16):
            where = np.full(x.shape, address + offset, np.int64)
            for at in x.locate(space, where, 16):
                ok = lane.mask if at.mask is None else at.mask
                if not ok[lane.c, lane.t]:
                    return None
                index = int(at.index[lane.c, lane.t])
                if at.space.shadow[index] & OUTSIDE or at.space.shadow[index + 15] & OUTSIDE:
                    x.machine.check.outside(x, at.space, where, 16, lane.mask)
                    return None
                found.append((at.space, index))
    if found and found[0][0].shadow[found[0][1] : found[0][1] + size].max() >= OUTSIDE:
        with within(x, lane.mask):
            memory, start = found[0]
            gap = int(np.argmax(memory.shadow[start : start + size] >= OUTSIDE))
            x.machine.check.outside(x, memory, np.full(x.shape, address + gap, np.int64), 16, lane.mask)
        return None
    return found[0] if found else None


def extents_of(space: Space, index: NDArray[np.int64], n: int) -> list[Extent]:
    """Return items of n bytes at flat indices as extents, neighbours joined."""
    flat = np.sort(index, axis=None)
    if flat.size == 0:
        return []
    breaks = np.flatnonzero(np.diff(flat) > n)
    starts = flat[np.concatenate(([0], breaks + 1))]
    stops = flat[np.concatenate((breaks, [flat.size - 1]))] + n
    return [Extent(space, a, b) for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]


def watch(x: Lanes, lane: Lane, index: int | None, op: AsyncOperation) -> MBarrier | None:
    """Tie `op` to the barrier at a flat index, which it will signal; report when there is none."""
    if index is None:
        return None
    barrier = find(x, index, lane.mask, "a copy signals")
    if barrier is not None:
        barrier.signals.append((op, barrier.phase))
        note_arrivers(x, barrier, lane.mask)
        if x.machine.peers is not None:
            x.machine.peers.touch(x, lane.row, barrier.row, lane.mask, barrier)
            x.machine.peers.signal([lane.row], barrier)
        if x.machine.checking and not barrier.fenced:
            barrier.fenced = True
            x.finding(
                "uninitialised-barrier",
                f"`{op.kind}` signals mbarrier [{barrier.address:#x}], whose initialisation no fence has published",
                lanes=lane.mask,
                severity="portability",
                related=[Related("initialised here", barrier.place)],
                repair="Put fence.mbarrier_init.release.cluster between mbarrier.init and the barrier of the CTA.",
            )
    return barrier


def signal(machine: Machine, barrier: MBarrier | None, op: AsyncOperation, amount: int) -> None:
    """Complete `amount` bytes of `op` on its barrier."""
    if barrier is None:
        return
    barrier.signals = [(other, phase) for other, phase in barrier.signals if other is not op]
    if units_of(machine).barriers.get(barrier.index, int(machine.row_cta[barrier.row])) is barrier:
        complete_tx(machine, barrier, amount, Arrival(f"{amount} bytes completed by {op.kind}", amount, op.place, op.threads))


def claim(x: Lanes, lane: Lane, op: AsyncOperation) -> None:
    """Report bytes of an operation about to be issued that others in flight still own."""
    if not x.machine.checking:
        return
    for extents, flag, kind in ((op.writes, PENDING_READ | PENDING_WRITE, "async-overwrite"), (op.reads, PENDING_WRITE, _READ)):
        for e in extents:
            if e.space.name != "shared" or not (e.space.shadow[e.start : e.stop] & flag).any():
                continue
            others = x.machine.asynchronous.touching(e.space, e.start, e.stop, write_only=kind == _READ)
            if not others:
                continue
            verb = "overwrites" if kind != _READ else "reads"
            owner = "still writes" if kind == _READ or others[0].writes else "still reads"
            x.finding(
                kind,
                f"`{op.kind}` {verb} shared memory from {e.start % e.space.row:#x} on, which `{others[0].kind}` {owner}",
                lanes=lane.mask,
                related=[Related(f"`{o.kind}` issued by {o.threads}", o.place) for o in others[:2]],
                repair="Wait until the operation in flight is done with the buffer (its mbarrier phase or group) first.",
            )


def follow(x: Lanes, lane: Lane, op: AsyncOperation, barrier: MBarrier, *, proxied: bool = True, strength: int = 0) -> None:
    """Note the bytes of an operation about to be issued that will signal a barrier, and judge them."""
    races = x.machine.races
    if races is None:
        return
    transit = races.transit
    issuer, mark = Issuer(lane.mask, lane.row, (x.t0 + lane.t,), proxied), transit.of_barrier(barrier)
    for e in op.reads:
        if races.shadow_of(e.space) is not None:
            transit.reads(x, issuer, e.space, transit.extent(e), [mark])
    for e in op.writes:
        if races.shadow_of(e.space) is not None:
            transit.writes(x, issuer, e.space, transit.extent(e), mark, strength=strength)
    op.followed = True


def who(x: Lanes, lane: Lane) -> str:
    """Return the text that names a lane."""
    return threads_text(x, lane.mask)
