"""Registers of `tcgen05.ld` that are used before `wait::ld`: hardware waits for them, the manual does not promise values.

(PTX ISA 9.7.18.6.4.5 respects true register dependencies and advises the wait.) Loads from which some way, whatever the
predicates of its branches, leads to such a use are looked for beforehand; where there are any, the warps are followed through
what they do execute (`check.register_watch`), so that what is reported has happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from warpsmith.simulator.check.register_watch import Fault
from warpsmith.simulator.check.tensor_memory import tensor_check
from warpsmith.simulator.program import Sync

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.base.findings import Severity
    from warpsmith.simulator.check.register_watch import Cell, Event, Mask
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.program import Block, Operation, Program

__all__ = ["Loads", "may_be_early"]

State = tuple[tuple["Operation", frozenset["Cell"]], ...]
"""Loads that no wait has covered and the registers that still hold what they loaded, oldest first."""
_REPAIR = "Put tcgen05.wait::ld.sync.aligned between the load and the first use of its registers."


@final
class Loads:
    """The rules of loads from tensor memory."""

    kind = "missing-tcgen05-wait"
    severity: Severity = "portability"
    start: State = ()

    def __init__(self, loads: list[Operation]) -> None:
        self.loads = frozenset(loads)
        self.cells = frozenset(c for op in loads for c in op.writes())

    @classmethod
    def of(cls, program: Program) -> Loads | None:
        """Return the rules for a program, if it has loads that may be used early."""
        loads = may_be_early(program)
        return cls(loads) if loads else None

    def always(self, op: Operation) -> bool:
        """Say whether an instruction matters whatever its guard: a wait counts in any case."""
        return _waits(op)

    def follow(self, state: State, events: tuple[Event, ...]) -> tuple[State, tuple[Fault, ...]]:
        """Return the state after the events, and the first use of each load on the way."""
        faults: list[Fault] = []
        mine: set[Operation] = set()
        for e in events:
            if _waits(e.operation):
                state = ()
                continue
            early = [load for load, cells in state if e.reads & cells]
            faults += (Fault(e.operation, load, _message(e.operation, load), _REPAIR, load in mine) for load in early)
            kept = ((load, cells - e.writes) for load, cells in state if load not in early)
            state = tuple((load, cells) for load, cells in kept if cells)
            if e.operation in self.loads:
                state = (*state, (e.operation, e.operation.writes()))
                mine.add(e.operation)
        return state, tuple(faults)

    def met(self, x: Lanes, fault: Fault, lanes: Mask, *, behind: bool) -> None:
        """Tell the check of tensor memory that the registers of a load have been used."""
        assert fault.other is not None
        tensor_check(x.machine).used(x, lanes, fault.other, ahead=fault.ahead and not behind)


def may_be_early(program: Program) -> list[Operation]:
    """Return the loads from which a way without a wait leads to a use of their registers, in the load's function."""
    return [
        op
        for block in program.blocks
        for i, op in enumerate(block.operations)
        if op.text.startswith("tcgen05.ld.") and _may_be_used(program, block, i + 1, op)
    ]


def _message(use: Operation, load: Operation) -> str:
    return f"`{use.text}` uses registers of `{load.text}` without tcgen05.wait::ld between them"


def _waits(op: Operation) -> bool:
    return op.text.startswith("tcgen05.wait::ld")


def _may_be_used(program: Program, block: Block, start: int, load: Operation) -> bool:
    """Say whether a way from the load leads to a use; a block that is met again with more registers is looked at again."""
    ways, met = [(block, start, frozenset(load.writes()))], dict[int, frozenset["Cell"]]()
    while ways:
        block, start, cells = ways.pop()
        for op in _operations(block, start):
            if _waits(op) and op.guard is None:
                break
            if cells & op.reads():
                return True
            cells -= op.writes() if op.guard is None else frozenset()
        else:
            for b in block.successors():
                if cells - met.get(b, frozenset()):
                    met[b] = met.get(b, frozenset()) | cells
                    ways.append((program.blocks[b], 0, met[b]))
    return False


def _operations(block: Block, start: int) -> Iterator[Operation]:
    """Yield the operations of a block from a number on, and that of its ending."""
    yield from block.operations[start:]
    if isinstance(block.ending, Sync):
        yield block.ending.operation
