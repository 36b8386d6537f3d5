"""The order of a function's blocks in program time.

Threads that part meet again where the later ones wait for the earlier. "Earlier" is made precise by a weak topological
order: strongly connected components are contiguous, a loop's exits come after the loop, and inside a loop the same holds
once the edges to its head are removed. A block's `order` is its position at every level of nesting,

    H: while … { B; while … { C } D }  E      ->   H (0, 0)  B (0, 1)  C (0, 2, 0)  D (0, 3)  E (1,)

and between two positions of one loop stands the number of the iteration (`cohort.Trail`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpsmith.simulator.program import Block

__all__ = ["live_in", "order_blocks"]


def order_blocks(blocks: list[Block], entry: int, members: set[int]) -> None:
    """Set `order` of the blocks `members` of one function that begins at `entry`."""
    successors = {b: [s for s in blocks[b].successors() if s in members] for b in members}
    work: list[tuple[list[int], set[int], tuple[int, ...], int | None]] = [([entry], members, (), None)]
    while work:
        roots, inside, prefix, head = work.pop()
        for position, component in enumerate(_components(roots, inside, successors, head)):
            here = (*prefix, position)
            looped = len(component) > 1 or component[0] in successors[component[0]]
            if not looped or (component[0] == head and len(component) == 1):
                blocks[component[0]].order = here
            else:
                work.append(([component[0]], set(component), here, component[0]))


def _components(roots: list[int], inside: set[int], successors: dict[int, list[int]], head: int | None) -> list[list[int]]:
    """Return strongly connected components in topological order, each with the block first reached in front.

    Edges to `head` do not count. Tarjan's algorithm without recursion.
    """
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    place: dict[int, int] = {}  # on the stack
    stack: list[int] = []
    out: list[list[int]] = []
    for root in [*roots, *sorted(inside)]:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        place[root] = len(stack)
        stack.append(root)
        trail = [(root, iter(successors[root]))]
        while trail:
            node, following = trail[-1]
            for s in following:
                if s == head or s not in inside:
                    continue
                if s not in number:
                    number[s] = low[s] = len(number)
                    place[s] = len(stack)
                    stack.append(s)
                    trail.append((s, iter(successors[s])))
                    break
                if s in place:
                    low[node] = min(low[node], number[s])
            else:
                trail.pop()
                if trail:
                    low[trail[-1][0]] = min(low[trail[-1][0]], low[node])
                if low[node] == number[node]:
                    out.append(stack[place[node] :])
                    del stack[place[node] :]
                    for member in out[-1]:
                        del place[member]
    out.reverse()
    return out


def live_in(blocks: list[Block], entry: int, members: set[int]) -> set[tuple[str, int]]:
    """Return the registers that may be read before they are written on a path from `entry`: (bank, slot)."""
    use: dict[int, set[tuple[str, int]]] = {}
    kill: dict[int, set[tuple[str, int]]] = {}
    for b in members:
        use[b], kill[b] = _use_kill(blocks[b])
    live = {b: set(use[b]) for b in members}
    before: dict[int, list[int]] = {b: [] for b in members}
    for b in members:
        for s in blocks[b].successors():
            before[s].append(b)
    work = set(members)
    while work:
        b = work.pop()
        for p in before[b]:
            new = live[b] - kill[p] - live[p]
            if new:
                live[p] |= new
                work.add(p)
    return live[entry]


def _use_kill(block: Block) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    use: set[tuple[str, int]] = set()
    kill: set[tuple[str, int]] = set()
    operations = list(block.operations)
    last = getattr(block.ending, "operation", None)
    if last is not None:
        operations.append(last)
    for op in operations:
        # a wgmma with scale-d 0 does not read its accumulator; whether it is 0 is not known here
        use |= op.reads() - (op.writes() if op.opcode == "wgmma" else frozenset()) - kill
        if op.guard is None:
            kill |= op.writes()
    return use, kill
