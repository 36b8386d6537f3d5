"""Find what a verb is asked to work on: a PTX file, or a kernel of a Python file written `kernel.py:NAME`."""

from __future__ import annotations

import ast
import importlib.util
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from warpsmith.base.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__all__ = ["KernelLike", "is_python", "load_kernel", "parse_parameters", "stem_of", "users_line"]

_user_files: dict[str, str] = {}
"""File that was imported for the user -> the path by which it was asked for."""


@runtime_checkable
class KernelLike(Protocol):
    """What the verbs need of a `@kernel` object."""

    def ptx(self, **parameters: Any) -> str:
        """Return its PTX."""
        ...

    def simulate(self, *arrays: Any, **options: Any) -> Any:
        """Run it on the CPU."""
        ...


def is_python(target: str) -> bool:
    """Say whether a target names Python code: `kernel.py` or `kernel.py:NAME`."""
    path, _, name = target.rpartition(":")
    return target.endswith(".py") or (path.endswith(".py") and name.isidentifier())


def stem_of(target: str) -> str:
    """Return the name for a file made of `target`: `k` for `dir/k.ptx`, `NAME` for `kernel.py:NAME`."""
    return target.rpartition(":")[2] if is_python(target) and ":" in target else Path(target).stem


def load_kernel(target: str) -> KernelLike:
    """Import the file of `kernel.py:NAME` and return the kernel; a file with one kernel needs no `:NAME`."""
    path, _, name = (target, "", "") if target.endswith(".py") else target.rpartition(":")
    module = _import_file(Path(path))
    kernels = {n: v for n, v in vars(module).items() if _is_kernel(v)}
    there = ", ".join(kernels) or "none"
    if name:
        if name not in kernels:
            raise InputError(f"{path}: no kernel is called {name!r}; kernels there: {there}")
        return kernels[name]
    if len(kernels) != 1:
        raise InputError(f"{path}: which kernel? write {path}:NAME; kernels there: {there}")
    return next(iter(kernels.values()))


def parse_parameters(pairs: Sequence[str]) -> dict[str, object]:
    """Read `NAME=VALUE` pairs; a value is a Python literal, or else a string."""
    out: dict[str, object] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(f"{pair!r} is no parameter; write NAME=VALUE, e.g. causal=True")
        try:
            out[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            out[name] = text
    return out


def users_line(error: BaseException) -> str | None:
    """Return `file:line` of the innermost line of the user's own files that `error` came through, or None."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((f"{_user_files[f.filename]}:{f.lineno}" for f in reversed(frames) if f.filename in _user_files), None)


def _is_kernel(value: object) -> bool:
    """Look at the class: `ptx.inst.add`, kept at the top of a file, has every attribute there is."""
    return not isinstance(value, type) and issubclass(type(value), KernelLike)


def _import_file(path: Path) -> ModuleType:
    """Run a Python file as a module; its errors, then and later, are the user's (`users_line`)."""
    if not path.is_file():
        raise InputError(f"{path}: {'is a folder' if path.is_dir() else 'no such file'}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    _user_files[spec.origin or str(path)] = str(path)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise InputError(f"{error.filename}:{error.lineno}: SyntaxError: {error.msg}") from error
    finally:
        sys.path.pop(0)
    return module
