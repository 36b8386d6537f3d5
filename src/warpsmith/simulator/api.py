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
from warpsmith.simulator.launch_config import Dim, LaunchConfig
from warpsmith.simulator.lower import lower
from warpsmith.simulator.machine import Machine
from warpsmith.simulator.memory import SHARED_START, GlobalMemory
from warpsmith.simulator.provenance import note_executed
from warpsmith.simulator.residency import rows_for
from warpsmith.simulator.schedule import Fair, Random
from warpsmith.simulator.timeline import Timeline
from warpsmith.simulator.variables import ModuleVariables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warpsmith.assembly.ptx.tree import Function
    from warpsmith.base.findings import Finding

__all__ = ["SimulationResult", "checked", "launch", "ptr", "simulate"]

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


def simulate(
    module: Module | str,
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
    tree = checked(module)
    memory = GlobalMemory()
    return launch(
        tree, ModuleVariables(tree, memory), kernel=kernel, grid=grid, block=block, cluster=cluster, args=args,
        dynamic_shared=dynamic_shared, check=check, numerics=numerics, schedule=schedule, seed=seed, device=device, jobs=jobs,
        max_steps=max_steps, progress=progress,
    )  # fmt: skip


def checked(module: Module | str) -> Module:
    """Return the tree of a module; raise `PtxError` for text that is not accepted."""
    tree = parse(module) if isinstance(module, str) else module
    if problems := problems_of(tree):
        raise PtxError(problems)
    return tree


def launch(
    tree: Module,
    variables: ModuleVariables,
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
    """Run a kernel on the memory that holds `variables`; the other parameters as in `simulate`."""
    entry = _entry(tree, kernel)
    model = _device(device, tree)
    if jobs != 1:
        raise CapabilityError("simulator: jobs other than 1 are not modelled; run several processes instead")
    config = _config(entry, model, grid, block, cluster, dynamic_shared, check, numerics, schedule, seed, max_steps)
    arguments = Arguments(entry, args, variables.memory)
    return _launch(tree, entry, model, config, variables, arguments, progress)


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
    _check_shared(entry, model, shared, config.dynamic_shared)
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
    return device(wanted) if isinstance(wanted, str) else wanted


def _dim(what: str, value: Any) -> Dim:
    values = (value,) if isinstance(value, int) else tuple(value)
    if not 1 <= len(values) <= 3 or not all(isinstance(v, int) for v in values):
        raise InputError(f"{what}={value!r}: give one to three ints, e.g. {what}=(4, 2, 1)")
    if any(v < 1 for v in values):
        raise InputError(f"{what}={value!r}: every dimension is at least 1")
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def _directive(entry: Function, name: str) -> list[int] | None:
    for d in entry.directives:
        if getattr(d, "name", "") == name:
            return [int(a, 0) for a in d.arguments]  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue]
    return None


def _config(
    entry: Function,
    model: DeviceModel,
    grid: Any,
    block: Any,
    cluster: Any,
    dynamic_shared: int,
    check: bool,
    numerics: Any,
    schedule: Any,
    seed: int,
    max_steps: int | None,
) -> LaunchConfig:
    grid, block = _dim("grid", grid), _dim("block", block)
    if grid[0] > 2**31 - 1 or grid[1] > 65535 or grid[2] > 65535:
        raise InputError(f"grid={grid}: at most (2147483647, 65535, 65535)")
    _check_block(entry, model, block)
    declared = _directive(entry, "reqnctapercluster")
    shape = _dim("cluster", cluster if cluster is not None else tuple(declared) if declared else 1)
    if cluster is not None and declared and shape != _dim("cluster", tuple(declared)) and shape != (1, 1, 1):
        raise InputError(f"cluster={shape}: kernel `{entry.name}` requires {tuple(declared)} (.reqnctapercluster)")
    if declared:
        shape = _dim("cluster", tuple(declared))
    if any(g % c for g, c in zip(grid, shape, strict=True)):
        raise InputError(f"grid={grid} is no multiple of cluster={shape}; round the grid up")
    size = shape[0] * shape[1] * shape[2]
    if size > max(16, 1) or (size > 1 and model.cluster_size == 1):
        raise InputError(f"cluster={shape}: {model.name} has clusters of at most {16 if model.cluster_size > 1 else 1} CTAs")
    if numerics not in ("exact", "fast"):
        raise InputError(f'numerics={numerics!r}: "exact" or "fast"')
    if schedule not in ("fair", "random"):
        raise InputError(f'schedule={schedule!r}: "fair" or "random"')
    if not isinstance(dynamic_shared, int) or dynamic_shared < 0:
        raise InputError(f"dynamic_shared={dynamic_shared!r}: give the bytes of dynamic shared memory")
    explicit = bool(declared) or size > 1 or any(getattr(d, "name", "") == "explicitcluster" for d in entry.directives)
    return LaunchConfig(grid, block, shape, explicit, dynamic_shared, check, numerics, schedule, int(seed), max_steps)


def _check_block(entry: Function, model: DeviceModel, block: Dim) -> None:
    threads = block[0] * block[1] * block[2]
    if threads > model.threads_per_block or block[2] > 64:
        raise InputError(
            f"block={block}: {threads} threads; {model.name} has at most {model.threads_per_block} per CTA and 64 in z"
        )
    if required := _directive(entry, "reqntid"):
        wanted = _dim("block", tuple(required))
        if wanted != block:
            raise InputError(f"block={block}: kernel `{entry.name}` requires {wanted} (.reqntid)")
    if most := _directive(entry, "maxntid"):
        n = 1
        for v in most:
            n *= v
        if threads > n:
            raise InputError(f"block={block}: {threads} threads; kernel `{entry.name}` allows {n} (.maxntid)")


def _check_shared(entry: Function, model: DeviceModel, shared: int, dynamic: int) -> None:
    if shared > model.shared_per_block:
        raise InputError(
            f"kernel `{entry.name}` needs {shared} bytes of shared memory ({shared - dynamic} static, {dynamic} dynamic); "
            f"{model.name} has {model.shared_per_block} per CTA"
        )
