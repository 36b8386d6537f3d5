"""Run an external tool on files of a temporary folder, with a time limit."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from warpsmith.base.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from warpsmith.toolchain.find import Tool

__all__ = ["Completed", "run_tool", "signal_name", "workspace"]


@final
@dataclass(frozen=True, slots=True)
class Completed:
    """What a tool answered."""

    status: int
    """Exit status; negative for the signal that ended it."""
    out: str
    err: str


def signal_name(number: int) -> str:
    """Return e.g. `SIGSEGV` for the number of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextmanager
def workspace() -> Generator[Path]:
    """Give a temporary folder that is removed afterwards; raise `ToolError` where none can be made."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="warpsmith-", ignore_cleanup_errors=True)
    except OSError as error:
        raise ToolError(f"no temporary folder can be made: {error}; set TMPDIR to a folder that can be written") from error
    with folder as path:
        yield Path(path)


def run_tool(tool: Tool, arguments: Sequence[str], folder: Path, *, timeout: float) -> Completed:
    """Run `tool` in `folder`; raise `ToolError` when it does not start or takes more than `timeout` seconds."""
    try:
        done = subprocess.run(
            [str(tool.path), *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError(
            f"{tool.name} was stopped after {timeout:g} s ({tool.path}); give it more time with timeout=, or a smaller kernel"
        ) from error
    except OSError as error:
        raise ToolError(f"{tool.name} does not start: {tool.path}: {error.strerror or error}") from error
    return Completed(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
