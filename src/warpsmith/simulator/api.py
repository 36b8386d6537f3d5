"""`simulate`: run a kernel of a PTX module on the CPU."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, final

from warpsmith.assembly.ptx import Module
from warpsmith.assembly.ptx.check import check as problems_of
from warpsmith.assembly.ptx.read import parse
from warpsmith.base.device import DeviceModel, device, device_for
from warpsmith.base.errors import InputError, PtxError
from warpsmith.base.findings import Finding
from warpsmith.base.mangled import source_name
from warpsmith.simulator.arguments import Arguments, ptr
from warpsmith.simulator.execution import Launch
from warpsmith.simulator.launch_check import launch_config
from warpsmith.simulator.memory import GlobalMemory
from warpsmith.simulator.sizes import check_sizes
from warpsmith.simulator.spread import run
from warpsmith.simulator.variables import ModuleVariables
from warpsmith.simulator.watch import Seen, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warpsmith.assembly.ptx.tree import Function
    from warpsmith.simulator.counters import Counters
    from warpsmith.simulator.fidelity import Fidelity
    from warpsmith.simulator.spread import Executor
    from warpsmith.simulator.timeline import Timeline

__all__ = ["LoadedModule", "SimulationResult", "checked", "entry_of", "ptr", "simulate"]

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
    processes: str = "one process"
    """Which processes ran it; where `jobs` were asked for and one did, why."""
    watched: list[Seen] = field(default_factory=list[Seen])
    """What the watch points saw."""
    interrupted: bool = False
    """Ctrl-C ended it: a finding says where each warp was."""
    comparison: Any = None
    """With `against_gpu`: a `warpsmith.hardware.against_gpu.Comparison`."""

    def __str__(self) -> str:
        head = "completed" if self.completed else "not completed"
        compared = [] if self.comparison is None else [str(self.comparison)]
        return "\n".join([f"{head}; {len(self.findings)} findings", *map(str, self.findings), *compared])


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
    undefined: Sequence[Any] = (),
    dynamic_shared: int = 0,
    check: bool = True,
    numerics: Literal["exact", "fast"] = "exact",
    schedule: Literal["fair", "random", "adversarial"] = "fair",
    seed: int = 0,
    device: str | DeviceModel | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    max_steps: int | None = None,
    lines: bool = False,
    watch: Sequence[Watch] = (),
    progress: Callable[[int, int], None] | None = None,
) -> SimulationResult:
    """Run `kernel` of `module` (PTX text, a path, or what `ptx.parse` returns) and return outputs, findings and counters.

    Array arguments are updated in place.

    `args`: numpy arrays and CPU tensors (pointers), `ptr(array, offset)`, ints, floats, bytes, `TensorMap`; a tuple of
    these is a structure by value, its numbers numpy scalars, which have a width. `progress` is called with (CTAs ended, CTAs
    of the grid). `undefined` arrays, among `args`, hold nothing until the kernel writes them, as fresh memory of a GPU.
    With `jobs` the CTAs are spread over so many processes, where none reads what another wrote (`.processes` of
    the result says what was done); an `executor` with `submit(function, *arguments)`, such as Dask's client, runs so many
    parts instead. `lines` counts by source line, too (`.counters.lines`); `watch` are `Watch` points, which note what they
    see in `.watched`. Raise `PtxError` for a module that is not legal PTX, `InputError` for unusable arguments,
    `CapabilityError` for what is not modelled; never for findings. Ctrl-C ends the run with `completed=False` and what was
    done so far.
    """
    loaded = module if isinstance(module, LoadedModule) else _load(module)
    tree, variables = loaded.tree, loaded.variables
    entry = entry_of(tree, kernel)
    model = _device(device, tree)
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"jobs={jobs!r}: give the number of processes, from 1")
    if progress is not None and not callable(progress):
        raise InputError(f"progress={progress!r}: give a function of (CTAs ended, CTAs of the grid)")
    watch = _watches(watch)
    config = launch_config(entry, model, grid, block, cluster, dynamic_shared, check, numerics, schedule, seed, max_steps)
    config = replace(config, lines=bool(lines))
    arguments = Arguments(entry, args, variables.memory, undefined=undefined if check else ())
    launch = Launch(tree, entry.name, model, config, variables.symbols, variables.placed, arguments.block)
    report, processes = run(launch, variables.memory, variables.const, jobs, executor, progress, watch)
    arguments.copy_back()
    if report.completed:
        report.findings += [_unwritten(name) for name in arguments.unwritten()]
    return SimulationResult(
        [array for array, _ in arguments.arrays], report.findings, report.counters, report.timeline, report.fidelity,
        report.completed, "".join(report.printed), variables.values(), processes, [seen for w in watch for seen in w.seen],
        report.interrupted,
    )  # fmt: skip


def _unwritten(name: str) -> Finding:
    message = f"{name} is an output, and nothing was written to it: zeros here, on a GPU what its memory held before"
    return Finding("uninitialised-read", "note", message, repair="Store the result, or pass an array whose contents are meant.")


def _watches(watch: Sequence[Watch] | Watch) -> Sequence[Watch]:
    if isinstance(watch, Watch):
        return (watch,)
    if not isinstance(watch, list | tuple) or not all(isinstance(w, Watch) for w in watch):
        raise InputError(f"watch={watch!r:.60}: give a Watch or a list of them, e.g. watch=[ws.Watch(on=(0, 0, 12))]")
    return watch


def _load(module: Module | str) -> LoadedModule:
    tree = checked(module)
    return LoadedModule(tree, ModuleVariables(tree, GlobalMemory()))


def checked(module: Module | str) -> Module:
    """Return the tree of a module; raise `PtxError` for text that is not accepted."""
    tree = parse(module) if isinstance(module, (str, os.PathLike)) else module
    if not isinstance(tree, Module):
        raise InputError(f"a module is PTX text, a path or what ws.ptx.parse returns, not {type(module).__name__}")
    if problems := problems_of(tree):
        raise PtxError(problems)
    check_sizes(tree)
    return tree


# --- judging the arguments --------------------------------------------------------------------------------------------


def entry_of(module: Module, kernel: str | None) -> Function:
    """Return the kernel of that name, also as the source of C++ has it, or the only one; `InputError` names those there are."""
    entries = [f for f in module.functions() if f.kind == "entry" and f.body is not None]
    names = ", ".join(f.name for f in entries) or "none"
    if kernel is None:
        if len(entries) != 1:
            raise InputError(f"{module.name}: say which kernel to run with kernel=; the module has: {names}")
        return entries[0]
    wanted = [f for f in entries if f.name == kernel] or [f for f in entries if source_name(f.name) == kernel]
    if len(wanted) == 1:
        return wanted[0]
    if wanted:
        several = ", ".join(f.name for f in wanted)
        raise InputError(f"{module.name}: {len(wanted)} kernels are `{kernel}` in the source; say one of: {several}")
    raise InputError(f"{module.name}: no kernel `{kernel}`; the module has: {names}")


def _device(wanted: str | DeviceModel | None, module: Module) -> DeviceModel:
    if wanted is None:
        return device_for(module.arch)
    if isinstance(wanted, str):
        return device(wanted)
    if not isinstance(wanted, DeviceModel):
        raise InputError(f'device={wanted!r}: give a name such as "H200", or what ws.device("H200") returns')
    return wanted
