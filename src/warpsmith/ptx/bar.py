"""CTA barriers: `ptx.bar.sync`, `ptx.named_barrier`."""

from __future__ import annotations

from typing import final

from warpsmith.base.place import error
from warpsmith.dsl.registers import NegPred, Reg
from warpsmith.dsl.trace import current

__all__ = ["NamedBarrier", "arrive", "named_barrier", "sync"]

Pred = Reg | NegPred | None


def _check(n: object, count: object) -> None:
    if isinstance(n, int) and not 0 <= n <= 15:
        raise error(f"a CTA has the barriers 0 to 15, and this is {n}")
    if isinstance(count, int) and (count <= 0 or count % 32):
        raise error(
            f"wrong barrier argument: a barrier counts whole warps, and {count} is no multiple of 32",
            "give the number of threads that take part, a multiple of 32",
        )
    for what, value in (("number", n), ("thread count", count)):
        if value is not None and not isinstance(value, (int, Reg)):
            raise error(f"wrong barrier argument: the {what} is an int or a register, not {type(value).__name__}")


def sync(n: int | Reg = 0, count: int | Reg | None = None, *, pred: Pred = None) -> None:
    """Wait at barrier `n` until `count` threads (all of the CTA when None) are there."""
    _check(n, count)
    current().emit("bar.sync", (n,) if count is None else (n, count), pred)


def arrive(n: int | Reg, count: int | Reg, *, pred: Pred = None) -> None:
    """Arrive at barrier `n` of `count` threads without waiting."""
    _check(n, count)
    current().emit("bar.arrive", (n, count), pred)


@final
class NamedBarrier:
    """A barrier number with its thread count."""

    __slots__ = ("barrier_id", "count")

    def __init__(self, barrier_id: int | Reg, count: int | Reg | None = None) -> None:
        _check(barrier_id, count)
        self.barrier_id = barrier_id
        self.count = count

    def sync(self, *, pred: Pred = None) -> None:
        """Wait until all threads are there."""
        sync(self.barrier_id, self.count, pred=pred)

    def arrive(self, *, pred: Pred = None) -> None:
        """Arrive without waiting; needs a count."""
        if self.count is None:
            raise error("bar.arrive needs the number of threads", "write ptx.named_barrier(id, count=…)")
        arrive(self.barrier_id, self.count, pred=pred)


def named_barrier(barrier_id: int | Reg, *, count: int | Reg | None = None) -> NamedBarrier:
    """Return the barrier as an object."""
    return NamedBarrier(barrier_id, count)
