"""Make a random program smaller while something holds of it: leave out nodes, put what is in a group in its place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warpsmith.hardware.flow.nodes import Group, Node, replaced, sized, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from warpsmith.hardware.flow.program import FlowProgram

__all__ = ["shrunk", "shrunk_together", "size"]


def size(p: FlowProgram) -> int:
    """Return how many nodes a program has."""
    return sum(map(sized, (p.first, p.last, *(f.nodes for f in p.functions))))


def shrunk(p: FlowProgram, holds: Callable[[FlowProgram], bool]) -> FlowProgram:
    """Return a smaller program of which `holds` is still true, where no node can be left out. `holds(p)` must be true."""
    smaller = True
    while smaller:
        smaller = False
        for part in range(2 + len(p.functions)):
            found = _part_shrunk(p, part, holds)
            smaller |= size(found) < size(p)
            p = found
    return p


def shrunk_together(
    p: FlowProgram, which_hold: Callable[[list[FlowProgram]], list[bool]], more: Callable[[], bool] = lambda: True
) -> FlowProgram:
    """Return a smaller program as `shrunk` does; `which_hold` looks at many candidates at once, while `more()` is true."""
    size_of_run = 32
    while more():
        candidates = [c for part in range(2 + len(p.functions)) for c in _without_runs(p, part, size_of_run)]
        good = [c for c, holds in zip(candidates, which_hold(candidates), strict=True) if holds] if candidates else []
        if good:
            p = min(good, key=size)
        elif size_of_run > 1:
            size_of_run //= 2
        else:
            return p
    return p


def _without_runs(p: FlowProgram, part: int, run: int) -> Iterator[FlowProgram]:
    """Yield the program without each run of so many nodes at the top of a part; for runs of one, without each node."""
    nodes = _nodes(p, part)
    if run > 1:
        for at in range(0, len(nodes) if len(nodes) >= run else 0, max(1, run // 2)):
            yield _with(p, part, (*nodes[:at], *nodes[at + run :]))
    else:
        for smaller in _smaller(nodes):
            yield _with(p, part, smaller)


def _nodes(p: FlowProgram, part: int) -> tuple[Node, ...]:
    return (p.first, p.last, *(f.nodes for f in p.functions))[part]


def _with(p: FlowProgram, part: int, nodes: tuple[Node, ...]) -> FlowProgram:
    if part == 0:
        return replace(p, first=nodes)
    if part == 1:
        return replace(p, last=nodes)
    k = part - 2
    return replace(p, functions=(*p.functions[:k], replace(p.functions[k], nodes=nodes), *p.functions[k + 1 :]))


def _part_shrunk(p: FlowProgram, part: int, holds: Callable[[FlowProgram], bool]) -> FlowProgram:
    """Leave out runs of nodes at the top, half of them and less, then single nodes at any depth."""
    run = len(_nodes(p, part))
    while run > 1:
        at = 0
        while at < len(nodes := _nodes(p, part)):
            candidate = _with(p, part, (*nodes[:at], *nodes[at + run :]))
            if holds(candidate):
                p = candidate
            else:
                at += run
        run //= 2
    tried = 0
    while (candidates := list(_smaller(_nodes(p, part))))[tried:]:
        candidate = _with(p, part, candidates[tried])
        if holds(candidate):
            p = candidate
        else:
            tried += 1
    return p


def _smaller(nodes: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    """Yield the nodes with one of them left out."""
    for path, node in walk(nodes):
        yield replaced(nodes, path, ())
        if isinstance(node, Group) and sized((node,)) > 1:
            emptied = Group(tuple(part if isinstance(part, str) else () for part in node.parts))
            yield replaced(nodes, path, (emptied,))
