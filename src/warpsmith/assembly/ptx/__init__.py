"""PTX: declarations of the instruction set, tree, reader, printer, checker."""

from warpsmith.assembly.ptx.module import Module
from warpsmith.assembly.ptx.parser import LIMIT, parse, parse_file, text_of_file
from warpsmith.assembly.ptx.printer import print_instruction, print_module

__all__ = ["LIMIT", "Module", "parse", "parse_file", "print_instruction", "print_module", "text_of_file"]
