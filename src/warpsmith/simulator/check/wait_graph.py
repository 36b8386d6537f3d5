"""The graph of who waits for whom, when nothing can run any more.

A node is a group of parked warps. An edge leads to the group whose warps are known to signal what it waits for: they have
done so in an earlier phase, or have instructions before them that might and have never run. Roots are groups without an edge,
which nobody who waits could release, or else groups that wait in a circle and for nobody outside it. The report begins with
the root that most others depend on; in a circle, with who waits for a phase that has begun and lacks something, or for a
barrier that nobody has come to although others like it have been signalled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.simulator.barrier import Generation
from warpsmith.simulator.check.signal_sites import SignalSites
from warpsmith.simulator.phase_wait import PhaseWait
from warpsmith.simulator.tensor_memory import tensor_memory_of
from warpsmith.simulator.units import units_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.base.source import Place
    from warpsmith.simulator.engine import Engine, Parked
    from warpsmith.simulator.machine import Machine
    from warpsmith.simulator.mbarrier import MBarrier
    from warpsmith.simulator.program import Operation

__all__ = ["Node", "root_first", "wait_graph"]

Warp = tuple[int, int]
"""Resident row, warp."""
Arrivers = dict[tuple[str, "Place | None"], set[Warp]]
"""(instruction, line) -> the warps that have arrived there."""


@final
@dataclass(slots=True, eq=False)
class Node:
    """A group of parked warps."""

    parked: Parked
    warps: set[Warp]
    signallers: set[Warp] = field(default_factory=set[Warp])
    lines: list[tuple[str, Place | None]] = field(default_factory=list["tuple[str, Place | None]"])
    """Who should arrive, and where that code is."""
    hoped: set[int] = field(default_factory=set[int])
    """Blocks with instructions that might signal it, as nobody has yet."""
    begun: bool = False
    """Something has come in the phase that it waits for."""
    passed_by: bool = False
    """Nobody has ever arrived on what it waits for, though on others like it."""
    edges: list[Node] = field(default_factory=list["Node"])


def wait_graph(engine: Engine) -> list[Node]:
    """Return the parked groups with their edges, in the order of CTAs and warps."""
    parked = sorted(engine.parked, key=lambda p: (p.cohort.rect[0], p.cohort.rect[2]))
    nodes = [Node(p, set(_warps(p))) for p in parked]
    ahead = [_ahead(engine, n) for n in nodes]
    sites = SignalSites(engine)
    for i, node in enumerate(nodes):
        _complete(engine, node, {b for j, blocks in enumerate(ahead) if j != i for b in blocks}, sites)
    for node in nodes:
        others = [(n, blocks) for n, blocks in zip(nodes, ahead, strict=True) if n is not node]
        node.edges = [n for n, blocks in others if n.warps & node.signallers or node.hoped & blocks]
    return nodes


def root_first(nodes: list[Node]) -> list[Node]:
    """Return the nodes with the root that most others lead to in front."""
    reached = {id(n): _reached(n) for n in nodes}
    roots = [n for n in nodes if not n.edges] or [n for n in nodes if all(n in reached[id(o)] for o in reached[id(n)])]
    if not roots:
        return nodes
    count = {id(r): sum(r in reached[id(n)] for n in nodes) for r in roots}
    first = max(roots, key=lambda r: (count[id(r)], 2 * r.begun + r.passed_by))
    return [first, *(n for n in nodes if n is not first)]


def _reached(node: Node) -> list[Node]:
    seen: list[Node] = []
    left = [node]
    while left:
        at = left.pop()
        if at not in seen:
            seen.append(at)
            left += at.edges
    return seen


def _warps(p: Parked) -> Iterator[Warp]:
    c0, _, t0, _ = p.cohort.rect
    active = p.cohort.active()
    rows, warps = np.nonzero(active.reshape(active.shape[0], -1, 32).any(axis=2))
    for r, w in zip(rows.tolist(), warps.tolist(), strict=True):
        yield c0 + r, t0 // 32 + w


def _complete(engine: Engine, node: Node, ahead: set[int], sites: SignalSites) -> None:
    """Fill in who is known to signal what a node waits for; `ahead`: blocks that other groups may still come to."""
    m = engine.machine
    condition: Any = node.parked.condition
    condition = getattr(condition, "inner", condition)
    if isinstance(condition, PhaseWait):
        rows = {row for row, _ in node.warps}
        left = [w.barrier for w in condition.waiting if not w.passed().any()]
        _of_mbarriers(engine, node, [b for b in left if b.row in rows] or left, ahead, sites)
    elif isinstance(condition, Generation):
        for row in {row for row, _ in node.warps}:
            _of_barrier(m, node, row, condition.number)
    elif hasattr(condition, "rect"):  # the cluster barrier
        absent = m.live & ~m.cluster_barrier.arrived
        node.signallers |= _warps_of(absent, 0)
    elif node.parked.operation.text.startswith("tcgen05.alloc"):
        mine = {row for row, _ in node.warps}
        for row in {r for own in mine for r in tensor_memory_of(m).holders(own)} - mine:
            node.signallers |= _warps_of(m.live[row : row + 1], row)


def _warps_of(threads: Any, first: int) -> set[Warp]:
    rows, warps = np.nonzero(threads.reshape(threads.shape[0], -1, 32).any(axis=2))
    return {(first + r, w) for r, w in zip(rows.tolist(), warps.tolist(), strict=True)}


def _of_mbarriers(engine: Engine, node: Node, barriers: list[MBarrier], ahead: set[int], sites: SignalSites) -> None:
    """Fill in who has arrived on barriers before, or on barriers like them, or has not come to an arrival yet."""
    m = engine.machine
    known: dict[tuple[str, str, Place | None], set[Warp]] = {}
    strange = [barrier for barrier in barriers if not barrier.arrivers]
    node.begun = any(b.events for b in barriers)
    for barrier in barriers:
        for (what, place), warps in barrier.arrivers.items():
            node.signallers |= warps
            if barrier.may_lack(what):
                known.setdefault(
                    (f"has arrived on it{' in other phases' if barrier.phase else ''}", what, place), set()
                ).update(warps)
    by_address = [s for b in strange for s in sites.of(b.address, _counts(m, b.row))]
    node.hoped |= {block for block, op in by_address if block in ahead and "complete_tx" not in op.text}
    for (what, place), warps in _examples(m, strange, by_address).items():
        node.passed_by = True
        node.signallers |= warps
        known.setdefault(("arrives on barriers like it", what, place), set()).update(warps)
    for (text, what, place), warps in list(known.items())[:4]:
        node.lines.append((f"should arrive: `{what}` {text} ({_names(m, warps)})", place))
    if not known:
        never = [s for s in by_address or sites.all if s[0] in ahead and not engine.runs[s[0]]]
        never = [(block, op) for block, op in never if "complete_tx" not in op.text]
        node.hoped |= {block for block, _ in never}
        places = dict.fromkeys((op.text, op.place) for _, op in never)
        node.lines += [(f"should arrive, perhaps: `{text}`, which has never run", place) for text, place in list(places)[:3]]
        if not never:
            text = "nobody has ever arrived on it, and nobody who waits elsewhere has an arrival before him that might"
            node.lines.append((text, barriers[0].place))
    for name in dict.fromkeys(_variable(m, b) for b in barriers):
        if name:
            node.lines.insert(0, (f"the barrier is {name}", barriers[0].place))


def _counts(m: Machine, row: int) -> dict[int, int]:
    return {b.address: b.expected for b in units_of(m).barriers.by_index.values() if b.row == row}


def _examples(m: Machine, strange: list[MBarrier], by_address: list[tuple[int, Operation]]) -> Arrivers:
    """Return who arrives on others by instructions of such addresses, or (there are none) on barriers made at the same line."""
    wanted = {(op.text, op.place) for _, op in by_address}
    lines = {barrier.place for barrier in strange}
    out: Arrivers = {}
    for other in units_of(m).barriers.by_index.values() if strange else ():
        for key, warps in other.arrivers.items():
            if key in wanted if wanted else other.place in lines:
                out.setdefault(key, set()).update(warps)
    return out


def _variable(m: Machine, barrier: MBarrier) -> str:
    """Return the shared variable a barrier lies in, with the offset; empty for dynamic shared memory."""
    found, distance = m.shared.allocation_near(barrier.address)
    if found is None or distance or "`" not in found.name:
        return ""
    offset = barrier.address - found.start
    return found.name + (f" + {offset}" if offset else "")


def _ahead(engine: Engine, node: Node) -> set[int]:
    """Return the blocks that a node's warps may still come to in their function."""
    seen: set[int] = set()
    left = [node.parked.cohort.block]
    while left:
        for block in engine.blocks[left.pop()].successors():
            if block not in seen:
                seen.add(block)
                left.append(block)
    return seen


def _of_barrier(m: Machine, node: Node, row: int, number: int) -> None:
    arrived = m.barriers.arrived[row, number] != 0
    known = m.barriers.seen.get((row, number), {})
    for (what, place), bits in known.items():
        warps = {(row, w) for w in range(arrived.size) if bits >> w & 1 and not arrived[w]}
        if warps:
            node.signallers |= warps
            node.lines.append((f"should arrive: `{what}` has arrived on it before ({_names(m, warps)})", place))
    if int(m.barriers.expected[row, number]) < 0:
        live = m.live[row].reshape(-1, 32).any(axis=1)
        node.signallers |= {(row, w) for w in np.flatnonzero(live & ~arrived).tolist()}


def _names(m: Machine, warps: set[Warp]) -> str:
    rows = sorted({r for r, _ in warps})
    mine = sorted(w for r, w in warps if r == rows[0])
    listed = ", ".join(map(str, mine[:8])) + (", …" if len(mine) > 8 else "")
    text = f"cta ({','.join(map(str, m.cta_of(rows[0])))}) warp{'s' if len(mine) > 1 else ''} {listed}"
    return text if len(rows) == 1 else f"{text}, and {len(rows) - 1} more CTA{'s' if len(rows) > 2 else ''}"
