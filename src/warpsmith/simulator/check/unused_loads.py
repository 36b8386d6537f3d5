"""Loads from global memory whose value a thread does nothing with: such a read takes part in no race.

Compilers let more threads load than have use for the value. Tiles of Triton that are smaller than a CTA are held by several
threads, all of which load them and one of which stores; a load is hoisted above the branch that needs it. In a kernel that
works in place the thread that stores races with the others' loads, and no result depends on what those read.

    ld.global.b32 %r2, [%rd1];  mul.f32 %r3, %r2, %r2;  @%p1 st.global.b32 [%rd1], %r3;      %p1 false: not used

A register counts as used where anything but register arithmetic and the stored value of `st` reads it (an address, a guard, a
branch, a call, a shuffle), or arithmetic whose result is used. Where none of what comes of a load is used this way, it goes to
stores alone; a thread uses it if it executes one of them. That is known when its CTA ends: races with such reads are kept until
then. A load that goes nowhere at all (compilers leave none) and a strong one, which may order something, count as any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from warpsmith.simulator.check.entries import agents_of
from warpsmith.simulator.check.sites import is_strong
from warpsmith.simulator.program import Address, Branch, Call, Indexed, Reg

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from warpsmith.simulator.check.race_report import Accesses, Pairs
    from warpsmith.simulator.check.races import RaceWatch
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.program import Ending, Operation, Program

    Mask = NDArray[np.bool_]
    Cell = tuple[str, int]

__all__ = ["UnusedLoads"]


class _Kept(NamedTuple):
    """A race that counts if its reader uses what it has read."""

    row: int
    thread: int
    load: Operation
    tell: Callable[[], None]


@final
class UnusedLoads:
    """Which loads of a launch go to stores alone, and which threads have executed those."""

    def __init__(self, races: RaceWatch, program: Program) -> None:
        self.races = races
        self._operations, self._used = _used(program)
        self._shape = (races.machine.rows, races.machine.threads)
        self._stores: dict[int, Mask | None] = {}
        """By operation: stores that the value of a load may go to alone; the threads of each row that have executed them."""
        loads = [op for op in self._operations if _may_be_unused(op) and not op.writes() <= self._used]
        if loads:
            reached = self._reached({cell for op in loads for cell in op.writes()})
            self._stores = dict.fromkeys(self._fed(reached))
        self._ends: dict[int, list[int] | None] = {}
        self._kept: dict[tuple[int, ...], _Kept] = {}
        if self._stores:
            races.machine.end_hooks.append(self._row_end)
            races.machine.row_hooks.append(self._begin)

    def stored(self, x: Lanes, lanes: Mask) -> None:
        """Note lanes `[C, T]` that execute a store."""
        if (key := id(x.op)) not in self._stores:
            return
        if (done := self._stores[key]) is None:
            done = self._stores[key] = np.zeros(self._shape, np.bool_)
        done[x.c0 : x.c1, x.t0 : x.t1] |= lanes

    def _begin(self, row: int) -> None:
        for done in self._stores.values():
            if done is not None:
                done[row] = False

    # --- races ------------------------------------------------------------------------------------------------------

    def keep(
        self, x: Lanes, accesses: Accesses, pairs: Pairs, bad: Mask, operations: list[Operation] | None,
        report: Callable[..., None],
    ) -> Mask:  # fmt: skip
        """Return the bad pairs to report now; those with a read that may be of no use are reported when its CTA ends."""
        if not self._stores or accesses.shadow is self.races.shared or accesses.verb == "writes":
            return bad
        now = bad.copy()
        op, mask = x.op, x.mask
        for i in np.flatnonzero(bad).tolist():
            found = self._reader(accesses, pairs, i, op, operations)
            if found is None or self._ends_of(found[0]) is None:
                continue
            now[i] = False
            load, row, thread = found
            key = (id(op), id(load), row, thread, *(int(w[i]) for w in pairs.where[: accesses.at.ndim - 2]))
            if key not in self._kept:
                one = np.zeros_like(bad)
                one[i] = True

                def tell(one: Mask = one) -> None:
                    before = x.op, x.mask
                    x.op, x.mask = op, mask
                    report(self.races, x, accesses, pairs, one, operations)
                    x.op, x.mask = before

                self._kept[key] = _Kept(row, thread, load, tell)
        return now

    def _reader(
        self, accesses: Accesses, pairs: Pairs, i: int, op: Operation, operations: list[Operation] | None
    ) -> tuple[Operation, int, int] | None:
        """Return the load of a pair, its row and thread; None where that is no thread of the same CTA."""
        row, thread = int(pairs.rows[i]), int(pairs.threads[i])
        columns = self.races.columns
        other_row, other = divmod(int(agents_of(pairs.entries[i])), columns.count)
        if other_row != row or other >= columns.threads:
            return None
        if accesses.verb == "reads":
            return operations[int(pairs.where[0][i])] if operations is not None else op, row, thread
        site = self.races.sites.at(int(pairs.entries[i]) & 0xFFFF)
        return None if site is None else (site.operation, row, other)

    def _row_end(self, row: int) -> None:
        """Report what was kept of a CTA that has ended, of readers that have used their values."""
        for key, kept in [(k, v) for k, v in self._kept.items() if v.row == row]:
            del self._kept[key]
            ends = self._ends_of(kept.load)
            if ends is None or any((done := self._stores[e]) is not None and done[row, kept.thread] for e in ends):
                kept.tell()

    def _ends_of(self, load: Operation) -> list[int] | None:
        """Return the stores that a load's value goes to; None if it goes elsewhere, too, or nowhere at all."""
        if id(load) not in self._ends:
            self._ends[id(load)] = self._follow(load)
        return self._ends[id(load)]

    def _follow(self, load: Operation) -> list[int] | None:
        if not _may_be_unused(load):
            return None
        reached = self._reached(set(load.writes()))
        if not reached.isdisjoint(self._used):
            return None
        return self._fed(reached) or None

    def _fed(self, cells: set[Any]) -> list[int]:
        """Return the stores that write the value of one of some registers."""
        return [id(op) for op in self._operations if _stores(op) and not cells.isdisjoint(_stored(op))]

    def _reached(self, cells: set[Any]) -> set[Any]:
        """Return registers and those that arithmetic computes of them."""
        more = True
        while more:
            more = False
            for op in self._operations:
                if _arithmetic(op) and not cells.isdisjoint(op.reads()) and not op.writes() <= cells:
                    cells |= op.writes()
                    more = True
        return cells


