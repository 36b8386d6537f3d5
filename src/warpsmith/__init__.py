"""Write, run, read and rewrite GPU machine code from Python.

Everything is imported lazily: `import warpsmith` costs milliseconds and needs no numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpsmith import findings, ptx, reg, smem, specs, types, wgmma_layout
    from warpsmith.base.layout import Layout
    from warpsmith.base.tile import Tile
    from warpsmith.dsl.arch import detect_arch
    from warpsmith.dsl.intrinsic import intrinsic
    from warpsmith.dsl.kernel import Kernel, kernel

__version__ = "0.1.0"

__all__ = [
    "Kernel", "Layout", "Tile", "__version__", "detect_arch", "findings", "intrinsic", "kernel", "ptx", "reg", "smem", "specs",
    "types", "wgmma_layout",
]  # fmt: skip

_MODULES = ("debugkit", "findings", "kernels", "ptx", "reg", "smem", "specs", "testing", "types", "wgmma_layout")
_NAMES = {
    "Kernel": "warpsmith.dsl.kernel", "Layout": "warpsmith.base.layout",
    "Tile": "warpsmith.base.tile", "detect_arch": "warpsmith.dsl.arch", "intrinsic": "warpsmith.dsl.intrinsic",
    "kernel": "warpsmith.dsl.kernel",
}  # fmt: skip
"""exported name -> module that has it; imported when first asked for."""


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"warpsmith.{name}")
    if name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'warpsmith' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
