"""Functions that are active more than once: registers and parameters have one place, so that outer calls are saved aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.base.errors import CapabilityError

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

    def _places(self, signature: Signature) -> list[NDArray[Any]]:
        """Return views `[n, rows, threads]` of what a call of the function may change."""
        m = self.machine
        out: list[NDArray[Any]] = [m.registers.banks[bank][first:end] for bank, first, end in signature.slots if end > first]
        start, stop = signature.param_range
        if stop > start:
            memory = m.call_params.data.reshape(m.rows, m.threads, m.call_params.row)
            out.append(np.moveaxis(memory[:, :, start:stop], -1, 0))
        return out

    def enter(self, x: Lanes, signature: Signature, depth: int) -> None:
        """Save what the active lanes' outermost `depth` calls hold, before the function is entered once more."""
        if depth == 0:
            return
        if signature.local_bytes:
            raise CapabilityError(f"simulator: recursion of `{signature.name}`, which has local variables, is not modelled")
        if depth > LIMIT:
            message = f"`{signature.name}` calls itself more than {LIMIT} times"
            x.finding("out-of-bounds", message, repair="bound the depth of the recursion", stop=True)
            return
        places = self._places(signature)
        key = (signature.name, depth)
        if key not in self.saved:
            self.saved[key] = [np.zeros_like(p) for p in places]
        self._copy(x, places, self.saved[key])

    def leave(self, x: Lanes, signature: Signature, depth: int) -> None:
        """Bring back what the calls at `depth` held, in the active lanes."""
        if depth > 0:
            self._copy(x, self.saved[signature.name, depth], self._places(signature))

    @staticmethod
    def _copy(x: Lanes, source: list[NDArray[Any]], target: list[NDArray[Any]]) -> None:
        window = (slice(None), slice(x.c0, x.c1), slice(x.t0, x.t1))
        for a, b in zip(source, target, strict=True):
            np.copyto(b[window], a[window], where=x.active())
