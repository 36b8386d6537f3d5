"""The same launch on the simulator and on the GPU of this machine, every output compared bit for bit.

ptxas compiles with `--fmad=false` unless told otherwise: the simulator computes `add` and `mul` unfused. What a GPU computes
in another order or from its own state at every launch is no ground for a comparison, and is named: floating atomics and
reductions, clocks and timers, the numbers of multiprocessors and warp slots, and work queues (atomics whose result is used).

Where the outputs differ though nothing may, the kernel is compiled once more with `-O0`: if the GPU then computes what the
simulator did, the difference is what ptxas makes of the text, and not the text's meaning. Kernels with wgmma or setmaxnreg,
which `-O0` cannot compile as they are meant, are left out.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.assembly.ptx.miscompiled import miscompiled_here
from warpsmith.assembly.ptx.printer import print_module
from warpsmith.assembly.ptx.walk import each_instruction
from warpsmith.base.device import device_for
from warpsmith.base.errors import CapabilityError
from warpsmith.hardware.gpu_launch import arch_for_gpu, launch_on_gpu
from warpsmith.launch.binding import LaunchShape
from warpsmith.simulator import simulate as simulate_alone
from warpsmith.simulator.api import LoadedModule, checked, entry_of
from warpsmith.simulator.arguments import Arguments
from warpsmith.simulator.launch_check import launch_config
from warpsmith.simulator.memory import GlobalMemory
from warpsmith.simulator.variables import ModuleVariables
from warpsmith.simulator.write_watch import watching
from warpsmith.toolchain import compile_ptx

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.ptx import Module
    from warpsmith.assembly.ptx.tree import Function, Instruction
    from warpsmith.hardware.gpu_launch import GpuResult
    from warpsmith.simulator import SimulationResult

__all__ = ["Comparison", "Difference", "compare_with_gpu", "excluded", "simulate"]

_CLOCKS = {"%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"}
_OWN_STATE = {"%smid", "%nsmid", "%warpid", "%nwarpid", "%gridid"}
_FLOATS = (".f16", ".bf16", ".f32", ".f64")
_WITHOUT_OPTIMISATION = {
    True: "compiled with -O0 the GPU gives the simulator's bits: what differs is what ptxas makes of the kernel to optimise it",
    False: "compiled with -O0 the GPU differs, too",
}
_NOT_FOR_O0 = ("wgmma", "setmaxnreg", "tcgen05")
_ASSOCIATIVE = (".min", ".max", ".exch", ".cas")


@final
@dataclass(frozen=True, slots=True)
class Difference:
    """The first element that differs."""

    array: int
    """Number among the arrays, in the order of the arguments; -1 for a variable of the module."""
    name: str
    index: tuple[int, ...]
    gpu: str
    simulator: str
    count: int
    """Elements of the array that differ, of `size`."""
    size: int
    writer: str
    """Who wrote it on the simulator."""

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.count:,} of {self.size:,} elements differ, first {list(self.index)}: GPU {self.gpu}, "
            f"simulator {self.simulator}\n  written on the simulator by {self.writer}"
        )


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """The outputs of both sides."""

    device: str
    arrays: int
    difference: Difference | None
    excluded: tuple[str, ...]
    """What in the kernel may rightly differ from launch to launch, with its place."""
    options: tuple[str, ...]
    """Options of ptxas."""
    unoptimised: bool | None = None
    """Whether every bit is equal when ptxas compiles with `-O0`; None where that was not tried."""
    miscompiled: tuple[str, ...] = ()
    """What this ptxas is known to make wrong code of, where the outputs differ."""

    @property
    def same(self) -> bool:
        """Whether every bit is equal."""
        return self.difference is None

    @property
    def failed(self) -> bool:
        """Whether a bit differs though nothing in the kernel may differ."""
        return not self.same and not self.excluded

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "same": self.same, "failed": self.failed}

    def __str__(self) -> str:
        lines = [f"against {self.device}, ptxas {' '.join(self.options) or 'without options'}: "]
        if self.difference is None:
            lines[0] += f"{self.arrays} arrays bit-identical"
        else:
            lines[0] += str(self.difference)
        if self.unoptimised is not None:
            lines.append(_WITHOUT_OPTIMISATION[self.unoptimised])
        if self.miscompiled:
            lines.append("known to be compiled wrong:")
            lines += [f"  {text}" for text in self.miscompiled]
        if self.excluded:
            lines.append("not comparable bit for bit, since the kernel has:")
            lines += [f"  {text}" for text in self.excluded]
        if "--fmad=false" not in self.options:
            lines.append(
                "contraction permitted: ptxas may have fused a multiplication and an addition that the simulator rounds twice"
            )
        return "\n".join(lines)


def excluded(module: Module, kernel: str) -> tuple[str, ...]:
    """Return what in a kernel's module may differ from launch to launch, each with its place."""
    out: dict[str, None] = {}
    for function in module.functions():
        for i in each_instruction(function.body or []):
            if reason := _reason(i):
                out[f"{reason}: `{i.mnemonic}`{f' at {i.place}' if i.place else ''}"] = None
    return tuple(out)


