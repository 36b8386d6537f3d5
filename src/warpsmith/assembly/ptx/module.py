"""`Module`: the root of the PTX tree. It lives beside the tree so that it can print itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from warpsmith.assembly.ptx.printer import print_module
from warpsmith.assembly.ptx.tree import Function, Item
from warpsmith.base.source import Span

__all__ = ["Module"]


@dataclass(slots=True)
class Module:
    """A PTX module."""

    version: tuple[int, int]
    target: list[str]
    """`.target` words: the architecture, then options (`debug`, `texmode_independent`, …)."""
    address_size: int = 64
    items: list[Item] = field(default_factory=list)
    name: str = "<module>"
    """File name or `<string>`, for messages."""
    span: Span | None = field(default=None, compare=False, repr=False)
    """The header: `.version` to `.target` or `.address_size`."""

    @property
    def arch(self) -> str:
        """Architecture of `.target`, e.g. `sm_90a`."""
        return self.target[0]

    def functions(self) -> list[Function]:
        """All functions in order."""
        return [i for i in self.items if isinstance(i, Function)]

    def entry(self, name: str) -> Function:
        """The entry (or function) called `name`; KeyError otherwise."""
        for f in self.functions():
            if f.name == name and f.body is not None:
                return f
        raise KeyError(name)

    def __str__(self) -> str:
        return print_module(self)
