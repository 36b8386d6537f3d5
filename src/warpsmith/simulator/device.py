"""`Device`: several launches on one memory."""

from __future__ import annotations

import operator
from math import prod
from typing import TYPE_CHECKING, Any, final

import numpy as np

from warpsmith.base.device import device
from warpsmith.base.errors import InputError
from warpsmith.simulator.api import LoadedModule, SimulationResult, checked, simulate
from warpsmith.simulator.arguments import DeviceArray, as_elements, as_numpy
from warpsmith.simulator.host_memory import require
from warpsmith.simulator.memory import GlobalMemory
from warpsmith.simulator.variables import ModuleVariables

if TYPE_CHECKING:
    from warpsmith.assembly.ptx import Module

__all__ = ["Device", "Globals"]


@final
class Globals:
    """The global variables of the modules a device has loaded, by name: bytes (numpy uint8), read and set."""

    def __init__(self) -> None:
        self.loaded: list[ModuleVariables] = []

    def _holder(self, name: str) -> ModuleVariables:
        for variables in reversed(self.loaded):
            if name in variables.sizes:
                return variables
        known = ", ".join(n for v in self.loaded for n in v.sizes) or "none"
        raise InputError(f"no global variable `{name}`; the modules loaded have: {known}")

    def __getitem__(self, name: str) -> Any:
        return self._holder(name).read(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._holder(name).write(name, value)


def _shape(shape: Any, dtype: Any) -> tuple[tuple[int, ...], Any]:
    """Return a shape and a dtype that numpy and this computer can take."""
    if dtype is None:
        raise InputError("Device.array: give dtype= with a shape")
    try:
        extents = tuple(map(operator.index, shape if isinstance(shape, tuple) else (shape,)))
        kind = np.dtype(dtype)
    except TypeError as error:
        raise InputError(f"Device.array: shape {shape!r:.60}, dtype {dtype!r:.60}: {error}") from None
    if any(n < 0 for n in extents) or kind.hasobject:
        raise InputError(f"Device.array: shape {extents}, dtype {kind}: give extents from 0 on, and a dtype of numbers")
    require(f"a device array of shape {extents} in", prod(extents) * kind.itemsize)
    return extents, kind


@final
class Device:
    """A simulated GPU whose memory outlives launches.

    >>> gpu = Device("H200")
    >>> x = gpu.array(np.arange(4, dtype=np.float32))
    >>> x.numpy()
    array([0., 1., 2., 3.], dtype=float32)
    """

    def __init__(self, name: str = "H200") -> None:
        self.model = device(name)
        self.memory = GlobalMemory()
        self.globals = Globals()
        self._modules: dict[int, LoadedModule] = {}
        self._texts: dict[str, Module] = {}

    def array(self, value: Any, dtype: Any = None) -> DeviceArray:
        """Return an array in device memory: a copy of `value`, or zeros where it is a shape (then `dtype` is needed)."""
        if isinstance(value, int | tuple):
            host = np.zeros(*_shape(value, dtype))
        else:
            host = as_elements(as_numpy(value, "Device.array"), dtype, "Device.array")
        start = self.memory.allocate(f"device array of shape {host.shape}", host.nbytes)
        out = DeviceArray(self.memory, start, host.shape, host.dtype)
        out.set(host)
        return out

    def load(self, module: Module | str) -> Module:
        """Load a module: its variables get their place and initial values, once. A path is read, and loaded anew, each time."""
        known = self._texts.get(module) if isinstance(module, str) else None
        tree = checked(module) if known is None else known
        if isinstance(module, str) and "\n" in module:
            self._texts[module] = tree
        if id(tree) not in self._modules:
            variables = ModuleVariables(tree, self.memory)
            self._modules[id(tree)] = LoadedModule(tree, variables)
            self.globals.loaded.append(variables)
        return tree

    def launch(self, module: Any, **options: Any) -> SimulationResult:
        """Run a kernel of a module (or a `@kernel` object) on this device; options and result as in `simulate`."""
        if "device" in options:
            raise InputError("Device.launch: a launch is on this device; leave device= out")
        source = module.module() if hasattr(module, "module") else module
        tree = self.load(source)
        return simulate(self._modules[id(tree)], device=self.model, **options)