def _reason(i: Instruction) -> str:
    words = i.mnemonic
    names = {n.partition(".")[0] for o in i.operands if isinstance(n := getattr(o, "name", ""), str)}
    if names & _CLOCKS:
        return "a clock"
    if names & _OWN_STATE:
        return "the number of a multiprocessor or warp slot"
    opcode = words.partition(".")[0]
    if opcode not in ("atom", "red") or ".shared" in words:
        return ""
    if any(words.endswith(f) or f"{f}x" in words for f in _FLOATS) and not any(w in words for w in _ASSOCIATIVE):
        return "a floating atomic, whose order is the hardware's"
    if opcode == "atom" and getattr(i.operands[0], "name", "") != "_":
        return "an atomic whose result is used, as in a work queue"
    return ""


def simulate(module: Any, *, against_gpu: bool | Sequence[str] = False, **options: Any) -> SimulationResult:
    """Run a kernel on the simulator, as `warpsmith.simulator.simulate`.

    With `against_gpu=True` the same launch runs on the GPU of this machine first, compiled with `--fmad=false`, and
    `.comparison` of the result says whether every bit of every array is equal; a list of ptxas options replaces that one.
    Raise `ToolError` where there is no GPU or driver.
    """
    if against_gpu is False:
        return simulate_alone(module, **options)
    return compare_with_gpu(module, ("--fmad=false",) if against_gpu is True else tuple(against_gpu), options)


def compare_with_gpu(module: Any, ptxas: tuple[str, ...], options: dict[str, Any]) -> SimulationResult:
    """Run both sides and compare; the arrays hold what the simulator computed."""
    tree = module.tree if isinstance(module, LoadedModule) else checked(module)
    if isinstance(module, LoadedModule):
        raise CapabilityError("against_gpu: launches on a Device are not compared; call simulate with the module")
    entry = entry_of(tree, options.get("kernel"))
    shape = _shape(tree, entry, options)
    args = options.get("args", ())
    arrays = [a for a, _ in _placed(entry, args)]
    inputs = [a.copy() for a in arrays]
    described = f"warpsmith.simulate(module, kernel={entry.name!r}, grid={shape.grid}, block={shape.block}, args=…)"
    arch = arch_for_gpu(tree.arch)
    if arch != tree.arch and options.get("device") is None:
        options = options | {"device": device_for(arch)}

    def on_gpu(flags: tuple[str, ...]) -> tuple[GpuResult, list[Any]]:
        """Leave the arrays as they were before the launch."""
        cubin = compile_ptx(print_module(tree), arch, flags, name=tree.name).cubin
        ran = launch_on_gpu(cubin, entry, shape, args, describe=described, variables=_variables(tree))
        outputs = [a.copy() for a in arrays]
        _restore(arrays, inputs)
        return ran, outputs

    gpu, outputs = on_gpu(ptxas)
    result = simulate_alone(tree, **options)
    difference, unoptimised = _first_difference(arrays, outputs, result.globals, gpu.globals), None
    may_differ = excluded(tree, entry.name)
    if difference is not None:
        computed = [a.copy() for a in arrays]
        _restore(arrays, inputs)
        if not may_differ and _compiles_unoptimised(tree, ptxas):
            again, outputs = on_gpu((*ptxas, "-O0"))
            unoptimised = _first_difference(computed, outputs, result.globals, again.globals) is None
        if difference.array >= 0:
            difference = replace(difference, writer=_writer(difference, tree, entry, options, arrays))
        _restore(arrays, computed)
    count = len(arrays) + len(gpu.globals)
    wrong = [] if difference is None else miscompiled_here(tree, ptxas)
    known = tuple(f"{f.where}: {f.message}" for f in wrong if f.severity == "error")
    result.comparison = Comparison(gpu.device, count, difference, may_differ, ptxas, unoptimised, known)
    return result


