"""One launch ready to run: lower the kernel, and run its CTAs or a range of them on a memory."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from warpsmith.simulator.adversarial import Adversarial
from warpsmith.simulator.check.deadlock import report_interrupted
from warpsmith.simulator.engine import Engine
from warpsmith.simulator.launch_check import check_shared
from warpsmith.simulator.lower import lower
from warpsmith.simulator.machine import Machine
from warpsmith.simulator.memory import SHARED_START
from warpsmith.simulator.provenance import note_executed
from warpsmith.simulator.residency import rows_for
from warpsmith.simulator.schedule import Fair, Random
from warpsmith.simulator.watch import Watch, check_reach, insert

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warpsmith.assembly.ptx import Module
    from warpsmith.assembly.ptx.tree import Variable
    from warpsmith.base.device import DeviceModel
    from warpsmith.base.findings import Finding
    from warpsmith.simulator.counters import Counters
    from warpsmith.simulator.fidelity import Fidelity
    from warpsmith.simulator.launch_config import LaunchConfig
    from warpsmith.simulator.memory import GlobalMemory, Space
    from warpsmith.simulator.program import Program
    from warpsmith.simulator.schedule import Schedule
    from warpsmith.simulator.scope import Symbol
    from warpsmith.simulator.timeline import Timeline

    Progress = Callable[[int, int], None]

__all__ = ["Execution", "Launch", "Report"]


@final
@dataclass(frozen=True, slots=True)
class Launch:
    """What is launched, all but the memory. It can be pickled."""

    tree: Module
    kernel: str
    model: DeviceModel
    config: LaunchConfig
    symbols: dict[str, Symbol]
    placed: list[tuple[Variable, Symbol]]
    """The module's variables and where they are."""
    parameters: bytes

    @property
    def ctas(self) -> int:
        """CTAs of the grid."""
        x, y, z = self.config.grid
        return x * y * z


@final
@dataclass(slots=True)
class Report:
    """What a run of some CTAs gave, all but the memory."""

    findings: list[Finding]
    counters: Counters
    fidelity: Fidelity
    timeline: Timeline
    completed: bool
    printed: list[str] = field(default_factory=list[str])
    interrupted: bool = False


@final
class Execution:
    """A launch lowered for the CTAs `first` to `stop` of the grid (linear, whole clusters), on a memory."""

    def __init__(
        self, launch: Launch, memory: GlobalMemory, const: Space, first: int, stop: int, watch: Sequence[Watch] = ()
    ) -> None:
        started = time.perf_counter()
        self.launch, self.first, self.stop = launch, first, stop
        self.machine = Machine(launch.model, launch.config, memory, const)
        self.machine.function_variables = {id(node): symbol for node, symbol in launch.placed}
        entry = next(f for f in launch.tree.functions() if f.name == launch.kernel and f.body is not None)
        self.program: Program = lower(launch.tree, entry, self.machine, launch.symbols)
        if watch:
            check_reach(watch, launch.config)
            insert(self.program, watch)
        self.shared = self.program.dynamic_start - SHARED_START + launch.config.dynamic_shared
        check_shared(entry, launch.model, self.shared, launch.config.dynamic_shared)
        self.preparing = time.perf_counter() - started

    def run(self, progress: Progress | None = None) -> Report:
        """Run; `progress` is called with (CTAs ended, CTAs of the range). Ctrl-C ends it with what was done so far."""
        started = time.perf_counter()
        m, config = self.machine, self.launch.config
        m.load(self.program, rows_for(m, self.program, self.shared, self.stop - self.first), self.launch.parameters)
        schedule = _schedule(config, m.threads // 32)
        engine = Engine(m, schedule, progress, self.first, self.stop)
        interrupted = False
        try:
            completed = engine.run()
        except KeyboardInterrupt as stop:
            completed, interrupted = False, type(stop) is KeyboardInterrupt  # the debugger ends launches on purpose
            if interrupted:
                report_interrupted(engine)
        m.counters.count_blocks(self.program, engine.runs, lines=config.lines)
        note_executed(m.fidelity, self.program, engine.runs, self.launch.model.arch)
        m.counters.blocks_run = engine.steps
        for p in engine.parked:  # a deadlock
            m.recorder.waited(p.cohort, p.operation, p.since)
        timeline = m.recorder.timeline(engine.steps, engine.ended_ctas, self.preparing, time.perf_counter() - started)
        return Report(m.findings.list, m.counters, m.fidelity, timeline, completed, m.printed, interrupted)


def _schedule(config: LaunchConfig, warps: int) -> Schedule:
    if config.schedule == "fair":
        return Fair()
    return Random(config.seed) if config.schedule == "random" else Adversarial(config.seed, warps)
