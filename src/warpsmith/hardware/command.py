"""The command line that captures share: `build` (ptxas), `run` (the GPU), `compare` (anywhere)."""

from __future__ import annotations

import argparse
import sys
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from warpsmith.base.errors import CompilationError, InputError, ToolError, WarpsmithError
from warpsmith.toolchain.ptxas import compile_ptx

if TYPE_CHECKING:
    from collections.abc import Callable

    from warpsmith.launch.driver import Driver

__all__ = ["CaptureCommand", "Differing", "about", "compiled", "count_report", "open_build"]

Differing = tuple[int, dict[str, str]]
"""How many forms were replayed, and for each that differs a text that shows it."""

_SHOWN = 10_000
"""Characters of a report that are printed."""


@final
class CaptureCommand:
    """Commands by name, each a function of the parsed arguments that returns what to print."""

    def __init__(
        self,
        name: str,
        description: str | None,
        *,
        build: Callable[[str, Path], str],
        run: Callable[[Path, Path], str],
        compare: Callable[[Path], str],
    ) -> None:
        self.parser = argparse.ArgumentParser(
            prog=name, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        self._commands: Any = self.parser.add_subparsers(dest="command", required=True)
        self._actions: dict[str, Callable[[argparse.Namespace], str]] = {}
        p = self.add("build", "compile for the GPU", lambda a: build(a.arch, a.cubins))
        p.add_argument("--arch", default="sm_90a")
        p.add_argument("--cubins", type=Path, required=True)
        p = self.add("run", "run on this machine's GPU", lambda a: run(a.cubins, a.out))
        p.add_argument("--cubins", type=Path, required=True)
        p.add_argument("--out", type=Path, required=True)
        self.add("compare", "compare a capture with the simulator", lambda a: compare(a.file)).add_argument("file", type=Path)

    def add(self, name: str, help_: str, action: Callable[[argparse.Namespace], str]) -> argparse.ArgumentParser:
        """Add a command; return its parser, to declare its arguments."""
        self._actions[name] = action
        parser: argparse.ArgumentParser = self._commands.add_parser(name, help=help_)
        return parser

    def main(self, arguments: list[str] | None) -> int:
        """Run what the arguments (None: those of the process) name; return the exit status, 2 for bad input."""
        given = self.parser.parse_args(arguments)
        try:
            text = self._actions[given.command](given)
        except WarpsmithError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        sys.stdout.write(text[:_SHOWN] + "\n")
        return 0


def count_report(what: str, total: int, found: dict[str, str]) -> str:
    """Return the report of a comparison: a count, then a text for each form that differs."""
    return "\n".join([f"{total} {what}, {len(found)} differ", *found.values()])


def compiled(text: str, arch: str) -> bytes:
    """Return the cubin of a module, uncontracted; errors travel between processes as text."""
    try:
        return compile_ptx(text, arch, ["--fmad=false"]).cubin
    except CompilationError as error:
        raise ToolError(str(error)) from None


def about(arch: str, gpu: Driver) -> dict[str, Any]:
    """Return what a capture says of itself: architecture, device, driver, date."""
    return {"arch": arch, "device": gpu.name, "driver": gpu.version, "date": time.strftime("%Y-%m-%d")}


def open_build(path: Path, command: str) -> zipfile.ZipFile:
    """Open what `command build` wrote; raise `InputError` if it cannot be read."""
    try:
        return zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read: {error}; make it with `{command} build`") from error
