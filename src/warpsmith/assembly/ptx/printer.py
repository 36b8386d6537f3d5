"""Print a PTX tree as text that reads back to an equal tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.print_items import print_item
from warpsmith.assembly.ptx.print_operands import print_instruction
from warpsmith.assembly.ptx.tree import Dwarf, FileDirective, Section

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.module import Module

__all__ = ["print_instruction", "print_module"]


def print_module(module: Module, *, locations: bool = True) -> str:
    """Return the text of `module`, printed from the tree alone.

    `locations=False` leaves out `.loc`, `.file` and debug sections.
    """
    major, minor = module.version
    out = [f".version {major}.{minor}", f".target {', '.join(module.target)}", ""]
    if module.version >= (2, 3):
        out.insert(2, f".address_size {module.address_size}")
    for item in module.items:
        if locations or not isinstance(item, (FileDirective, Section, Dwarf)):
            print_item(item, out, locations=locations)
    return "\n".join(out) + "\n"
