"""`simulate`: run a kernel of a PTX module on the CPU."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, final

from warpsmith.assembly.ptx import Module, parse
from warpsmith.assembly.ptx.check import check as problems_of
from warpsmith.base.device import DeviceModel, device, device_for
from warpsmith.base.errors import CapabilityError, InputError, PtxError
from warpsmith.simulator.arguments import Arguments, ptr
from warpsmith.simulator.counters import Counters
from warpsmith.simulator.engine import Engine
from warpsmith.simulator.fidelity import Fidelity
from warpsmith.simulator.launch_check import check_shared, launch_config
from warpsmith.simulator.lower import lower
from warpsmith.simulator.machine import Machine
from warpsmith.simulator.memory import SHARED_START, GlobalMemory
from warpsmith.simulator.provenance import note_executed
from warpsmith.simulator.residency import rows_for
from warpsmith.simulator.schedule import Fair, Random
from warpsmith.simulator.sizes import check_sizes
from warpsmith.simulator.timeline import Timeline
from warpsmith.simulator.variables import ModuleVariables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warpsmith.assembly.ptx.tree import Function
    from warpsmith.base.findings import Finding
    from warpsmith.simulator.launch_config import LaunchConfig

__all__ = ["LoadedModule", "SimulationResult", "checked", "ptr", "simulate"]

Shape = int | tuple[int, ...]


@final
@dataclass(slots=True)
class SimulationResult:
    """What a simulated launch gave."""

    outputs: list[Any]
    """The arrays among the arguments, updated in place."""
    findings: list[Finding]
    """Faults of the program, in the order they were met."""
    counters: Counters
    timeline: Timeline
    fidelity: Fidelity
    completed: bool
    """Every thread ran to its end. False after a fault that ends the launch, a deadlock, `max_steps` or Ctrl-C."""
    printed: str = ""
    """What the kernel's printf wrote."""
    globals: dict[str, Any] = field(default_factory=dict)
    """The module's global variables after the launch, as bytes (numpy uint8)."""

    def __str__(self) -> str:
        head = "completed" if self.completed else "not completed"
        return "\n".join([f"{head}; {len(self.findings)} findings", *map(str, self.findings)])


@final
@dataclass(frozen=True, slots=True)
class LoadedModule:
    """A checked module whose variables have their place in a memory that outlives the launch."""

    tree: Module
    variables: ModuleVariables


def simulate(
    module: Module | str | LoadedModule,
    *,
    kernel: str | None = None,
    grid: Shape,
    block: Shape,
    cluster: Shape | None = None,
    args: Sequence[Any] = (),
    dynamic_shared: int = 0,
    check: bool = True,
    numerics: Literal["exact", "fast"] = "exact",
    schedule: Literal["fair", "random"] = "fair",
    seed: int = 0,
    device: str | DeviceModel | None = None,
    jobs: int = 1,
    max_steps: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SimulationResult:
    """Run `kernel` of `module` and return outputs, findings and counters. Array arguments are updated in place.

    `args`: numpy arrays and CPU tensors (pointers), `ptr(array, offset)`, ints, floats, bytes, `TensorMap`. `progress` is
    called with (CTAs ended, CTAs of the grid). Raise `PtxError` for a module that is not legal PTX, `InputError` for unusable
    arguments, `CapabilityError` for what is not modelled; never for findings. Ctrl-C ends the run with `completed=False` and
    what was done so far.
    """
    loaded = module if isinstance(module, LoadedModule) else _load(module)
    tree, variables = loaded.tree, loaded.variables
    entry = _entry(tree, kernel)
    model = _device(device, tree)
    if jobs != 1:
        raise CapabilityError("simulator: jobs other than 1 are not modelled; run several processes instead")
    if progress is not None and not callable(progress):
        raise InputError(f"progress={progress!r}: give a function of (CTAs ended, CTAs of the grid)")
    config = launch_config(entry, model, grid, block, cluster, dynamic_shared, check, numerics, schedule, seed, max_steps)
    arguments = Arguments(entry, args, variables.memory)
    return _launch(tree, entry, model, config, variables, arguments, progress)


def _load(module: Module | str) -> LoadedModule:
    tree = checked(module)
    return LoadedModule(tree, ModuleVariables(tree, GlobalMemory()))


def checked(module: Module | str) -> Module:
    """Return the tree of a module; raise `PtxError` for text that is not accepted."""
    tree = parse(module) if isinstance(module, str) else module
    if not isinstance(tree, Module):
        raise InputError(f"a module is PTX text or what ws.ptx.parse returns, not {type(module).__name__}")
    if problems := problems_of(tree):
        raise PtxError(problems)
    check_sizes(tree)
    return tree


def _launch(
    tree: Module,
    entry: Function,
    model: DeviceModel,
    config: LaunchConfig,
    variables: ModuleVariables,
    arguments: Arguments,
    progress: Callable[[int, int], None] | None,
) -> SimulationResult:
    started = time.perf_counter()
    machine = Machine(model, config, variables.memory, variables.const)
    machine.function_variables = variables.by_node
    program = lower(tree, entry, machine, variables.symbols)
    shared = program.dynamic_start - SHARED_START + config.dynamic_shared
    check_shared(entry, model, shared, config.dynamic_shared)
    machine.load(program, rows_for(machine, program, shared), arguments.block)
    prepared = time.perf_counter()
    engine = Engine(machine, Fair() if config.schedule == "fair" else Random(config.seed), progress)
    try:
        completed = engine.run()
    except KeyboardInterrupt:
        completed = False
    ended = time.perf_counter()
    machine.counters.count_blocks(program, engine.runs)
    note_executed(machine.fidelity, program, engine.runs, model.arch)
    machine.counters.blocks_run = engine.steps
    arguments.copy_back()
    m = machine
    return SimulationResult(
        [array for array, _ in arguments.arrays],
        m.findings.list,
        m.counters,
        Timeline(engine.steps, engine.ended_ctas, prepared - started, ended - prepared),
        m.fidelity,
        completed,
        "".join(m.printed),
        variables.values(),
    )


# --- judging the arguments --------------------------------------------------------------------------------------------


def _entry(module: Module, kernel: str | None) -> Function:
    entries = [f for f in module.functions() if f.kind == "entry" and f.body is not None]
    names = ", ".join(f.name for f in entries) or "none"
    if kernel is None:
        if len(entries) != 1:
            raise InputError(f"{module.name}: say which kernel to run with kernel=; the module has: {names}")
        return entries[0]
    for f in entries:
        if f.name == kernel:
            return f
    raise InputError(f"{module.name}: no kernel `{kernel}`; the module has: {names}")


def _device(wanted: str | DeviceModel | None, module: Module) -> DeviceModel:
    if wanted is None:
        return device_for(module.arch)
    if isinstance(wanted, str):
        return device(wanted)
    if not isinstance(wanted, DeviceModel):
        raise InputError(f'device={wanted!r}: give a name such as "H200", or what ws.device("H200") returns')
    return wanted
