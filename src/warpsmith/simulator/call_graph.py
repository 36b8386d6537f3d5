"""Which functions may be active more than once: those on a cycle of calls (PTX ISA 9.7.12.5, `call`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.tree import CallArguments, Function, Name
from warpsmith.assembly.ptx.walk import each_instruction
from warpsmith.simulator.names import names_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = ["recursive_functions"]


def recursive_functions(functions: Iterable[Function], listed: Collection[str]) -> frozenset[str]:
    """Return the names of the functions that may call themselves, directly or through others.

    A call through a register may reach every function whose address is taken: in code other than the target of a call, or in a
    variable (`listed`).
    """
    bodies = {f.name: f.body or [] for f in functions}
    called: dict[str, set[str]] = {}
    taken, indirect = set(listed), set[str]()
    for name, body in bodies.items():
        targets = called.setdefault(name, set())
        for s in each_instruction(body):
            target = next((o for o in s.operands if isinstance(o, Name)), None) if s.opcode == "call" else None
            if target is None:
                taken |= names_in([s])
                continue
            taken |= names_in(o for o in s.operands if isinstance(o, CallArguments))
            if target.name in bodies:
                targets.add(target.name)
            else:
                indirect.add(name)
    for name in indirect:
        called[name] |= taken & bodies.keys()
    return frozenset(name for name in bodies if name in _reached(name, called))


def _reached(name: str, called: dict[str, set[str]]) -> set[str]:
    """Return the functions that calls from `name` lead to."""
    out: set[str] = set()
    work = [name]
    while work:
        for target in called[work.pop()] - out:
            out.add(target)
            work.append(target)
    return out
