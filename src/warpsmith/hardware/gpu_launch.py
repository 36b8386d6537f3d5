"""Launch a compiled kernel on a GPU with the arguments the simulator takes: numpy arrays in place, numbers, tensor maps.

The arrays are placed in one arena as the simulator places them, so that views and `ptr` mean the same; the arena is copied
to the GPU before the launch and back after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.assembly.ptx.tree import Function, Parameter
from warpsmith.base.arch import parse_arch
from warpsmith.base.errors import InputError, LaunchError
from warpsmith.launch.binding import DriverError, LaunchShape
from warpsmith.launch.context import context
from warpsmith.launch.faults import synchronize
from warpsmith.launch.image import check_image, runs_on
from warpsmith.launch.plan import Plan
from warpsmith.simulator.arguments import Arguments
from warpsmith.simulator.layout import parameter_offsets, size_of
from warpsmith.simulator.memory import GlobalMemory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.launch.context import Context
    from warpsmith.launch.context import Function as GpuFunction

_NOT_FOUND = 500

__all__ = ["GpuResult", "arch_for_gpu", "entry_of_cubin", "launch_on_gpu"]


@final
@dataclass(slots=True)
class GpuResult:
    """What a launch on the GPU gave."""

    outputs: list[Any]
    """The arrays among the arguments, updated in place."""
    globals: dict[str, Any]
    """The variables asked for, as bytes."""
    device: str
    """Name and architecture of the device."""


def arch_for_gpu(target: str, device: int = 0) -> str:
    """Return the architecture to compile PTX of a `.target` for, to run on a device.

    The target itself if the device runs its code; else the device's own if the target has no suffix and is not newer. Raise
    `LaunchError` for PTX that cannot be compiled for the device.
    """
    c, arch = context(device), parse_arch(target)
    if runs_on(arch, c.capability):
        return target
    if arch.suffix or arch.number > c.capability:
        raise LaunchError(
            f"PTX for {target} cannot be compiled for {c.name}, which is sm_{c.capability}; write its .target", 209
        )
    return f"sm_{c.capability}"


def entry_of_cubin(image: bytes, kernel: str, device: int = 0, *, name: str = "cubin") -> Function:
    """Return a kernel of a cubin as an entry whose parameters have the sizes that the driver tells, and no types."""
    c = context(device)
    check_image(image, c.capability, c.name, name)
    try:
        function = c.function(image, kernel)
    except DriverError as error:
        if error.code == _NOT_FOUND:
            raise InputError(f"{name}: no kernel is called {kernel!r}") from None
        raise
    parameters: list[Parameter] = []
    before = c.enter()
    try:
        while found := c.driver.parameter(function.handle, len(parameters)):
            parameters.append(_parameter(len(parameters), found[1]))
    finally:
        c.leave(before)
    return Function("entry", kernel, parameters)


def _parameter(index: int, size: int) -> Parameter:
    name = f"parameter {index}"
    if size in (1, 2, 4, 8):
        return Parameter("param", f"b{8 * size}", name)
    return Parameter("param", "b8", name, [size], 64 if size % 64 == 0 else 8)


def launch_on_gpu(
    image: bytes,
    entry: Function,
    shape: LaunchShape,
    args: Sequence[Any],
    *,
    describe: str = "",
    variables: Sequence[str] = (),
    device: int = 0,
) -> GpuResult:
    """Load `image`, launch `entry` of it, wait, and copy every array back. `variables` are global variables to read after.

    `describe` says how the launch is run on the simulator, for the report of a fault. Raise `LaunchError` for a launch that
    is refused or fails, `InputError` for arguments that do not fit.
    """
    c = context(device)
    function = c.function(image, entry.name)
    if not shape.cluster == (1, 1, 1) and any(g % k for g, k in zip(shape.grid, shape.cluster, strict=True)):
        raise InputError(f"grid={shape.grid} is no multiple of cluster={shape.cluster}; round the grid up")
    size = Arguments(entry, args, measured := GlobalMemory()).memory.data.size
    del measured
    before = c.enter()
    arena = c.driver.allocate(size)
    try:
        memory = GlobalMemory()
        arguments = Arguments(entry, args, memory, arena)
        c.driver.upload(arena, memory.data.tobytes())
        parts: list[Any] = [arguments.block[o : o + size_of(p)] for p, o in parameter_offsets(entry)]
        Plan(c, function, shape, parts, 0, lambda _: describe or f"the same launch of {entry.name}").run([], 0)
        synchronize(c)
        memory.data[:] = np.frombuffer(c.driver.download(arena, memory.data.size), np.uint8)
        arguments.copy_back()
        found = {name: _variable(c, image, function, name) for name in variables}
        held = {name: data for name, data in found.items() if data is not None}
    finally:
        if c.broken is None:
            c.driver.free(arena)
            c.leave(before)
    return GpuResult([array for array, _ in arguments.arrays], held, f"{c.name} (sm_{c.capability})")


def _variable(c: Context, image: bytes, function: GpuFunction, name: str) -> Any:
    try:
        address, size = c.driver.get_global(c.module(image, function.name), name)
    except DriverError as error:
        if error.code == _NOT_FOUND:  # not visible, or removed by ptxas since nobody uses it
            return None
        raise
    return np.frombuffer(c.driver.download(address, size), np.uint8)
