"""PTX function → `Program`: the kernel with every function it may call, as blocks on register slots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.tree import Function, Variable
from warpsmith.simulator.call_graph import recursive_functions
from warpsmith.simulator.cfg import live_in, order_blocks
from warpsmith.simulator.layout import Area, align_of, each_variable, element_of, size_of
from warpsmith.simulator.lower_function import FunctionLowering, Shared
from warpsmith.simulator.memory import SHARED_START
from warpsmith.simulator.names import names_in
from warpsmith.simulator.program import Operation, Program
from warpsmith.simulator.scope import Entity, Scope, SlotCounter, Symbol
from warpsmith.simulator.variables import function_address

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.module import Module
    from warpsmith.simulator.machine import Machine

__all__ = ["Operation", "lower"]


def lower(module: Module, entry: Function, machine: Machine, variables: dict[str, Symbol]) -> Program:
    """Return the program of kernel `entry`; `variables` are the module's variables in global and constant memory."""
    names = {f.name: names_in(f.body or []) for f in module.functions() if f.body is not None}
    tables = {leaf for v in each_variable(module.items) for leaf in names_in([v])}
    reached = _reached(module, entry, names, tables)
    slots, root = SlotCounter(), Scope()
    root.names.update(variables)
    areas = Shared(machine, slots, slots.take("pred"), [], root, Area(SHARED_START), Area(), Area(), module)
    areas.recursive = recursive_functions(reached, tables)
    unsized = _shared_variables(module, set[str]().union(*(names[f.name] for f in reached)), areas)
    lowered: dict[str, FunctionLowering] = {}
    bodies = {f.name for f in module.functions() if f.body is not None}
    for f in module.functions():
        root.names[f.name] = Symbol("function" if f.name in bodies else "outside", function_address(module, f.name))
    for f in reached:
        lowered[f.name] = FunctionLowering(f, areas, lowered)
    align = max([16, *map(align_of, unsized)])
    dynamic = -(-areas.shared.top // align) * align
    for v in unsized:
        root.names[v.name] = Symbol("shared", dynamic, element_of(v))
    for fl in lowered.values():
        fl.run()
    for fl in lowered.values():
        order_blocks(areas.blocks, fl.entry, set(fl.members))
    return Program(
        areas.blocks,
        lowered[entry.name].entry,
        slots.next,
        {function_address(module, n): fl.signature() for n, fl in lowered.items()},
        dynamic,
        areas.local.top,
        areas.call_params.top,
        areas.shared_names,
        areas.local_names,
        any(op.opcode == "alloca" for b in areas.blocks for op in b.operations),
        {n: fl.registers() for n, fl in lowered.items()},
        tuple(sorted(live_in(areas.blocks, lowered[entry.name].entry, set(lowered[entry.name].members)))),
        areas.frames,
    )


def _reached(module: Module, entry: Function, names: dict[str, set[str]], tables: set[str]) -> list[Function]:
    """Return the entry and every function named in a reached body or variable, in the order of discovery."""
    functions = {f.name: f for f in module.functions() if f.body is not None}
    out = [entry]
    for f in out:
        for name in names[f.name] | tables:
            g = functions.get(name)
            if g is not None and g not in out and g.kind == "func":
                out.append(g)
    return out


def _shared_variables(module: Module, used: set[str], areas: Shared) -> list[Variable]:
    """Lay out the module's shared variables that are `used`; return the unsized ones."""
    unsized: list[Variable] = []
    for v in each_variable(module.items):
        if not v.space.startswith("shared") or v.name not in used:
            continue
        if size_of(v) == 0:
            unsized.append(v)
        else:
            areas.root.names[v.name] = _placed(v, areas)
    return unsized


def _placed(v: Variable, areas: Shared) -> Entity:
    address = areas.shared.place(size_of(v), align_of(v))
    areas.shared_names.append((v.name, address, size_of(v)))
    return Symbol("shared", address, element_of(v))
