"""Machine code of the GPU: words to text and back, every bit accounted for.

`decode(code, arch)` gives a `Program`: one `Instruction` for each 16 bytes, with nvdisasm's exact text, the control bits,
all fields and the bits that no text shows. `encode(text, arch)` gives the 16 bytes of a text,
`assemble(listing, arch)` those of a whole listing with labels.
"""

from __future__ import annotations

from warpsmith.assembly.sass.assemble import assemble, encode
from warpsmith.assembly.sass.control import Control
from warpsmith.assembly.sass.operands import Operand, Registers
from warpsmith.assembly.sass.program import FieldValue, Instruction, Program, decode

__all__ = ["Control", "FieldValue", "Instruction", "Operand", "Program", "Registers", "assemble", "decode", "encode"]