def _may_be_unused(op: Operation) -> bool:
    """Say whether an instruction is a weak load that may read global memory."""
    spaces = {w.partition("::")[0] for w in op.text.split(".")}
    return op.opcode in ("ld", "ldu") and spaces.isdisjoint({"shared", "local", "param", "const"}) and not is_strong(op)


def _arithmetic(op: Operation) -> bool:
    """Say whether an instruction does nothing but write registers of its own lane."""
    return op.kind in ("pure", "copy")


def _stores(op: Operation) -> bool:
    """Say whether an instruction is a store whose execution is noted: synchronous, to shared or global memory."""
    words = op.text.split(".")
    return op.opcode == "st" and "async" not in words and not {"local", "param"} & {w.partition("::")[0] for w in words}


def _stored(op: Operation) -> frozenset[Cell]:
    """Return the registers whose value a store writes, unless they are part of its address or its guard."""
    out: set[Cell] = set()
    other: set[Cell] = set() if op.guard is None else {(op.guard.bank, op.guard.slot)}
    for i, operand in enumerate(op.operands):
        cells = {(bank, slot) for bank, slots in op.operand_slots(i).items() for slot in slots}
        (other if isinstance(operand, Address) else out).update(cells)
    return frozenset(out - other)


def _ending_reads(ending: Ending) -> set[Cell]:
    """Return the registers that the end of a block reads."""
    if isinstance(ending, Branch | Indexed):
        read: list[Any] = [ending.predicate if isinstance(ending, Branch) else ending.index]
    elif isinstance(ending, Call):
        read = [ending.target, *ending.arguments]
    else:
        return set()
    return {(r.bank, r.slot + k) for r in read if isinstance(r, Reg) for k in range(r.count)}


def _used(program: Program) -> tuple[list[Operation], set[Any]]:
    """Return the operations of a program and the registers whose value is used otherwise than by a store alone."""
    operations: list[Operation] = []
    used: set[Any] = set()
    for block in program.blocks:
        operations += block.operations
        if (last := getattr(block.ending, "operation", None)) is not None:
            operations.append(last)
        used |= _ending_reads(block.ending)
    writers: dict[Any, list[Operation]] = {}
    for op in operations:
        if _arithmetic(op):
            for cell in op.writes():
                writers.setdefault(cell, []).append(op)
        else:
            used |= op.reads() - _stored(op) if _stores(op) else op.reads()
    waiting = list(used)
    while waiting:
        for op in writers.get(waiting.pop(), ()):
            fresh = op.reads() - used
            used |= fresh
            waiting += fresh
    return operations, used
