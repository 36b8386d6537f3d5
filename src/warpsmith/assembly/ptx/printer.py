"""Print a PTX tree as text that reads back to an equal tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.module import Module

__all__ = ["print_module"]


def print_module(module: Module) -> str:
    """Return the text of `module`, printed from the tree alone."""
    major, minor = module.version
    head = f".version {major}.{minor}\n.target {', '.join(module.target)}\n.address_size {module.address_size}\n"
    if module.items:
        raise TypeError("printing module items")
    return head
