"""Functions that are active more than once.

Their registers and parameters have one place, so that those of outer calls are saved aside. Their local variables have a frame
for each call on the thread's stack, where `alloca` allocates, too: addresses of an outer call's variables stay good in inner
calls (PTX ISA 5.1.5: local memory with the ABI is on the stack). A call gives back what it and `alloca` took (9.7.12).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.scope import Signature

__all__ = ["Recursion"]

LIMIT = 512
"""Calls of one function that may be active at once: deeper than hardware's default stack allows."""


@final
class Recursion:
    """What outer calls of recursive functions hold, by function and depth; every thread has its own column."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.saved: dict[tuple[str, int], list[NDArray[Any]]] = {}
        self.tops: list[NDArray[np.int64]] = []
        """By the calls around: the tops `[rows, threads]` of stacks when a function was called."""

    def _places(self, signature: Signature) -> list[NDArray[Any]]:
        """Return views `[n, rows, threads]` of what a call of the function may change."""
        m = self.machine
        out: list[NDArray[Any]] = [m.registers.banks[bank][first:end] for bank, first, end in signature.slots if end > first]
        start, stop = signature.param_range
        if stop > start:
            memory = m.call_params.data.reshape(m.rows, m.threads, m.call_params.row)
            out.append(np.moveaxis(memory[:, :, start:stop], -1, 0))
        if signature.frame is not None:
            out.append(m.frames[signature.frame][None])
        return out

    def enter(self, x: Lanes, signature: Signature, depth: int, calls: int) -> None:
        """Save what the active lanes' outermost `depth` calls hold, before the function is entered once more.

        `calls`: how many calls are around, of any function.
        """
        if depth > LIMIT:
            message = f"`{signature.name}` calls itself more than {LIMIT} times"
            x.finding("out-of-bounds", message, repair="bound the depth of the recursion", stop=True)
            return
        if depth:
            self._save(x, signature, depth)
        if self.machine.stacks:
            while len(self.tops) <= calls:
                self.tops.append(np.zeros_like(self.machine.local_top))
            self._copy(x, [self.machine.local_top[None]], [self.tops[calls][None]])
        if signature.frame is not None:
            self._frame(x, signature, depth)

    def _save(self, x: Lanes, signature: Signature, depth: int) -> None:
        places = self._places(signature)
        key = (signature.name, depth)
        if key not in self.saved:
            self.saved[key] = [np.zeros_like(p) for p in places]
        self._copy(x, places, self.saved[key])

    def _frame(self, x: Lanes, signature: Signature, depth: int) -> None:
        """Give a call its local variables."""
        assert signature.frame is not None
        m, window = self.machine, (slice(x.c0, x.c1), slice(x.t0, x.t1))
        top, align = m.local_top[window], signature.frame_align
        start = -(-top // align) * align
        full = (start + signature.local_bytes > m.local.size) & x.active()
        if full.any():
            message = (
                f"the local variables of `{signature.name}` ({signature.local_bytes} bytes), active {depth + 1} times, "
                f"need more than the {m.local.size} bytes of local memory of a thread"
            )
            x.finding("out-of-bounds", message, lanes=full, repair="bound the depth of the recursion", stop=True)
            return
        np.copyto(m.frames[signature.frame][window], start, where=x.active())
        np.copyto(top, start + signature.local_bytes, where=x.active())

    def leave(self, x: Lanes, signature: Signature, depth: int, calls: int) -> None:
        """Bring back what the calls at `depth` held, in the active lanes, and the stack that `calls` around had."""
        if self.machine.stacks:
            self._copy(x, [self.tops[calls][None]], [self.machine.local_top[None]])
        if depth > 0:
            self._copy(x, self.saved[signature.name, depth], self._places(signature))

    @staticmethod
    def _copy(x: Lanes, source: list[NDArray[Any]], target: list[NDArray[Any]]) -> None:
        window = (slice(None), slice(x.c0, x.c1), slice(x.t0, x.t1))
        for a, b in zip(source, target, strict=True):
            np.copyto(b[window], a[window], where=x.active())
