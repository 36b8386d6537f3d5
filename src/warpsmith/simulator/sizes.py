"""What a module declares, judged before memory is made for it: no declaration may exhaust this computer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.tree import RegisterDeclaration, Scope, Variable
from warpsmith.base.errors import InputError
from warpsmith.simulator.layout import Area, align_of, parameter_offsets, size_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from warpsmith.assembly.ptx.module import Module
    from warpsmith.base.source import Span

__all__ = ["check_sizes"]

CONST_BYTES = 64 << 10
LOCAL_BYTES = 512 << 10
"""Most bytes of a module's constants, and of a thread's local variables (CUDA programming guide, compute capabilities)."""
PARAMETER_BYTES = 32_764
"""Most bytes of a kernel's parameters (PTX ISA 5.1.6.1)."""
ALIGNMENT = 1 << 20
"""Most bytes that a variable is aligned to: memory in front of it is made, too."""
NAMES = 1 << 18
"""Most registers of one function, and variables of one declaration."""


def check_sizes(module: Module) -> None:
    """Raise `InputError` for constants, local variables, parameters or registers beyond what a GPU has."""
    bodies = [(f.name, list(_statements(f.body or []))) for f in module.functions()]
    variables = [v for _, body in bodies for v in _variables(body)]
    outer = list(_variables(module.items))
    for v in (*outer, *variables):
        if (v.count or 0) > NAMES:
            raise InputError(f"{_at(v.span)}`{v.name}<{v.count}>`: at most {NAMES:,} variables; declare an array")
        if align_of(v) > ALIGNMENT:
            raise InputError(
                f"{_at(v.span)}`{v.name}` is aligned to {align_of(v):,} bytes; the simulator takes {ALIGNMENT:,} at most"
            )
    _limit("the module's constants", (v for v in (*outer, *variables) if v.space.startswith("const")), CONST_BYTES)
    for name, body in bodies:
        _limit(f"the local variables of `{name}`", (v for v in _variables(body) if v.space == "local"), LOCAL_BYTES)
        _limit_registers(name, body)
    for f in module.functions():
        taken = max((at + size_of(p) for p, at in parameter_offsets(f)), default=0)
        if taken > PARAMETER_BYTES:
            raise InputError(f"{_at(f.span)}the parameters of `{f.name}` take {taken:,} bytes; {PARAMETER_BYTES:,} is the most")


def _limit(what: str, variables: Iterable[Variable], most: int) -> None:
    area = Area()
    for v in variables:
        each = -(-size_of(v) // align_of(v)) * align_of(v) if v.count is not None else size_of(v)
        area.place(each * (1 if v.count is None else v.count), align_of(v))
        if area.top > most:
            raise InputError(f"{_at(v.span)}{what} take {area.top:,} bytes with `{v.name}`; {most:,} is the most")


def _limit_registers(function: str, body: Iterable[object]) -> None:
    declared = 0
    for statement in body:
        if isinstance(statement, RegisterDeclaration):
            declared += sum(1 if count is None else count for _, count in statement.names)
            if declared > NAMES:
                raise InputError(
                    f"{_at(statement.span)}`{function}` declares {declared:,} registers; the simulator takes {NAMES:,} of a "
                    "function; declare those that are used"
                )


def _statements(body: Iterable[object]) -> Iterator[object]:
    for statement in body:
        if isinstance(statement, Scope):
            yield from _statements(statement.body)
        elif isinstance(statement, Variable | RegisterDeclaration):
            yield statement


def _variables(items: Iterable[object]) -> Iterator[Variable]:
    for item in items:
        if isinstance(item, Variable):
            yield from (item, *item.more)


def _at(span: Span | None) -> str:
    return f"{span}: " if span else ""
