"""Who wrote a byte of global memory last: a watch on it, for one launch that is run again to find out."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Generator

    from warpsmith.base.source import Place
    from warpsmith.simulator.access import Located
    from warpsmith.simulator.asynchronous import AsyncOperation
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine

__all__ = ["LastWriter", "WriteWatch", "current_watch", "watching"]


@final
@dataclass(frozen=True, slots=True)
class LastWriter:
    """The last write of a byte."""

    instruction: str
    place: Place | None
    cta: tuple[int, int, int]
    thread: tuple[int, int, int] | None
    """None for an asynchronous operation."""
    asynchronous: str = ""
    """Who issued it, where it is one."""

    def __str__(self) -> str:
        where = f" at {self.place}" if self.place else ""
        who = f"thread {self.thread} of CTA {self.cta}" if self.thread else f"CTA {self.cta}, issued by {self.asynchronous}"
        return f"`{self.instruction}`{where}, by {who}"


@final
class WriteWatch:
    """Follows one byte of global memory by its index in the arena."""

    def __init__(self, byte: int) -> None:
        self.byte = byte
        self.last: LastWriter | None = None

    def stored(self, x: Lanes, at: Located, n: int) -> None:
        """Note stores of n bytes, which have been judged."""
        m = x.machine
        if at.space is not m.global_:
            return
        lanes = (at.index <= self.byte) & (self.byte < at.index + n)
        lanes = np.broadcast_to(lanes, x.shape) & (x.active() if at.mask is None else np.broadcast_to(at.mask, x.shape))
        if lanes.any():
            c, t = np.argwhere(lanes)[-1].tolist()
            bx, by, _ = m.block
            linear = x.t0 + t
            thread = linear % bx, linear // bx % by, linear // (bx * by)
            self.last = LastWriter(x.op.text, x.place, _numbers(m, int(m.row_cta[x.c0 + c])), thread)

    def completed(self, op: AsyncOperation, machine: Machine) -> None:
        """Note the bytes that an operation in flight has written."""
        for e in op.writes:
            if e.space is machine.global_ and e.start <= self.byte < e.stop:
                self.last = LastWriter(op.kind, op.place, _numbers(machine, op.cta), None, op.threads or "its thread")


def _numbers(machine: Machine, cta: int) -> tuple[int, int, int]:
    gx, gy, _ = machine.grid
    return cta % gx, cta // gx % gy, cta // (gx * gy)


_current: list[WriteWatch] = []


def current_watch() -> WriteWatch | None:
    """Return the watch that a machine made now is to use."""
    return _current[-1] if _current else None


@contextmanager
def watching(byte: int) -> Generator[WriteWatch]:
    """Watch a byte of the launches that are simulated in this process within the block."""
    watch = WriteWatch(byte)
    _current.append(watch)
    try:
        yield watch
    finally:
        _current.remove(watch)
