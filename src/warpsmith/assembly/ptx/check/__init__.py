"""The checker of PTX: `check(module)` for whole modules, `check_instruction` for one call of a builder.

One concern per file: `symbols` (names and scopes), `declarations`, `hints` (heads of functions), `calls`, `mnemonic` (words and
availability), `operands` with `values`, `vectors`, `addresses` and `register_types`, `instruction` (one instruction, cached),
`module` (the walk).
"""

from warpsmith.assembly.ptx.check.instruction import check_instruction
from warpsmith.assembly.ptx.check.module import check
from warpsmith.assembly.ptx.check.symbols import Symbol, register

__all__ = ["Symbol", "check", "check_instruction", "register"]
