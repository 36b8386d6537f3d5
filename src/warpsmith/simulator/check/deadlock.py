"""`deadlock` and `livelock`: nothing can run any more, or it runs for ever. The report is the graph of who waits for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.base.findings import Related
from warpsmith.simulator.check.held import collective
from warpsmith.simulator.check.wait_graph import root_first, wait_graph
from warpsmith.simulator.check.whereabouts import whereabouts, who

if TYPE_CHECKING:
    from warpsmith.base.findings import Severity
    from warpsmith.simulator.check.wait_graph import Node
    from warpsmith.simulator.engine import Engine

__all__ = ["report_deadlock", "report_interrupted", "report_livelock"]


_SHOWN = 12
"""Groups of warps that are listed."""


def report_deadlock(engine: Engine) -> None:
    """Report that every thread waits and nothing in flight could release one."""
    m = engine.machine
    nodes = root_first(wait_graph(engine))
    related: list[Related] = []
    for node in nodes:
        causes = getattr(node.parked.condition, "causes", None)
        for kind, text, threads, others, mend in causes() if causes is not None else ():
            m.findings.report(kind, text, node.parked.operation.place, threads, related=tuple(others), repair=mend)
    for node in nodes[:_SHOWN]:
        related += _lines(engine, node)
    if len(nodes) > _SHOWN:
        related.append(Related(f"… and {len(nodes) - _SHOWN} more groups of warps"))
    for c in engine.held[:4]:
        op = collective(engine, c)
        if op is not None:
            related.append(Related(f"{who(engine, c)} at `{op.text}` waits for the other lanes of the warp", op.place))
    for op in m.asynchronous.pending[:4]:
        related.append(Related(f"`{op.kind}` is in flight and cannot complete", op.place))
    warps = sum(node.parked.cohort.warps for node in nodes)
    message = (
        f"{warps} warp{'s wait' if warps != 1 else ' waits'} and nothing in flight can release {'them' if warps != 1 else 'it'}"
    )
    if engine.next_cta < engine.total_ctas:
        message += f"; {engine.total_ctas - engine.next_cta} CTAs have not started, for want of room"
    repair = (
        "follow the chain: the first barrier or value that nobody will signal any more needs an arrival, or a smaller count"
    )
    first = nodes[0].parked
    m.findings.report(
        "deadlock", message, first.operation.place, who(engine, first.cohort), related=tuple(related), repair=repair, stop=True
    )


def _lines(engine: Engine, node: Node) -> list[Related]:
    """Return who waits for what, and who should signal it."""
    p = node.parked
    text = f"{who(engine, p.cohort)} at `{p.operation.text}` waits for {p.condition.describe()}"
    out = [Related(text, p.operation.place)]
    return out + [Related(f"  {line}", place) for line, place in node.lines]


def report_livelock(engine: Engine) -> None:
    """Report that the launch has used up its `max_steps`."""
    message = f"the launch was ended after max_steps={engine.machine.config.max_steps} blocks"
    repair = "look at the loops named above; raise max_steps if the kernel only needs longer"
    _report_unfinished(engine, message, "error", repair)


def report_interrupted(engine: Engine) -> None:
    """Report where the threads stood when the launch was interrupted."""
    message = f"the launch was interrupted after {engine.steps:,} blocks; its threads were here"
    repair = (
        "look at the loops named above, if it should have ended by now; max_steps ends a launch that does not end by itself"
    )
    _report_unfinished(engine, message, "note", repair)


def _report_unfinished(engine: Engine, message: str, severity: Severity, repair: str) -> None:
    stands = whereabouts(engine)
    related = [Related(text, place) for text, place in stands[:_SHOWN]]
    if len(stands) > _SHOWN:
        related.append(Related(f"… and {len(stands) - _SHOWN} more groups of warps"))
    first = next((c for c in (*engine.ready, *engine.held, *(p.cohort for p in engine.parked))), engine.running)
    threads = who(engine, first) if first is not None else ""
    place = stands[0][1] if stands else None
    findings = engine.machine.findings
    findings.report("livelock", message, place, threads, severity, tuple(related), repair, stop=True)
