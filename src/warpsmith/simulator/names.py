"""Which names a piece of the tree mentions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.assembly.ptx.tree import (
    AddressOperand,
    BranchTargets,
    CallArguments,
    Initializer,
    Instruction,
    Name,
    PairOperand,
    Scope,
    Variable,
    VectorOperand,
)
from warpsmith.simulator.layout import each_variable

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["names_in", "variables_in"]


def names_in(nodes: Iterable[Any]) -> set[str]:
    """Return every identifier used by statements: operands, guards, targets, initialisers (declarations excepted)."""
    out: set[str] = set()
    work = list(nodes)
    while work:
        node = work.pop()
        if isinstance(node, Name):
            out.add(node.name)
        elif isinstance(node, Instruction):
            work.extend(node.operands)
        elif isinstance(node, AddressOperand):
            work.append(node.base)
            work.extend(node.inner)
        elif isinstance(node, VectorOperand):
            work.extend(node.elements)
        elif isinstance(node, PairOperand):
            work += [node.first, node.second]
        elif isinstance(node, CallArguments):
            work.extend(node.arguments)
        elif isinstance(node, BranchTargets):
            out.update(node.targets)
        elif isinstance(node, Scope):
            work.extend(node.body)
        elif isinstance(node, Variable):
            work.append(node.initializer)
            work.extend(node.more)
        elif isinstance(node, Initializer):
            out.add(node.symbol)
            work.extend(node.leaves or [])
    return out


def variables_in(body: Iterable[Any]) -> list[Variable]:
    """Return the variables declared in a body, inner scopes included."""
    out: list[Variable] = []
    for node in body:
        if isinstance(node, Variable):
            out += each_variable([node])
        elif isinstance(node, Scope):
            out += variables_in(node.body)
    return out
