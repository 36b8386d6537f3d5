"""One program: its PTX, its launches, its judge; and how the simulator runs it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ptx_corpus import sample
from warpsmith.assembly.ptx import Module
from warpsmith.simulator import Device, SimulationResult, simulate
from warpsmith.simulator.arguments import Pointer

Orders = Sequence[Mapping[str, Any]]
QUICK: Orders = ({}, {"schedule": "random", "seed": 1})
LONG: Orders = ({}, *({"schedule": "random", "seed": s} for s in range(1, 4)))
MANY: Orders = ({}, *({"schedule": "random", "seed": s} for s in range(1, 8)))


def arrays_of(args: Sequence[Any]) -> list[np.ndarray]:
    """The arrays among arguments, in their order."""
    out: list[np.ndarray] = []
    for a in args:
        if isinstance(a, tuple | list):
            out += arrays_of(a)
        elif isinstance(a, np.ndarray):
            out.append(a)
        elif isinstance(a, Pointer):
            out.append(a.array)
        elif (memory := getattr(a, "memory", None)) is not None:
            out.append(memory)
    return out


@dataclass(frozen=True)
class Launch:
    """One launch; what is None or 0 is the program's own."""

    args: list[Any]
    """As in `simulate`; besides, a list is memory that holds the addresses of its arrays."""
    kernel: str | None = None
    grid: Any = 1
    block: Any = 32
    cluster: Any = None
    shared: int = 0
    scratch: int = 0
    """So many arguments at the end are memory that the compiler asks for; what they hold is nobody's business."""

    unlike: tuple[int, ...] = ()
    """`id` of arrays whose contents nobody reads afterwards, and which differ from run to run."""

    def arrays(self) -> list[np.ndarray]:
        """The arrays among the arguments that are compared, in their order."""
        return [a for a in arrays_of(self.args[: len(self.args) - self.scratch]) if id(a) not in self.unlike]


Judge = Generator[Launch, SimulationResult | None, None]


@dataclass(frozen=True)
class Program:
    """A kernel of one source, compiled for several architectures."""

    compiler: str
    """Folder of tests/data/ptx: nvcc, nvrtc, triton, clang, cute, gcc, mojo, numba, tinygrad, warp"""
    source: str
    """Stem of the PTX files in front of the architecture."""
    name: str
    archs: tuple[str, ...]
    """What stands behind the source in the file names, e.g. `sm_90a`."""
    body: Callable[..., Judge]
    """Of a generator of random numbers and, where `per_arch`, the architecture."""
    remarks: tuple[str, ...] = ()
    """Kinds of findings that the compiler's or its library's own code has; the page says why."""
    ordered: bool = True
    """Whether the arrays hold the same bits in every order of things (no floating atomics, no printed order, no clocks)."""
    machine: bool = False
    """Its arrays hold what differs between machines (addresses), or it needs a launch that `on_gpu` does not do."""
    slow: bool = False
    """Takes more than about half a second: run by tests/slow alone, but for its first architecture, and in fewer orders."""

    per_arch: bool = False
    """Whether its launches differ from architecture to architecture, so that the body takes the architecture."""

    def judge(self, arch: str) -> Judge:
        """Its launches and what is asked of them, on fresh arrays."""
        rng = np.random.default_rng(0)
        return self.body(rng, arch) if self.per_arch else self.body(rng)

    def file(self, arch: str) -> str:
        """Name of the sample for an architecture."""
        return f"{self.compiler}/{self.source}.{arch}"

    @property
    def about(self) -> str:
        """First line of the body's docstring."""
        return (self.body.__doc__ or "").strip().splitlines()[0] if self.body.__doc__ else ""


@dataclass
class Outcome:
    """What one run of a program gave."""

    findings: list[Any] = field(default_factory=list)
    arrays: list[np.ndarray] = field(default_factory=list)
    """Copies of the arrays among the arguments of every launch, after it."""


def run(program: Program, arch: str, order: Mapping[str, Any]) -> Outcome:
    """Run every launch of a program on the simulator; raise `AssertionError` where it is wrong or found faulty."""
    out = Outcome()
    judge = program.judge(arch)
    launch = next(judge)
    while True:
        options: dict[str, Any] = {"kernel": launch.kernel or program.name, "grid": launch.grid, "block": launch.block, **order}
        if launch.cluster:
            options["cluster"] = launch.cluster
        module = sample(program.file(arch))
        simulated: Callable[..., SimulationResult] = (
            simulate_with_blocks if any(isinstance(a, list) for a in launch.args) else simulate
        )
        result = simulated(module, args=launch.args, dynamic_shared=launch.shared, **options)
        out.findings += result.findings
        worse = [f for f in result.findings if f.kind not in program.remarks]
        assert not worse, f"{program.file(arch)} {options}: {result}"
        assert result.completed, f"{program.file(arch)} {options}"
        out.arrays += [a.copy() for a in launch.arrays()]
        try:
            launch = judge.send(result)
        except StopIteration:
            return out


def simulate_with_blocks(module: Module, *, args: list[Any], **options: Any) -> SimulationResult:
    """Simulate a launch with lists among its arguments, on a device that holds their arrays and the addresses of them."""
    device = Device()
    placed = [(a, device.array(a)) for a in arrays_of(args)]
    addresses = {id(a): there.address for a, there in placed}
    given = [device.array(np.array([addresses[id(m)] for m in a], np.uint64)) if isinstance(a, list) else a for a in args]
    result = device.launch(module, args=given, **options)
    for here, there in placed:
        here[...] = there.numpy()
    return result


class Collection:
    """The programs of one source file."""

    def __init__(self, compiler: str, source: str, archs: Sequence[str]) -> None:
        self.compiler, self.source, self.archs = compiler, source, tuple(archs)
        self.programs: list[Program] = []

    def __call__(self, name: str = "", *, archs: Sequence[str] | None = None, source: str = "", **options: Any) -> Any:
        """Register the judge that follows; its name is the kernel's, unless `name` says otherwise."""

        def register(body: Callable[..., Judge]) -> Callable[..., Judge]:
            of = source or self.source
            self.programs.append(Program(self.compiler, of, name or body.__name__, tuple(archs or self.archs), body, **options))
            return body

        return register
