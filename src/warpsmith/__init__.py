"""Write, run, read and rewrite GPU machine code from Python.

Everything is imported lazily: `import warpsmith` costs milliseconds and needs no numpy.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # importing `typing` for the real one would take most of the time of `import warpsmith`
if TYPE_CHECKING:
    from warpsmith import cubin, findings, ptx, reg, sass, smem, specs, testing, types, wgmma_layout
    from warpsmith.base.device import device
    from warpsmith.base.explain_descriptor import explain_descriptor
    from warpsmith.base.layout import Layout
    from warpsmith.base.tile import Tile
    from warpsmith.dsl.arch import detect_arch
    from warpsmith.dsl.differentiable import differentiable_kernel
    from warpsmith.dsl.intrinsic import intrinsic
    from warpsmith.hardware.against_gpu import simulate
    from warpsmith.kernel import Kernel, kernel
    from warpsmith.simulator import Debugger, Device, SimulationResult, TensorMap, Watch, ptr

__version__ = "0.1.0"

__all__ = [
    "Debugger", "Device", "Kernel", "Layout", "SimulationResult", "TensorMap", "Tile", "Watch", "__version__", "cubin",
    "detect_arch", "device", "differentiable_kernel", "explain_descriptor", "findings", "intrinsic", "kernel", "ptr", "ptx",
    "reg", "sass", "simulate",
    "smem", "specs", "testing", "types", "wgmma_layout",
]  # fmt: skip

_MODULES = (
    "cubin",
    "debugkit",
    "findings",
    "kernel",
    "kernels",
    "ptx",
    "reg",
    "sass",
    "smem",
    "specs",
    "testing",
    "types",
    "wgmma_layout",
)
_NAMES = {
    "warpsmith.base.device": ("device",),
    "warpsmith.base.layout": ("Layout",),
    "warpsmith.base.tile": ("Tile",),
    "warpsmith.dsl.arch": ("detect_arch",),
    "warpsmith.dsl.differentiable": ("differentiable_kernel",),
    "warpsmith.dsl.intrinsic": ("intrinsic",),
    "warpsmith.dsl.kernel": ("Kernel",),
    "warpsmith.hardware.against_gpu": ("simulate",),
    "warpsmith.simulator": ("Debugger", "Device", "SimulationResult", "TensorMap", "Watch", "ptr"),
    "warpsmith.base.explain_descriptor": ("explain_descriptor",),
}
"""module -> names it exports; imported when one is first asked for."""

_HOME = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"warpsmith.{name}")
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'warpsmith' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
