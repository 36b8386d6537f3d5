"""The PTX instruction set, declared: one text row per grammar line of the PTX ISA manual (chapter 9.7).

`match("fma.rn.ftz.f32")` returns the rows a mnemonic fits, with types, operand counts and availability resolved.
"""

from warpsmith.assembly.ptx.isa import counts_matrix as counts_matrix
from warpsmith.assembly.ptx.isa import rules_async as rules_async
from warpsmith.assembly.ptx.isa.loader import match, opcodes, rows
from warpsmith.assembly.ptx.isa.operand import OperandSlot
from warpsmith.assembly.ptx.isa.row import Match, Need, Row

__all__ = ["Match", "Need", "OperandSlot", "Row", "match", "opcodes", "rows"]
