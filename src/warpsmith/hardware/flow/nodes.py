"""The text of a random program as a tree, so that it prints by depth and can be made smaller piece by piece.

A node is a line (instructions that stand or fall together), or a `Group`: fixed lines and, between them, lists of nodes.
Every line and every group may be left out without making the rest illegal:

    Group(["@!%q0 bra L1;", [… the first arm …], "bra L2;", "L1:", [… the second arm …], "L2:"])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Group", "Node", "Path", "printed", "replaced", "sized", "walk"]


@final
@dataclass(frozen=True, slots=True)
class Group:
    """Fixed lines and lists of nodes, in order."""

    parts: tuple[str | tuple[Node, ...], ...]


Node: TypeAlias = "str | Group"
Path = tuple[int, ...]
"""Where a node stands: its index in the list, then alternately the index of a part of a group and of a node in that part."""


def printed(nodes: tuple[Node, ...], depth: int = 0) -> Iterator[str]:
    """Yield the lines, indented by depth."""
    for node in nodes:
        if isinstance(node, str):
            yield "    " * depth + node
            continue
        for part in node.parts:
            if isinstance(part, str):
                yield "    " * depth + part
            else:
                yield from printed(part, depth + 1)


def walk(nodes: tuple[Node, ...], at: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Yield every node with its place, groups before what is in them."""
    for i, node in enumerate(nodes):
        yield (*at, i), node
        if isinstance(node, Group):
            for k, part in enumerate(node.parts):
                if not isinstance(part, str):
                    yield from walk(part, (*at, i, k))


def sized(nodes: tuple[Node, ...]) -> int:
    """Return how many nodes there are."""
    return sum(1 for _ in walk(nodes))


def replaced(nodes: tuple[Node, ...], path: Path, by: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the nodes with that at `path` replaced by others (none: left out)."""
    i = path[0]
    if len(path) == 1:
        return (*nodes[:i], *by, *nodes[i + 1 :])
    group, k = nodes[i], path[1]
    assert isinstance(group, Group)
    part = group.parts[k]
    assert not isinstance(part, str)
    inner = replaced(part, path[2:], by)
    return (*nodes[:i], Group((*group.parts[:k], inner, *group.parts[k + 1 :])), *nodes[i + 1 :])
