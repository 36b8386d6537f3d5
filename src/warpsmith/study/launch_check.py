"""Check every launch path on the GPU of this machine: `python -m warpsmith.study.launch_check [GROUP…]`.

Groups: torch, compiled, cupy, interface, jax, verbs, devices (of a machine with two GPUs or more), faults. Each runs in a
process of its own with a time limit; a group whose package is missing is skipped. Prints a line a check; exits with 1 if one
fails.
"""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from importlib import import_module
from typing import TYPE_CHECKING, Any

from warpsmith.base.errors import InputError, ToolError
from warpsmith.base.module_command import run_module

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["main", "run_group"]

GROUPS = ("torch", "compiled", "cupy", "interface", "jax", "verbs", "devices", "faults")
_LIMIT_S = 120


def run_group(checks: list[Callable[[], Any]]) -> int:
    """Run checks in this process; print a line each; return how many failed."""
    bad = 0
    for check in checks:
        started = time.perf_counter()
        try:
            note, verdict = check() or "", "ok  "
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            note, verdict = f"{type(error).__name__}: {error} ({where.name}:{where.lineno})", "FAIL"
            bad += 1
        seconds = time.perf_counter() - started
        sys.stdout.write(f"{verdict} {(check.__doc__ or check.__name__).splitlines()[0]}  [{seconds:.2f} s] {note}\n")
        sys.stdout.flush()
    return bad


def _group(name: str) -> int:
    try:
        return run_group(import_module(f"warpsmith.study.launch_{name}").CHECKS)
    except (ModuleNotFoundError, ToolError) as error:
        sys.stdout.write(f"skip {name}: {error}\n")
        return 0


def main(arguments: list[str]) -> int:
    """Run the groups, each in a child process; with `--here GROUP` run one in this process."""
    if arguments[:1] == ["--here"]:
        return 1 if _group(arguments[1]) else 0
    if unknown := [name for name in arguments if name not in GROUPS]:
        raise InputError(f"no group is called {unknown[0]!r}; there are {', '.join(GROUPS)}")
    bad = 0
    for name in arguments or GROUPS:
        sys.stdout.write(f"== {name}\n")
        sys.stdout.flush()
        try:
            done = subprocess.run(
                [sys.executable, "-m", __spec__.name if __spec__ else __name__, "--here", name], timeout=_LIMIT_S, check=False
            )
            bad += done.returncode != 0
        except subprocess.TimeoutExpired:
            sys.stdout.write(f"FAIL {name}: ended after {_LIMIT_S} s\n")
            bad += 1
    sys.stdout.write("every launch path works\n" if not bad else f"{bad} groups with failures\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(run_module(main, __doc__, sys.argv[1:]))
