"""Which Python name a register has on the line that an instruction comes from, read from the source text.

`ptx.inst.shr.u32(group, thread, 7)`: the arguments are the operands in order. `index = reg.from_(x, u32)`: the name is
what the last instruction of the line writes. Names that stand for something else on the line are left out.
"""

from __future__ import annotations

import ast
import linecache
from typing import TYPE_CHECKING

from warpsmith.simulator.program import Address, Operation, Program, Reg

if TYPE_CHECKING:
    from warpsmith.base.source import Place
    from warpsmith.simulator.program import Lowered

__all__ = ["registers_of_line"]

_OTHERS = (".cu", ".cuh", ".h", ".hpp", ".cpp", ".cc", ".c", ".ptx")
"""Files in other languages, whose assignments may read like Python's."""


def registers_of_line(program: Program, function: str, place: Place | None) -> dict[str, Reg]:
    """Return the registers that the lines of a kernel's function up to `place` (same file) name, by Python name."""
    out: dict[str, Reg] = {}
    if place is None or place.file.endswith(_OTHERS):
        return out
    for block in program.blocks:
        if block.function != function:
            continue
        last: Operation | None = getattr(block.ending, "operation", None)
        for op in (*block.operations, last):
            if op is not None and op.place is not None and op.place.file == place.file:
                out.update(_named(op))
    return out


def _named(op: Operation) -> dict[str, Reg]:
    assert op.place is not None
    statement = _statement(op.place.file, op.place.line)
    if statement is None:
        return {}
    out: dict[str, Reg] = {}
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        written = [o for o, w in zip(op.operands, op.written, strict=True) if w and isinstance(o, Reg)]
        if written:
            out[statement.targets[0].id] = written[0]
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call) and _mnemonic(n.func) == op.text.split(".")[0]]
    if len(calls) == 1:
        for argument, operand in zip(calls[0].args, op.operands, strict=False):
            base = _register(operand)
            if isinstance(argument, ast.Name) and base is not None:
                out[argument.id] = base
    return out


def _register(operand: Lowered) -> Reg | None:
    if isinstance(operand, Address):
        operand = operand.base
    return operand if isinstance(operand, Reg) else None


def _mnemonic(function: ast.expr) -> str:
    """Return the first word of the instruction that `ptx.inst.add.u32` names; empty for other functions."""
    words: list[str] = []
    while isinstance(function, ast.Attribute):
        words.append(function.attr)
        function = function.value
    words.reverse()
    return words[words.index("inst") + 1].strip("_") if "inst" in words[:-1] else ""


def _statement(file: str, line: int) -> ast.stmt | None:
    """Return the statement that is a line of a Python file; None for one that does not stand alone."""
    try:
        body = ast.parse(linecache.getline(file, line).strip()).body
    except (SyntaxError, ValueError):
        return None
    return body[0] if len(body) == 1 else None
