"""`deadlock` and `livelock`: nothing can run any more, or it runs for ever. The report is the graph of who waits for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.base.findings import Related
from warpsmith.simulator.check.held import collective
from warpsmith.simulator.check.wait_graph import root_first, wait_graph
from warpsmith.simulator.findings import threads_text

if TYPE_CHECKING:
    from warpsmith.simulator.check.wait_graph import Node
    from warpsmith.simulator.cohort import Cohort
    from warpsmith.simulator.engine import Engine

__all__ = ["report_deadlock", "report_livelock"]


def _who(engine: Engine, cohort: Cohort) -> str:
    x = engine.machine.lanes(cohort.rect)
    x.mask = cohort.mask
    return threads_text(x, x.active())


def report_deadlock(engine: Engine) -> None:
    """Report that every thread waits and nothing in flight could release one."""
    m = engine.machine
    nodes = root_first(wait_graph(engine))
    related: list[Related] = []
    for node in nodes:
        causes = getattr(node.parked.condition, "causes", None)
        for kind, text, threads, others, mend in causes() if causes is not None else ():
            m.findings.report(kind, text, node.parked.operation.place, threads, related=tuple(others), repair=mend)
    for node in nodes[:12]:
        related += _lines(engine, node)
    if len(nodes) > 12:
        related.append(Related(f"… and {len(nodes) - 12} more groups of warps"))
    for c in engine.held[:4]:
        op = collective(engine, c)
        if op is not None:
            related.append(Related(f"{_who(engine, c)} at `{op.text}` waits for the other lanes of the warp", op.place))
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
        "deadlock", message, first.operation.place, _who(engine, first.cohort), related=tuple(related), repair=repair, stop=True
    )


def _lines(engine: Engine, node: Node) -> list[Related]:
    """Return who waits for what, and who should signal it."""
    p = node.parked
    text = f"{_who(engine, p.cohort)} at `{p.operation.text}` waits for {p.condition.describe()}"
    out = [Related(text, p.operation.place)]
    return out + [Related(f"  {line}", place) for line, place in node.lines]


def report_livelock(engine: Engine) -> None:
    """Report that the launch has used up its `max_steps`."""
    m = engine.machine
    cohorts = [*engine.ready, *engine.held, *(p.cohort for p in engine.parked)]
    related: list[Related] = []
    place = None
    for c in cohorts[:8]:
        block = engine.blocks[c.block]
        last = block.operations[-1] if block.operations else getattr(block.ending, "operation", None)
        here = last.place if last is not None else getattr(block.ending, "place", None)
        place = place or here
        related.append(Related(f"{_who(engine, c)} is here", here))
    who = _who(engine, cohorts[0]) if cohorts else ""
    message = f"the launch was ended after max_steps={m.config.max_steps} blocks"
    repair = "look at the loops named below; raise max_steps if the kernel only needs longer"
    m.findings.report("livelock", message, place, who, related=tuple(related), repair=repair, stop=True)
