"""`leftover`: what a CTA leaves behind when it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.base.findings import Related

if TYPE_CHECKING:
    from warpsmith.simulator.asynchronous import AsyncOperation
    from warpsmith.simulator.machine import Machine

__all__ = ["check_row_end", "signals_late"]


def signals_late(machine: Machine, op: AsyncOperation, row: int) -> None:
    """Report an operation of another CTA that will signal, or signals, a barrier of a CTA that has ended."""
    cta = "({},{},{})".format(*machine.cta_of(row))
    machine.findings.report(
        "cluster-exit",
        f"cta {cta} ended before `{op.kind}` of another CTA had signalled its mbarrier",
        op.place,
        op.threads,
        repair="Let each CTA wait, before its end, for the last phase of every barrier that others signal; the barrier of the "
        "cluster does not wait for a commit.",
    )


def check_row_end(machine: Machine, row: int) -> None:
    """Report operations in flight that touch the shared memory of a CTA that has ended, and what hooks find."""
    if not machine.checking:
        return
    if not machine.asynchronous.pending and not machine.end_hooks and not machine.barriers.arrived[row].any():
        return
    start, stop = row * machine.shared.row, (row + 1) * machine.shared.row
    for op in machine.asynchronous.touching(machine.shared, start, stop, write_only=False):
        cta = "({},{},{})".format(*machine.cta_of(row))
        message = f"cta {cta} ended while `{op.kind}` still accesses its shared memory"
        repair = "wait for the operation before the last thread of the CTA ends"
        related = (Related(f"issued by {op.threads}", op.place),) if op.threads else ()
        machine.findings.report("leftover", message, op.place, op.threads or f"cta {cta}", related=related, repair=repair)
    for op in machine.asynchronous.pending:
        if row in op.signals:
            signals_late(machine, op, row)
    for number in (machine.barriers.arrived[row].any(axis=1)).nonzero()[0].tolist():
        cta = "({},{},{})".format(*machine.cta_of(row))
        kind, place = machine.barriers.last.get((row, number), ("bar.arrive", None))
        message = f"cta {cta} ended with arrivals on barrier {number} that no thread waited for"
        repair = "pair every bar.arrive with a bar.sync of the same barrier and count"
        severity = "error" if machine.barriers.waited[row, number] else "portability"  # nobody misses what nobody awaits
        machine.findings.report("leftover", f"{message} (`{kind}`)", place, f"cta {cta}", severity, repair=repair)
    for hook in machine.end_hooks:
        hook(row)
