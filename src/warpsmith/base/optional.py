"""Packages that are used when they are there: the registry that loads them and the adapters written for them.

An adapter is the one module that imports its package; it is loaded by name, so that nothing else depends on the package.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from warpsmith.base.errors import ToolError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["PACKAGES", "Package", "adapter", "is_loaded"]


class Package(NamedTuple):
    """An optional package: the module that adapts it, the module it is imported as, and how to install it."""

    adapter: str
    module: str
    install: str


PACKAGES = {
    "cuda": Package("warpsmith.launch.cuda_driver", "cuda.bindings.driver", "pip install 'warpsmith[cuda]' (cuda-bindings)"),
    "torch": Package("warpsmith.launch.torch_arrays", "torch", "pip install torch"),
    "torch op": Package("warpsmith.launch.torch_op", "torch", "pip install torch"),
    "cupy": Package("warpsmith.launch.cupy_arrays", "cupy", "pip install cupy-cuda13x"),
    "interface": Package("warpsmith.launch.interface_arrays", "ctypes", ""),
    "vector": Package("warpsmith.assembly.sass.vector", "numpy", "pip install numpy"),
    "dask": Package("warpsmith.sass.audit.dask_client", "distributed", "pip install 'warpsmith[dask]'"),
    "jax": Package("warpsmith.launch.jax_call", "jax", "pip install jax"),
}
"""What is asked for -> who provides it."""


def adapter(name: str) -> ModuleType:
    """Import the adapter of an optional package; raise `ToolError` saying what to install when the package is missing."""
    package = PACKAGES[name]
    try:
        return import_module(package.adapter)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package.module.partition(".")[0]:
            raise
        raise ToolError(f"{package.module} is not installed; {package.install}") from None


def is_loaded(name: str) -> bool:
    """Say whether the program has imported the package of an adapter already."""
    return PACKAGES[name].module in sys.modules
