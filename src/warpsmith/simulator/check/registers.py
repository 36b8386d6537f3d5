"""`register-before-wait`: registers of warpgroup products touched while the product owns them, or changed without a fence.

The state that a warp carries through the blocks it runs (`check.register_watch`): registers changed since the last fence,
products of the open group, closed groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, final

from warpsmith.simulator.check.register_watch import Fault
from warpsmith.simulator.program import Vector

if TYPE_CHECKING:
    from warpsmith.base.findings import Severity
    from warpsmith.simulator.check.register_watch import Cell, Event, Mask
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.program import Operation, Program

__all__ = ["Products"]


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


_KEPT = 16
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
class Products:
    """The rules of warpgroup products."""

    kind = "register-before-wait"
    severity: Severity = "error"
    start = State()

    def __init__(self, products: list[Operation]) -> None:
        self.cells = frozenset(c for op in products for c in (*op.writes(), *_fragment(op)))

    @classmethod
    def of(cls, program: Program) -> Products | None:
        """Return the rules for a program, if it has such products."""
        products = [op for b in program.blocks for op in b.operations if _is_product(op)]
        return cls(products) if products else None

    def always(self, op: Operation) -> bool:
        """Say whether an instruction matters whatever its guard: those of products."""
        return op.opcode == "wgmma"

    def follow(self, state: State, events: tuple[Event, ...]) -> tuple[State, tuple[Fault, ...]]:
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
                    faults.append(
                        Fault(op, None, f"`{op.text}` is the first of its warp, with no wgmma.fence before it", _FIRST)
                    )
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

    def met(self, x: Lanes, fault: Fault, lanes: Mask, *, behind: bool) -> None:
        """Nobody else asks for these faults."""


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
