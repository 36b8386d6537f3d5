"""Findings about tensor memory: loads and stores not waited for, columns outside an allocation, operations that overlap.

A load claims what it reads until its warp has executed `wait::ld`, a store what it writes until `wait::st`: whether it has
completed by then does not matter, so that the answer is the same under every schedule. Products and copies claim their
cells while they are in flight. Claims are kept per 16 lanes and column, one bit for each warp.

What hardware is not known to get wrong is of severity portability: loads and stores of warps follow each other (the warps that
may access a lane share one path to it), and what `check.open_accesses` shows to be done needs no wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.check.open_accesses import OpenAccesses
from warpsmith.simulator.check.tensor_order import TensorOrder
from warpsmith.simulator.findings import warps_text
from warpsmith.simulator.tensor_memory import COLUMNS, Cells, TensorMemory, overlap, tensor_memory_of, touched

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.base.source import Place
    from warpsmith.simulator.async_access import Lane
    from warpsmith.simulator.asynchronous import AsyncOperation
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.program import Operation

    Mask = NDArray[np.bool_]

__all__ = ["TensorCheck", "tensor_check"]

_LIFE, _WAIT, _ALIAS, _EMPTY = "tmem-lifetime", "missing-tcgen05-wait", "tmem-alias", "empty-commit"


class _Flight(NamedTuple):
    op: AsyncOperation
    cells: list[Cells]


@final
class TensorCheck:
    """One per launch."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.memory: TensorMemory = tensor_memory_of(machine)
        shape = (self.memory.multiprocessors, 8, COLUMNS)
        self.reading = np.zeros(shape, np.uint64)
        self.storing = np.zeros(shape, np.uint64)
        """Bit w: warp w has loads (stores) there that no wait has covered."""
        self.claimed: set[tuple[int, int, bool]] = set()
        """(row, warp, stores) of the warps that have bits there."""
        self.open = OpenAccesses()
        self.flights: list[_Flight] = []
        self.issuers: dict[int, dict[int, tuple[str, Place | None]]] = {}
        """Row -> thread -> the last operation it has issued that a commit could cover."""
        self.order = None if machine.races is None else TensorOrder(machine.races, machine.threads // 32)
        self.memory.taken = self._taken
        machine.row_hooks.append(self._fresh)
        machine.end_hooks.append(self._row_end)

    def _fresh(self, row: int) -> None:
        self.issuers.pop(row, None)
        if self.order is not None:
            self.order.forget(row)

    def _taken(self, row: int, first: int, stop: int) -> None:
        if self.order is not None:
            self.order.forget(row, first, stop)

    def _row_end(self, row: int) -> None:
        """Report columns that an ended CTA has not freed, and free them."""
        tm = self.memory
        for a in tm.held(row):
            self.machine.findings.report(
                _LIFE,
                f"{tm.cta(row)} ended and has not freed {a.columns} columns of tensor memory",
                a.place,
                a.threads,
                repair="Execute tcgen05.dealloc in the warp that has allocated, when nobody uses the columns any more.",
            )
            tm.give_back(a, None)
        sm = tm.multiprocessor(row)
        for key in [k for k in self.claimed if k[0] == row]:
            bit = ~(np.uint64(1) << np.uint64(key[1]))
            held = self.storing if key[2] else self.reading
            held[sm] &= bit
            self.claimed.discard(key)
            self.open.waited((row, key[1]), self._now(), loads=not key[2])

    # --- columns outside an allocation ------------------------------------------------------------------------------

    def outside(self, x: Lanes, row: int, first: int, stop: int, lanes: Mask) -> bool:
        """Report an access to columns `first:stop` that the CTA of `row` does not hold; say whether it can be carried out.

        It can where the CTA has freed them and they are nobody's: what they hold is still there.
        """
        tm = self.memory
        sm = tm.multiprocessor(row)
        held = tm.held_columns(row)
        wrong = next((c for c in range(first, min(stop, COLUMNS)) if not held[c]), COLUMNS)
        text = f"`{x.op.text}` accesses columns {first} to {stop - 1} of tensor memory"
        related: list[Related] = []
        have, freed = tm.held(row), False
        if wrong >= COLUMNS:
            text += f", which has {COLUMNS}"
        elif (other := tm.allocations[int(tm.owner[sm, wrong])]) is not None:
            text += f"; column {wrong} belongs to {tm.cta(other.row)}"
            related.append(Related(f"allocated by {other.threads}", other.place))
        elif (old := tm.allocations[int(tm.last[sm, wrong])]) is not None and old.row == row and not have:
            text += f"; column {wrong} has been freed"
            freed = stop <= COLUMNS and not tm.owner[sm, first:stop].any()
            related.append(Related("freed here", old.freed))
        elif not have:
            text += f"; {tm.cta(row)} has allocated none"
        else:
            text += f"; {tm.cta(row)} holds " + ", ".join(f"columns {a.base} to {a.base + a.columns - 1}" for a in have)
        related += [Related(f"{a.columns} columns allocated by {a.threads}", a.place) for a in have[:2]]
        repair = "Use columns between the address that tcgen05.alloc wrote and its end, and before tcgen05.dealloc only."
        x.finding(_LIFE, text, lanes=lanes, related=related, repair=repair, stop=not freed)
        return freed

    def freeing(self, x: Lanes, row: int, first: int, stop: int, lanes: Mask) -> None:
        """Report operations that use columns about to be freed."""
        cells = Cells(row, 0, 128, first, stop, written=True)
        for flight in self._in_flight():
            if any(overlap(cells, c) for c in flight.cells):
                text = f"columns {first} to {stop - 1} are freed while `{flight.op.kind}` in flight uses them"
                at = [Related(f"`{flight.op.kind}` issued by {flight.op.threads}", flight.op.place)]
                repair = "Wait for the barrier of a tcgen05.commit behind the last operation before tcgen05.dealloc."
                x.finding(_LIFE, text, lanes=lanes, related=at, repair=repair)
        for stores in (False, True):
            self._unwaited(x, cells, "frees", lanes, self._bits(cells, stores=stores), stores=stores)

    # --- loads and stores of warps ----------------------------------------------------------------------------------

    def load(self, x: Lanes, found: Any, form: Any, split: int) -> None:
        """Judge and note the loads of warps."""
        for i in range(len(found.c)):
            lanes, row, warp = self._one(x, found, i)
            bit, spans = np.uint64(1 << warp), touched(found, i, form, split)
            self.open.loaded((row, warp), x.op, spans, self._now())
            for cells in spans:
                self._unwaited(x, cells, "reads", lanes, self._bits(cells, stores=True), stores=True, path=True)
                self._alias(x, cells, "reads", lanes)
                self._order(x, cells, row, warp, lanes)
                self._view(self.reading, cells)[...] |= bit
            self.claimed.add((row, warp, False))

    def store(self, x: Lanes, found: Any, form: Any, split: int) -> None:
        """Judge and note the stores of warps."""
        for i in range(len(found.c)):
            lanes, row, warp = self._one(x, found, i)
            bit, spans = 1 << warp, touched(found, i, form, split)
            self.open.stored((row, warp), x.op, spans)
            for cells in spans:
                for stores in (False, True):
                    others = self._bits(cells, stores=stores) & ~bit
                    self._unwaited(x, cells, "overwrites", lanes, others, stores=stores, path=True)
                self._alias(x, cells, "writes", lanes)
                self._order(x, cells._replace(written=True), row, warp, lanes)
                self._view(self.storing, cells)[...] |= np.uint64(bit)
            self.claimed.add((row, warp, True))

    def _order(self, x: Lanes, cells: Cells, row: int, warp: int, lanes: Mask) -> None:
        if self.order is not None:
            threads = warps_text(self.machine, row, warp, 1)
            self.order.touched(x, cells, (row, 32 * warp, warp), lanes, threads, None)

    @staticmethod
    def _one(x: Lanes, found: Any, i: int) -> tuple[Mask, int, int]:
        c, w = int(found.c[i]), int(found.w[i])
        lanes = np.zeros(x.shape, np.bool_)
        lanes[c, 32 * w : 32 * w + 32] = True
        return lanes & x.active(), int(found.rows[i]), int(found.warps[i])

    def used(self, x: Lanes, lanes: Mask, load: Operation, *, ahead: bool) -> None:
        """Note that warps use registers of a load that they have not waited for; `ahead`: they execute it and then use it."""
        for c, w in np.argwhere(x.warps(lanes).any(-1)).tolist():
            self.open.used((x.c0 + c, x.t0 // 32 + w), load, self._now(), ahead=ahead)

    def _now(self) -> int:
        return 0 if self.order is None else self.order.clocks.now

    def waited(self, x: Lanes, lanes: Mask, *, loads: bool) -> None:
        """Give back what warps have loaded (stored): they have waited for it."""
        held = self.reading if loads else self.storing
        for c, w in np.argwhere(x.warps(lanes).any(-1)).tolist():
            row, warp = x.c0 + c, x.t0 // 32 + w
            self.open.waited((row, warp), self._now(), loads=loads)
            if (row, warp, not loads) in self.claimed:
                self.claimed.discard((row, warp, not loads))
                quarter = 2 * (warp % 4)
                held[self.memory.multiprocessor(row), quarter : quarter + 2] &= ~np.uint64(1 << warp)

    def fence(self, x: Lanes, *, before: bool) -> None:
        """Note a fence around the synchronisation of threads."""
        if self.order is not None:
            self.order.fence(x, before=before)

    # --- products and copies ----------------------------------------------------------------------------------------

    def issued(self, x: Lanes, lane: Lane, op: AsyncOperation, cells: list[Cells], number: int) -> None:
        """Judge and note the cells of a product or copy that is put in flight; `number` is that of its commit."""
        thread = x.t0 + lane.t
        for c in cells if self.order is not None else ():
            assert self.order is not None
            self.order.touched(x, c, (lane.row, thread, thread // 32), lane.mask, op.threads, number)
        for c in cells:
            verb = "overwrites" if c.written else "reads"
            self._unwaited(x, c, verb, lane.mask, self._bits(c, stores=True), stores=True)
            if c.written:
                self._unwaited(x, c, verb, lane.mask, self._bits(c, stores=False), stores=False)
        self.flights.append(_Flight(op, cells))
        self.issuers.setdefault(lane.row, {})[x.t0 + lane.t] = (x.op.text, x.place)

    def committed(self, x: Lanes, lane: Lane) -> None:
        """Report a commit of a thread that has never issued anything, where another of its CTA has."""
        issuers = self.issuers.get(lane.row, {})
        if not issuers or x.t0 + lane.t in issuers:
            return
        thread, (text, place) = next(iter(issuers.items()))
        x.finding(
            _EMPTY,
            f"thread {x.t0 + lane.t} commits and has issued nothing: a commit covers what its own thread has issued",
            lanes=lane.mask,
            related=[Related(f"`{text}` by warp {thread // 32} lane {thread % 32}", place)],
            repair="Let the thread that issues tcgen05.mma or cp execute tcgen05.commit as well (elect it once).",
        )

    def _in_flight(self) -> list[_Flight]:
        if self.flights and any(f.op.done for f in self.flights):
            self.flights = [f for f in self.flights if not f.op.done]
        return self.flights

    # --- reports ------------------------------------------------------------------------------------------------------

    def _view(self, held: NDArray[np.uint64], c: Cells) -> NDArray[np.uint64]:
        return held[self.memory.multiprocessor(c.row), c.low // 16 : -(-c.high // 16), c.first : c.stop]

    def _alias(self, x: Lanes, cells: Cells, verb: str, lanes: Mask) -> None:
        """Report a load (store) of cells that a product or copy in flight writes (reads or writes)."""
        for flight in self._in_flight():
            for c in flight.cells:
                if not overlap(cells, c) or (verb == "reads" and not c.written):
                    continue
                does = "writes" if c.written else "reads"
                text = (
                    f"`{x.op.text}` {verb} columns {cells.first} to {cells.stop - 1} of tensor memory while "
                    f"`{flight.op.kind}` in flight {does} columns {c.first} to {c.stop - 1}"
                )
                at = [Related(f"`{flight.op.kind}` issued by {flight.op.threads}", flight.op.place)]
                repair = "Wait for the barrier that a tcgen05.commit behind the operation signals."
                x.finding(_ALIAS, text, lanes=lanes, related=at, repair=repair)
                return

    def _bits(self, cells: Cells, *, stores: bool) -> int:
        """Return the warps, one bit each, with stores (loads) of cells that no wait has covered."""
        return int(np.bitwise_or.reduce(self._view(self.storing if stores else self.reading, cells), axis=None))

    def _unwaited(
        self, x: Lanes, cells: Cells, verb: str, lanes: Mask, bits: int, *, stores: bool, path: bool = False
    ) -> None:  # fmt: skip
        """Report an access to what warps have loaded or stored and not waited for; `path`: by a load or store."""
        if not bits:
            return
        warps = [w for w in range(bits.bit_length()) if bits >> w & 1]
        bad = [] if path else [w for w in warps if not self._done(x, lanes, cells, w, stores=stores)]
        warp = (bad or warps)[0]
        op = self.open.which((cells.row, warp), cells, stores=stores)
        text = op.text if op is not None else "tcgen05.st" if stores else "tcgen05.ld"
        wait = "wait::st" if stores else "wait::ld"
        message = (
            f"`{x.op.text}` {verb} columns {cells.first} to {cells.stop - 1} of tensor memory, which warp {warp} has "
            f"{'stored' if stores else 'loaded'} without tcgen05.{wait} behind"
        )
        place = None if op is None else op.place
        at = [Related(f"`{text}` by {warps_text(self.machine, cells.row, warp, 1)}", place)]
        repair = f"Put tcgen05.{wait}.sync.aligned behind the {'store' if stores else 'load'}, before others are let on."
        severity = "error" if bad else "portability"
        x.finding(_WAIT, message, lanes=lanes, severity=severity, related=at, repair=repair)

    def _done(self, x: Lanes, lanes: Mask, cells: Cells, warp: int, *, stores: bool) -> bool:
        """Say whether the active lanes know that a warp's loads (stores) of cells are done."""
        c, t = np.argwhere(lanes)[0].tolist()
        who, order = (x.c0 + c, x.t0 + t), self.order
        return order is not None and self.open.done(
            (cells.row, warp), cells, lambda other: order.knows(*who, other), stores=stores
        )


def tensor_check(machine: Machine) -> TensorCheck:
    """Return the check of a machine; it is made at the first use."""
    found = machine.state.get("tensor check")
    if found is None:
        found = machine.state["tensor check"] = TensorCheck(machine)
    return found
