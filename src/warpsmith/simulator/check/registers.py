"""`register-before-wait`: registers of warpgroup products touched while the product owns them, or changed without a fence.

Whether a warp may touch a register depends only on the instructions it has executed, not on when products complete. So each
warp carries a state (registers changed since the last fence, products of the open group, closed groups), and each block
maps states to states. The map is remembered: at run time a block costs one table look-up per distinct state. A guarded
instruction counts where its predicate is true: as it is on entry to the block, or, where the block sets such a predicate
first, at its end. One whose predicate changes both before and after it in one block is not followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from warpsmith.base.findings import Related
from warpsmith.simulator.program import Vector

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.program import Block, Operation, Program, Reg

__all__ = ["RegisterWatch"]

Cell = tuple[str, int]


class State(NamedTuple):
    """What a warp has done to the registers of products."""

    changed: frozenset[Operation] = frozenset()
    """Instructions since the last fence that wrote such registers."""
    open: tuple[Operation, ...] = ()
    """Products since the last commit."""
    groups: tuple[tuple[Operation, ...], ...] = ()
    """Committed groups that no wait has covered, oldest first."""
    fenced: bool = False
    """It has executed a fence."""


class Fault(NamedTuple):
    """A finding: the instruction at fault, the other party, and what is wrong between them."""

    operation: Operation
    other: Operation | None
    message: str
    repair: str


class Event(NamedTuple):
    """An instruction of a block that matters, with the registers of products it reads and writes."""

    operation: Operation
    reads: frozenset[Cell]
    writes: frozenset[Cell]
    guard: Reg | None = None
    """A predicate whose value on entry to the block is the one that decides; of a late block, its value at the end."""


_KEPT = 16
_GUARDS = 62
"""Guarded instructions of a block that are followed."""
_WAIT = "Wait for the product's group (wgmma.commit_group, wgmma.wait_group) before its registers are touched."
_FIRST = "Put wgmma.fence.sync.aligned before the first wgmma, and wherever its registers have been touched since."
_FENCE = "Put wgmma.fence.sync.aligned between the last change of these registers and the product."


def _is_product(op: Operation) -> bool:
    return op.text.startswith("wgmma.mma_async")


def _position(op: Operation) -> tuple[str, int, int, str]:
    """Key that puts operations in the order of their source, whatever order a set gives them in."""
    place = op.place
    return (place.file, place.line, place.column, op.text) if place is not None else ("", 0, 0, op.text)


def _fragment(op: Operation) -> frozenset[Cell]:
    """Return the registers that hold A; empty when A lies behind a descriptor."""
    a = op.operands[1]
    return (
        frozenset((b, s) for b, slots in op.operand_slots(1).items() for s in slots) if isinstance(a, Vector) else frozenset()
    )


@final
class RegisterWatch:
    """Follows the warps of a launch."""

    def __init__(self, machine: Machine, program: Program) -> None:
        self.machine = machine
        products = [op for b in program.blocks for op in b.operations if _is_product(op)]
        self.cells = frozenset(c for op in products for c in (*op.writes(), *_fragment(op)))
        shape = (machine.rows, machine.threads // 32)
        self.state = np.zeros(shape, np.int32)
        self.entered = np.full(shape, -1, np.int32)
        """The block a warp has been followed through and not yet left."""
        self.states: list[State] = [State()]
        self.number: dict[State, int] = {State(): 0}
        self.memo: dict[tuple[int, int, int], tuple[int, tuple[Fault, ...]]] = {}
        self.events: dict[int, tuple[Event, ...]] = {}
        self.late: set[int] = set()
        """Blocks that set the predicate of an instruction that matters: they are followed when they have run."""
        machine.row_hooks.append(self._fresh)

    @classmethod
    def of(cls, machine: Machine, program: Program) -> RegisterWatch | None:
        """Return a watch when findings are asked for and the program has warpgroup products."""
        if machine.checking and any(_is_product(op) for b in program.blocks for op in b.operations):
            return cls(machine, program)
        return None

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
                after, faults = _follow(self.states[before], _executed(events, taken))
                self.memo[key] = (self._numbered(after), faults)
            number, faults = self.memo[key]
            mine = warps & (state == before) & (guarded == taken)
            for fault in faults:
                self._report(x, fault, x.threads_of(mine[..., None]) & x.active())
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

    def _numbered(self, state: State) -> int:
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
            reads, writes = self.cells & op.reads(), self.cells & op.writes()
            if op.opcode == "wgmma":
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

    def _report(self, x: Lanes, fault: Fault, lanes: object) -> None:
        before, x.op = x.op, fault.operation
        x.finding(
            "register-before-wait",
            fault.message,
            lanes=lanes,  # pyright: ignore[reportArgumentType]
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


def _follow(state: State, events: tuple[Event, ...]) -> tuple[State, tuple[Fault, ...]]:
    """Return the state after the events, and the faults on the way."""
    changed, group, groups = set(state.changed), list(state.open), list(state.groups)
    faults: list[Fault] = []
    fenced = state.fenced
    for e in events:
        op = e.operation
        if op.opcode != "wgmma":
            faults += _touches(e, [*group, *(p for g in groups for p in g)])
            if e.writes:
                changed.add(op)
        elif _is_product(op):
            used = op.writes() | _fragment(op)
            writer = max((w for w in changed if used & w.writes()), key=_position, default=None)
            if writer is not None:
                message = f"`{op.text}` uses registers that `{writer.text}` changed, with no wgmma.fence in between"
                faults.append(Fault(op, writer, message, _FENCE))
            elif not fenced:
                faults.append(Fault(op, None, f"`{op.text}` is the first of its warp, with no wgmma.fence before it", _FIRST))
            fenced = True
            group.append(op)
        elif op.text.startswith("wgmma.fence"):
            changed.clear()
            fenced = True
        elif op.text.startswith("wgmma.commit_group"):
            groups.append(tuple(group))
            group = []
            if len(groups) > _KEPT:  # nothing waits for so many: the oldest may be one
                groups[:2] = [groups[0] + groups[1]]
        else:
            keep = int(getattr(op.operands[0], "value", 0))
            groups = groups[-keep:] if keep else []
    kept = tuple(tuple(dict.fromkeys(g)) for g in groups)
    return State(frozenset(changed), tuple(dict.fromkeys(group)), kept, fenced), tuple(faults)


def _touches(e: Event, flying: list[Operation]) -> list[Fault]:
    """Return the fault of an instruction that touches registers of products in flight, if any."""
    for product in flying:
        results = product.writes()
        if e.reads & results:
            message = f"`{e.operation.text}` reads accumulators of a wgmma that has not been waited for"
            return [Fault(e.operation, product, message, _WAIT)]
        if e.writes & (results | _fragment(product)):
            message = f"`{e.operation.text}` changes registers of a wgmma that has not been waited for"
            return [Fault(e.operation, product, message, _WAIT)]
    return []