def _compiles_unoptimised(tree: Module, ptxas: tuple[str, ...]) -> bool:
    """Say whether `-O0` is another program, and one that means the same."""
    if "-O0" in ptxas or "-g" in ptxas:
        return False
    opcodes = {i.mnemonic.partition(".")[0] for f in tree.functions() for i in each_instruction(f.body or [])}
    return opcodes.isdisjoint(_NOT_FOR_O0)


def _placed(entry: Function, args: Sequence[Any]) -> list[tuple[Any, int]]:
    return Arguments(entry, args, GlobalMemory()).arrays


def _restore(arrays: list[Any], content: list[Any]) -> None:
    for a, c in zip(arrays, content, strict=True):
        if a.flags.writeable:
            a[...] = c


def _shape(tree: Module, entry: Function, options: dict[str, Any]) -> LaunchShape:
    """Judge the shape as the simulator does."""
    model = device_for(tree.arch)
    dynamic = options.get("dynamic_shared", 0)
    c = launch_config(
        entry, model, options["grid"], options["block"], options.get("cluster"), dynamic, True, "exact", "fair", 0, None
    )
    return LaunchShape(c.grid, c.block, c.cluster, c.dynamic_shared)


def _variables(tree: Module) -> list[str]:
    variables = ModuleVariables(tree, GlobalMemory())
    return [n for n, s in variables.symbols.items() if s.space == "global"]


def _bits(a: Any) -> Any:
    """Return the array's elements as bytes `[element, byte]`, in the order of C."""
    return np.ascontiguousarray(a).reshape(-1).view(np.uint8).reshape(a.size, a.itemsize)


def _shown(a: Any, i: int) -> str:
    element = np.ascontiguousarray(a).reshape(-1)[i : i + 1]
    bits = int.from_bytes(element.tobytes(), "little")
    return f"{element[0]} (0x{bits:0{2 * a.itemsize}x})"


def _first_difference(
    arrays: list[Any], gpu: list[Any], ours_held: dict[str, Any], gpu_held: dict[str, Any]
) -> Difference | None:
    pairs = [(i, f"array {i}", ours, theirs) for i, (ours, theirs) in enumerate(zip(arrays, gpu, strict=True))]
    pairs += [(-1, f"variable `{n}`", ours_held[n], theirs) for n, theirs in gpu_held.items()]
    for i, name, ours, theirs in pairs:
        if not ours.size:
            continue
        wrong = np.flatnonzero((_bits(ours) != _bits(theirs)).any(axis=1))
        if len(wrong):
            first = int(wrong[0])
            index = tuple(int(k) for k in np.unravel_index(first, ours.shape))
            unknown = "an instruction that was not looked for"
            return Difference(i, name, index, _shown(theirs, first), _shown(ours, first), len(wrong), ours.size, unknown)
    return None


def _writer(difference: Difference, tree: Module, entry: Function, options: dict[str, Any], arrays: list[Any]) -> str:
    """Run the launch once more with a watch on the element."""
    ModuleVariables(tree, memory := GlobalMemory())  # they come first in the arena
    start = Arguments(entry, options.get("args", ()), memory).arrays[difference.array][1]
    array = arrays[difference.array]
    byte = sum(i * s for i, s in zip(difference.index, array.strides, strict=True))
    once: dict[str, Any] = {**options, "jobs": 1, "executor": None, "progress": None}
    with watching(start + byte) as watch:
        simulate_alone(LoadedModule(tree, ModuleVariables(tree, GlobalMemory())), **once)
    return "no instruction: it holds what it held before the launch" if watch.last is None else str(watch.last)
