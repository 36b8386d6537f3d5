"""Walks over the tree of a PTX module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.tree import Instruction, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from warpsmith.assembly.ptx.tree import Statement

__all__ = ["each_instruction"]


def each_instruction(body: Iterable[Statement]) -> Iterator[Instruction]:
    """Yield the instructions of a body in the order of the text, those of inner scopes included."""
    for s in body:
        if isinstance(s, Instruction):
            yield s
        elif isinstance(s, Scope):
            yield from each_instruction(s.body)
