"""What a warp has done to registers, followed block by block as it runs.

Whether a warp may touch a register depends only on the instructions it has executed, not on when operations complete. So each
warp carries a state, and each block maps states to states. The map is remembered: at run time a block costs one table look-up
per distinct state. A guarded instruction counts where its predicate is true: as it is on entry to the block, or, where the
block sets such a predicate first, at its end. One whose predicate changes both before and after it in one block is not
followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, final

import numpy as np

from warpsmith.base.findings import Related

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from warpsmith.base.findings import Severity
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.program import Block, Operation, Reg

    Mask = NDArray[np.bool_]

__all__ = ["Cell", "Event", "Fault", "RegisterWatch", "Rules"]

Cell = tuple[str, int]


class Fault(NamedTuple):
    """A finding: the instruction at fault, the other party, and what is wrong between them."""

    operation: Operation
    other: Operation | None
    message: str
    repair: str
    ahead: bool = False
    """The other party stands before it in the same block."""


class Event(NamedTuple):
    """An instruction of a block that matters, with the registers concerned that it reads and writes."""

    operation: Operation
    reads: frozenset[Cell]
    writes: frozenset[Cell]
    guard: Reg | None = None
    """A predicate whose value on entry to the block is the one that decides; of a late block, its value at the end."""


class Rules(Protocol):
    """What is followed: which registers, from which state on, and what a block does to a state."""

    kind: str
    severity: Severity
    cells: frozenset[Cell]

    @property
    def start(self) -> Hashable:
        """The state of a warp that has done nothing."""
        ...

    def always(self, op: Operation) -> bool:
        """Say whether an instruction matters whatever its guard and its registers."""
        ...

    def follow(self, state: Any, events: tuple[Event, ...]) -> tuple[Hashable, tuple[Fault, ...]]:
        """Return the state after the events, and the faults on the way."""
        ...

    def met(self, x: Lanes, fault: Fault, lanes: Mask, *, behind: bool) -> None:
        """Note that lanes run into a fault; `behind`: their block has run."""
        ...


_GUARDS = 62
"""Guarded instructions of a block that are followed."""


@final
class RegisterWatch:
    """Follows the warps of a launch."""

    def __init__(self, machine: Machine, rules: Rules) -> None:
        self.machine, self.rules = machine, rules
        shape = (machine.rows, machine.threads // 32)
        self.state = np.zeros(shape, np.int32)
        self.entered = np.full(shape, -1, np.int32)
        """The block a warp has been followed through and not yet left."""
        self.states: list[Hashable] = [rules.start]
        self.number: dict[Hashable, int] = {rules.start: 0}
        self.memo: dict[tuple[int, int, int], tuple[int, tuple[Fault, ...]]] = {}
        self.events: dict[int, tuple[Event, ...]] = {}
        self.late: set[int] = set()
        """Blocks that set the predicate of an instruction that matters: they are followed when they have run."""
        machine.row_hooks.append(self._fresh)

    def _fresh(self, row: int) -> None:
        self.state[row] = 0
        self.entered[row] = -1

    def enter(self, x: Lanes, block: Block) -> None:
        """Follow the active warps of `x` through a block they are about to run."""
        if self._of(block) and block.index not in self.late:
            self._follow_block(x, block)

    def _of(self, block: Block) -> tuple[Event, ...]:
        events = self.events.get(block.index)
        if events is None:
            events = self.events[block.index] = self._events(block)
        return events

    def _follow_block(self, x: Lanes, block: Block) -> None:
        events = self._of(block)
        window = (slice(x.c0, x.c1), slice(x.t0 // 32, x.t1 // 32))
        state, entered = self.state[window], self.entered[window]
        warps = (x.warps(x.active()).any(-1)) & (entered != block.index)
        if not warps.any():
            return
        entered[warps] = block.index
        guarded = self._guarded(x, events)
        for before, taken in sorted(set(zip(state[warps].tolist(), guarded[warps].tolist(), strict=True))):
            key = (before, block.index, taken)
            if key not in self.memo:
                after, faults = self.rules.follow(self.states[before], _executed(events, taken))
                self.memo[key] = (self._numbered(after), faults)
            number, faults = self.memo[key]
            mine = warps & (state == before) & (guarded == taken)
            for fault in faults:
                lanes = x.threads_of(mine[..., None]) & x.active()
                self._report(x, fault, lanes)
                self.rules.met(x, fault, lanes, behind=block.index in self.late)
            state[mine] = -1 - number  # not to be taken for a state that is still to be followed
        np.copyto(state, -1 - state, where=state < 0)

    def _guarded(self, x: Lanes, events: tuple[Event, ...]) -> NDArray[np.int64]:
        """Return, per warp `[C, W]`, the guarded events that an active lane executes: bit i is the i-th of them."""
        active = x.active()
        out = np.zeros((x.c1 - x.c0, (x.t1 - x.t0) // 32), np.int64)
        for i, g in enumerate(e.guard for e in events if e.guard is not None):
            value = self.machine.registers.view(g.bank, g.slot, None, g.dtype, x.rect)
            out |= x.warps(active & (value != g.negated)).any(-1).astype(np.int64) << i
        return out

    def leave(self, x: Lanes, block: Block) -> None:
        """Note that the active warps have run their block."""
        if self._of(block) and block.index in self.late:
            self._follow_block(x, block)
        window = (slice(x.c0, x.c1), slice(x.t0 // 32, x.t1 // 32))
        self.entered[window][x.warps(x.active()).any(-1)] = -1

    def _numbered(self, state: Hashable) -> int:
        if state not in self.number:
            self.number[state] = len(self.states)
            self.states.append(state)
        return self.number[state]

    def _events(self, block: Block) -> tuple[Event, ...]:
        last = getattr(block.ending, "operation", None)
        operations = [*block.operations, *([last] if last is not None else [])]
        out: list[Event] = []
        changed: set[Cell] = set()
        guards = 0
        for i, op in enumerate(operations):
            reads, writes = self.rules.cells & op.reads(), self.rules.cells & op.writes()
            if self.rules.always(op):
                out.append(Event(op, reads, writes))
            elif reads or writes:
                cell = None if op.guard is None else (op.guard.bank, op.guard.slot)
                if op.guard is None:
                    out.append(Event(op, reads, writes))
                elif cell in changed and not any(cell in o.writes() for o in operations[i:]):
                    self.late.add(block.index)
                if op.guard is not None and guards < _GUARDS:
                    out.append(Event(op, reads, writes, op.guard))
                    guards += 1
            changed |= op.writes()
        return tuple(e for e in out if e.guard is None or self._settled(block.index, e, operations))

    def _settled(self, index: int, e: Event, operations: list[Operation]) -> bool:
        """Say whether a guard has, when the block is followed, the value that it has at the instruction."""
        assert e.guard is not None
        cell, at = (e.guard.bank, e.guard.slot), next(i for i, op in enumerate(operations) if op is e.operation)
        others = operations[at:] if index in self.late else operations[:at]
        return not any(cell in op.writes() for op in others)

    def _report(self, x: Lanes, fault: Fault, lanes: Mask) -> None:
        before, x.op = x.op, fault.operation
        x.finding(
            self.rules.kind,
            fault.message,
            lanes=lanes,
            severity=self.rules.severity,
            related=(Related(f"`{fault.other.text}` stands here", fault.other.place),) if fault.other is not None else (),
            repair=fault.repair,
        )
        x.op = before


def _executed(events: tuple[Event, ...], taken: int) -> tuple[Event, ...]:
    """Leave out the guarded events that no lane executes."""
    out: list[Event] = []
    for e in events:
        if e.guard is not None:
            taken, executed = taken >> 1, taken & 1
            if not executed:
                continue
        out.append(e)
    return tuple(out)
