"""`register-before-wait`: registers touched while an asynchronous operation owns them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.base.findings import Related

if TYPE_CHECKING:
    from warpsmith.simulator.asynchronous import AsyncOperation, RegisterExtent
    from warpsmith.simulator.lanes import Lanes
    from warpsmith.simulator.program import Block, Operation

__all__ = ["check_registers"]


def check_registers(x: Lanes, block: Block) -> None:
    """Report operations of a block, about to run on `x`, that touch registers which operations in flight own."""
    if not x.machine.checking:
        return
    for op in x.machine.asynchronous.pending:
        reads = _cells(op.register_reads, x)
        writes = _cells(op.register_writes, x)
        if not reads and not writes:
            continue
        for operation in _operations(block):
            if operation.opcode == "wgmma":  # products of one warpgroup may chain through their accumulators
                continue
            if (operation.reads() & writes) or (operation.writes() & (reads | writes)):
                _report(x, operation, op, bool(operation.writes() & (reads | writes)))
                break


def _operations(block: Block) -> list[Operation]:
    last = getattr(block.ending, "operation", None)
    return block.operations if last is None else [*block.operations, last]


def _cells(extents: list[RegisterExtent], x: Lanes) -> set[tuple[str, int]]:
    near = (e for e in extents if x.c0 <= e.row < x.c1 and e.t0 < x.t1 and x.t0 < e.t1)
    return {(e.bank, s) for e in near for s in e.slots}


def _report(x: Lanes, operation: Operation, op: AsyncOperation, writes: bool) -> None:
    x.op = operation
    verb = "changes" if writes else "reads"
    message = f"`{operation.text}` {verb} registers that `{op.kind}` in flight still owns"
    related = (Related(f"`{op.kind}` was issued here", op.place),)
    repair = "wait for the group (wgmma.wait_group) before its registers are touched"
    x.finding("register-before-wait", message, related=related, repair=repair)
