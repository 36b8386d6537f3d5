"""Every module has a docstring, and every name of an `__all__` exists; its classes and functions are documented."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "src"
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in (SOURCE / "warpsmith").rglob("*.py")
    if path.name != "__main__.py"
)


OPTIONAL = {"torch", "cupy", "jax", "cuda", "distributed"}
"""Packages that adapters and measurements are written for, and that the test environment need not have."""


@pytest.mark.parametrize("name", MODULES)
def test_exports_exist_and_are_documented(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
        return  # the adapter of a package that is not here
    assert module.__doc__, f"{name} has no docstring"
    exported = {export: getattr(module, export) for export in getattr(module, "__all__", ())}
    ours = {n: v for n, v in exported.items() if (getattr(v, "__module__", "") or "").startswith("warpsmith")}
    assert [n for n, v in ours.items() if (inspect.isclass(v) or inspect.isfunction(v)) and not inspect.getdoc(v)] == []
