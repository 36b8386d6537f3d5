"""Tensor memory: 128 lanes x 512 columns of 32 bits on each multiprocessor, allocated by columns (PTX ISA 9.7.18.1, 9.7.18.7).

The CTAs resident on one multiprocessor share its columns. One of them at a time holds the right to allocate: from its first
`tcgen05.alloc` until it relinquishes the right or ends. An address is `lane << 16 | column`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from warpsmith.simulator.tensor_shapes import SHAPES, columns_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from warpsmith.base.source import Place
    from warpsmith.simulator.asynchronous import AsyncOperation
    from warpsmith.simulator.machine import Machine

__all__ = [
    "COLUMNS", "LANES", "Allocation", "Cells", "Request", "TensorMemory", "overlap", "tensor_memory_of", "touched",
]  # fmt: skip

LANES, COLUMNS = 128, 512


@final
class Cells(NamedTuple):
    """Lanes `low:high` and columns `first:stop` of a CTA that an operation reads or writes."""

    row: int
    low: int
    high: int
    first: int
    stop: int
    written: bool


@final
@dataclass(slots=True)
class Allocation:
    """Columns that one `tcgen05.alloc` of a CTA was given."""

    number: int
    row: int
    cta: int
    """Linear in the grid."""
    base: int
    columns: int
    warp: int
    place: Place | None
    threads: str
    freed: Place | None = None
    live: bool = True


@final
@dataclass(slots=True)
class Request:
    """One CTA of a pair has come to a collective `tcgen05.alloc` or `dealloc` and waits for its peer."""

    what: str
    columns: int
    address: int
    warp: int
    place: Place | None
    threads: str
    base: int | None = None
    """Set when both have come: the first column."""


@final
@dataclass(slots=True)
class _Right:
    """Who may allocate on a multiprocessor."""

    row: int = -1
    cta: int = -1


@final
class TensorMemory:
    """The tensor memory of all multiprocessors, and who holds its columns."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.multiprocessors = min(machine.rows, machine.device.multiprocessors)
        self.words: NDArray[np.uint32] = np.zeros((self.multiprocessors, LANES, COLUMNS), np.uint32)
        self.undefined: NDArray[np.bool_] | None = np.ones(self.words.shape, np.bool_) if machine.checking else None
        self.owner = np.zeros((self.multiprocessors, COLUMNS), np.int32)
        """Number of the allocation that holds a column; 0: none."""
        self.last = np.zeros((self.multiprocessors, COLUMNS), np.int32)
        """Number of the allocation that held it last."""
        self.allocations: list[Allocation | None] = [None]
        self.rights = [_Right() for _ in range(self.multiprocessors)]
        self.relinquished: dict[int, tuple[int, Place | None]] = {}
        """Row -> (CTA, where) of a relinquished right."""
        self.requests: dict[int, Request] = {}
        self.stores: dict[tuple[int, int], list[AsyncOperation]] = {}
        """(row, warp) -> its stores that no wait has covered; their payload are the cells."""
        self.commits = np.zeros((machine.rows, machine.threads // 32), np.int64)
        """Commits that each warp has executed."""
        self.taken: Callable[[int, int, int], None] | None = None
        """Called with the row and the columns of every allocation."""
        self.version = 0
        """Moves with everything that a waiting alloc or dealloc may be looking at."""
        machine.row_hooks.append(self._fresh)

    def _fresh(self, row: int) -> None:
        self.relinquished.pop(row, None)
        self.requests.pop(row, None)
        for key in [k for k in self.stores if k[0] == row]:
            del self.stores[key]

    def multiprocessor(self, row: int) -> int:
        """Return the multiprocessor of a resident CTA."""
        return row % self.machine.device.multiprocessors

    def peer(self, row: int) -> int | None:
        """Return the row of the other CTA of a pair: their ranks differ in the last bit. None: the cluster has none."""
        first = int(self.machine.cluster_first[row])
        rank = (row - first) ^ 1
        return first + rank if rank < self.machine.cluster_size else None

    def cta(self, row: int) -> str:
        """Name the CTA of a row."""
        return "cta ({},{},{})".format(*self.machine.cta_of(row))

    def settle(self, row: int, cells: list[Cells]) -> None:
        """Carry out the stores in flight of cells that a warp is about to load or store: one path leads to its lanes."""
        for ops in [ops for (other, _), ops in self.stores.items() if other == row]:
            late = [i for i, op in enumerate(ops) if not op.done and any(overlap(a, b) for a in cells for b in op.payload)]
            for op in ops[: late[-1] + 1] if late else ():
                if not op.done:
                    self.machine.asynchronous.complete(op, self.machine)

    # --- allocation -----------------------------------------------------------------------------------------------

    def may_allocate(self, row: int) -> bool:
        """Say whether no other CTA of the multiprocessor holds the right to allocate."""
        right = self.rights[self.multiprocessor(row)]
        gone = right.row < 0 or int(self.machine.row_cta[right.row]) != right.cta or not self.machine.live[right.row].any()
        return gone or right.row == row

    def fit(self, rows: list[int], columns: int) -> int | None:
        """Return the first of `columns` neighbouring columns that are free on the multiprocessors of all `rows`."""
        free = (self.owner[[self.multiprocessor(r) for r in rows]] == 0).all(axis=0)
        for base in range(0, COLUMNS - columns + 1, 32):
            if free[base : base + columns].all():
                return base
        return None

    def take(self, row: int, base: int, request: Request) -> None:
        """Give columns to a CTA; what they hold is undefined."""
        sm, stop = self.multiprocessor(row), base + request.columns
        cta = int(self.machine.row_cta[row])
        new = Allocation(
            len(self.allocations), row, cta, base, request.columns, request.warp, request.place, request.threads
        )  # fmt: skip
        self.allocations.append(new)
        self.owner[sm, base:stop] = new.number
        self.rights[sm] = _Right(row, cta)
        if self.taken is not None:
            self.taken(row, base, stop)
        if self.undefined is not None:
            self.undefined[sm, :, base:stop] = True
        self.changed()

    def give_back(self, allocation: Allocation, place: Place | None) -> None:
        """Free the columns of an allocation."""
        sm, stop = self.multiprocessor(allocation.row), allocation.base + allocation.columns
        self.owner[sm, allocation.base : stop] = 0
        self.last[sm, allocation.base : stop] = allocation.number
        allocation.live, allocation.freed = False, place
        self.changed()

    def relinquish(self, row: int, place: Place | None) -> None:
        """Let other CTAs of the multiprocessor allocate."""
        self.relinquished[row] = (int(self.machine.row_cta[row]), place)
        right = self.rights[self.multiprocessor(row)]
        if right.row == row:
            right.row = -1
        self.changed()

    def held(self, row: int) -> list[Allocation]:
        """Return the allocations that a CTA holds."""
        cta = int(self.machine.row_cta[row])
        return [a for a in self.allocations[1:] if a is not None and a.live and (a.row, a.cta) == (row, cta)]

    def held_columns(self, row: int) -> NDArray[np.bool_]:
        """Return which columns `[512]` a CTA holds."""
        out = np.zeros(COLUMNS, np.bool_)
        for a in self.held(row):
            out[a.base : a.base + a.columns] = True
        return out

    def changed(self) -> None:
        """Say that something has changed which an alloc or dealloc may wait for."""
        self.version += 1
        self.machine.memory_version += 1

    def holders(self, row: int) -> set[int]:
        """Return the rows of the CTAs that hold columns, or the right to allocate, on the multiprocessor of a CTA."""
        sm = self.multiprocessor(row)
        numbers = [int(n) for n in np.unique(self.owner[sm]) if n]
        right = set() if self.may_allocate(row) else {self.rights[sm].row}
        return {a.row for a in (self.allocations[n] for n in numbers) if a is not None} | right

    def describe(self, row: int) -> str:
        """Say who holds columns and the right to allocate on the multiprocessor of a CTA."""
        sm = self.multiprocessor(row)
        numbers = [int(n) for n in np.unique(self.owner[sm]) if n]
        parts = [
            f"{self.cta(a.row)} holds {a.columns} columns" for a in (self.allocations[n] for n in numbers) if a is not None
        ]  # fmt: skip
        if not self.may_allocate(row):
            parts.append(f"{self.cta(self.rights[sm].row)} has not relinquished the right to allocate")
        return "; ".join(parts) or "all columns are free"


def overlap(a: Cells, b: Cells) -> bool:
    """Say whether two share a cell."""
    return a.row == b.row and a.low < b.high and b.low < a.high and a.first < b.stop and b.first < a.stop


def touched(found: Any, i: int, form: Any, split: int) -> list[Cells]:
    """Return the cells that the load or store of the `i`-th warp of some touches (`meanings.tcgen05_access`)."""
    row, lane, column = int(found.rows[i]), int(found.lane[i]), int(found.column[i])
    ranges = columns_of(form.shape, form.repetitions, split, halves=form.halves)
    return [Cells(row, lane, lane + SHAPES[form.shape][0], column + a, column + b, written=False) for a, b in ranges]


def tensor_memory_of(machine: Machine) -> TensorMemory:
    """Return the tensor memory of a machine; it is made at the first use."""
    found = machine.state.get("tensor memory")
    if found is None:
        found = machine.state["tensor memory"] = TensorMemory(machine)
    return found
