"""Statements of a body as Python lines."""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING, final

from warpsmith.assembly.ptx.print_items import print_statement
from warpsmith.assembly.ptx.tree import (
    Comment,
    Immediate,
    Instruction,
    Label,
    Loc,
    Pragma,
    RegisterDeclaration,
    Scope,
)
from warpsmith.base.ptx_types import TYPES
from warpsmith.dsl.chain import word
from warpsmith.dsl.transpile.names import Array, Names, identifier, quoted
from warpsmith.dsl.transpile.operands import expression, guard
from warpsmith.dsl.transpile.sugar import sugared

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.tree import Statement

__all__ = ["Writer"]

_RAW_OPCODES = ("call", "brx")


def chain(mnemonic: str) -> str | None:
    """Return the attribute chain that spells `mnemonic`, None when none does."""
    out: list[str] = []
    for w in mnemonic.split("."):
        attribute = w.replace("::", "__").replace(":", "_")
        if keyword.iskeyword(attribute):
            attribute += "_"
        if attribute[:1].isdigit():
            attribute = f"_{attribute}"
        if not attribute.isidentifier() or word(attribute) != w:
            return None
        out.append(attribute)
    return ".".join(out)


def too_wide(instruction: Instruction) -> bool:
    """Say whether a constant needs more bits than the instruction's last type has: the DSL refuses what ptxas cuts off."""
    kinds = [w for w in instruction.mnemonic.split(".") if w in TYPES]
    bits = min((TYPES[k].bits for k in kinds), default=64)
    values = [o.value for o in instruction.operands if isinstance(o, Immediate) and isinstance(o.value, int)]
    return any(not -(1 << (bits - 1)) <= v < 1 << bits for v in values)


@final
class Writer:
    """Collects the lines of one kernel body."""

    def __init__(self, sugar: bool) -> None:
        self.sugar = sugar
        self.lines: list[str] = []
        self.used: set[str] = set()
        """Types that must be imported."""
        self.types: dict[str, str] = {}
        """Register expression → PTX type."""

    def body(self, statements: list[Statement], names: Names, indent: str) -> None:
        """Write the statements of one scope."""
        before = len(self.lines)
        for s in statements:
            self._statement(s, names, indent)
        if len(self.lines) == before:
            self.lines.append(f"{indent}pass")

    def _statement(self, s: Statement, names: Names, indent: str) -> None:
        if isinstance(s, Instruction):
            self.lines.append(indent + self._instruction(s, names))
        elif isinstance(s, RegisterDeclaration):
            self.lines += [indent + line for line in self._registers(s, names)]
        elif isinstance(s, Label):
            self.lines.append(f"{indent}ptx.label({quoted(s.name)})")
        elif isinstance(s, Scope):
            self.lines.append(f"{indent}with ptx.scope():")
            self.body(s.body, names.inner(), f"{indent}    ")
        elif isinstance(s, Pragma):
            self.lines += [f"{indent}ptx.pragma({quoted(text)})" for text in s.strings]
        elif not isinstance(s, (Loc, Comment)):
            self.lines.append(f"{indent}ptx.raw({quoted(print_statement(s))})")

    def _registers(self, s: RegisterDeclaration, names: Names) -> list[str]:
        if s.vector != 1:
            for name, count in s.names:
                names.hidden.update([name] if count is None else [f"{name}{i}" for i in range(count)])
            return [f"ptx.raw({quoted(print_statement(s))})"]
        out: list[str] = []
        self.used.add(s.type)
        for name, count in s.names:
            python = identifier(name, names.taken)
            if count is None:
                names.scalars[name] = python
                self.types[python] = s.type
                out.append(f"{python} = reg.scalar({s.type}, name={quoted(name)})")
            else:
                names.arrays[name] = Array(python, count)
                self.types.update((f"{python}[{i}]", s.type) for i in range(count))
                out.append(f"{python} = reg.array({s.type}, {count}, name={quoted(name)})")
        return out

    def _instruction(self, s: Instruction, names: Names) -> str:
        raw = f"ptx.raw({quoted(print_statement(s))})"
        spelled, pred = chain(s.mnemonic), guard(s.predicate, names)
        operands = [expression(o, names) for o in s.operands]
        if spelled is None or pred is None or None in operands or s.opcode in _RAW_OPCODES or too_wide(s):
            return raw
        written = [o for o in operands if o is not None]
        if self.sugar and (nice := sugared(s.mnemonic, written, pred, self.types)) is not None:
            self.used.update(
                re.findall(r"\b[a-z]+\d+(?:x\d+)?\b|\bpred\b", nice.partition("(")[2]) if nice[:4] == "ptx." else ()
            )
            return nice
        arguments = ", ".join(written) + (pred if written else pred[2:])
        return f"ptx.inst.{spelled}({arguments})"
