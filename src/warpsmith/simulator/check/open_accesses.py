"""Loads and stores of tensor memory that no wait has covered, and what shows nevertheless that they are done.

The use of a register waits until its load has brought it (PTX ISA 9.7.18.6.4.5), so whoever knows of the use knows that the
load has read its cells. And a load shows that a store before it to one of its cells is done, since one path leads to the lanes
of a warp. To go on then does no harm on any hardware, though the manual asks for `wait::ld` and `wait::st`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from warpsmith.simulator.tensor_memory import overlap

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.simulator.program import Operation
    from warpsmith.simulator.tensor_memory import Cells

    Knows = Callable[["Warp"], int]
    """Of a warp, the time of the clocks up to which somebody knows what it has done."""

__all__ = ["OpenAccesses"]

Warp = tuple[int, int]
"""(row, warp)"""
Key = tuple["Operation", tuple["Cells", ...]]


@final
@dataclass(slots=True, eq=False)
class _Load:
    warp: Warp
    done: int | None = None
    """Time of the first use of its registers, or of a wait."""

    def known(self, knows: Knows) -> bool:
        return self.done is not None and self.done <= knows(self.warp)


@final
class OpenAccesses:
    """Loads and stores that their warp has not waited for. Of one instruction and the same cells only the last counts."""

    def __init__(self) -> None:
        self.loads: dict[Warp, dict[Key, _Load]] = {}
        self.stores: dict[Warp, dict[Key, list[_Load]]] = {}
        """Warp -> store -> loads of its cells behind it, by any warp."""
        self._ahead: set[tuple[Warp, Operation]] = set()
        """Loads about to run whose registers are used in the same block."""

    def loaded(self, warp: Warp, load: Operation, cells: list[Cells], now: int) -> None:
        """Note a load."""
        new = _Load(warp, now if (warp, load) in self._ahead else None)
        self._ahead.discard((warp, load))
        mine, key = self.loads.setdefault(warp, {}), (load, tuple(cells))
        mine.pop(key, None)  # so that the last stands last
        mine[key] = new
        for (row, _), stores in self.stores.items():
            for (_, theirs), seen in stores.items() if row == warp[0] else ():
                if _meet(cells, theirs):
                    seen.append(new)

    def stored(self, warp: Warp, store: Operation, cells: list[Cells]) -> None:
        """Note a store."""
        mine, key = self.stores.setdefault(warp, {}), (store, tuple(cells))
        mine.pop(key, None)
        mine[key] = []

    def used(self, warp: Warp, load: Operation, now: int, *, ahead: bool) -> None:
        """Note the first use of a load's registers; `ahead`: the load is still to run, in the block of the use."""
        if ahead:
            self._ahead.add((warp, load))
            return
        for (op, _), mine in self.loads.get(warp, {}).items():
            if op is load and mine.done is None:
                mine.done = now

    def waited(self, warp: Warp, now: int, *, loads: bool) -> None:
        """Close the loads (stores) of a warp: it has waited for them, or has ended."""
        if not loads:
            self.stores.pop(warp, None)
            return
        for load in self.loads.pop(warp, {}).values():
            load.done = now if load.done is None else load.done

    def done(self, warp: Warp, cells: Cells, knows: Knows, *, stores: bool) -> bool:
        """Say whether somebody knows that a warp's loads (stores) of these cells are done."""
        if stores:
            seen = [loads for (_, theirs), loads in self.stores.get(warp, {}).items() if _meet([cells], theirs)]
            return bool(seen) and all(any(load.known(knows) for load in loads) for loads in seen)
        mine = [load for (_, theirs), load in self.loads.get(warp, {}).items() if _meet([cells], theirs)]
        return bool(mine) and all(load.known(knows) for load in mine)

    def which(self, warp: Warp, cells: Cells, *, stores: bool) -> Operation | None:
        """Return the last load (store) of these cells that a warp has not waited for."""
        mine = (self.stores if stores else self.loads).get(warp, {})
        return next((op for op, theirs in reversed(mine) if _meet([cells], theirs)), None)


def _meet(some: list[Cells], others: tuple[Cells, ...]) -> bool:
    return any(overlap(a, b) for a in some for b in others)
