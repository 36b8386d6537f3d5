"""Find an external tool: in the packages of the `cuda` extra, else on PATH, else under CUDA_HOME."""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, final

from warpsmith.base.errors import ToolError

__all__ = ["PACKAGES", "TOOLS", "Origin", "Tool", "ToolName", "find_tool", "places", "require_tool", "tool_at"]

ToolName = Literal["ptxas", "nvdisasm"]
Origin = Literal["package", "PATH", "CUDA_HOME", "option"]

TOOLS: tuple[ToolName, ...] = ("ptxas", "nvdisasm")
PACKAGES: dict[ToolName, str] = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm"}
"""Tool -> the package of the `cuda` extra that ships it."""

SUFFIX = ".exe" if sys.platform == "win32" else ""
PACKAGE_FOLDERS = ("nvidia/cu[0-9]*/bin", "nvidia/cuda_nvcc/bin", "nvidia/cuda_nvdisasm/bin")
"""Below site-packages: where CUDA 13 and later, then CUDA 12, put their binaries."""


@final
@dataclass(frozen=True, slots=True)
class Tool:
    """An external tool that was found, and where."""

    name: ToolName
    path: Path
    origin: Origin

    def version(self) -> str:
        """Return the version the tool reports, e.g. `13.5.37`; raise `ToolError` if it does not run."""
        return _version(str(self.path), self.path.stat().st_mtime_ns)

    def __str__(self) -> str:
        return f"{self.name} {self.version()} ({self.path}, from {self.origin})"


@final
@dataclass(frozen=True, slots=True)
class _Place:
    """One place to look at: a folder, and how a person would name it."""

    origin: Origin
    description: str
    folders: tuple[Path, ...]


def places() -> tuple[_Place, ...]:
    """Return where tools are looked for, in order."""
    roots = dict.fromkeys([*sys.path, *site.getsitepackages()])
    packages = [Path(p) for p in roots if p.endswith(("site-packages", "dist-packages"))]
    shipped = [found for p in packages for pattern in PACKAGE_FOLDERS for found in sorted(p.glob(pattern), reverse=True)]
    on_path = [Path(p) for p in os.environ.get("PATH", "").split(os.pathsep) if p]
    homes = [home for variable in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(variable))]
    home = ", ".join(homes) if homes else "not set"
    where = ", ".join(map(str, packages)) or "site-packages"
    return (
        _Place("package", f"the `cuda` extra's packages in {where}", tuple(shipped)),
        _Place("PATH", f"PATH ({len(on_path)} folders)", tuple(on_path)),
        _Place("CUDA_HOME", f"CUDA_HOME ({home})", tuple(Path(h) / "bin" for h in homes)),
    )


def find_tool(name: ToolName) -> Tool | None:
    """Return the first `name` in the order of `places()`, or None."""
    for place in places():
        for folder in place.folders:
            if found := shutil.which(name + SUFFIX, path=str(folder)):
                return Tool(name, Path(found), place.origin)
    return None


def tool_at(name: ToolName, path: Path) -> Tool:
    """Return the tool that a path names; raise `ToolError` where no program lies there."""
    if not shutil.which(str(path.resolve())):
        raise ToolError(f"{path} is no program; name the file of {name} itself")
    return Tool(name, path.resolve(), "option")


def require_tool(name: ToolName) -> Tool:
    """Return the tool; raise `ToolError` saying what was looked at and what to install."""
    tool = find_tool(name)
    if tool is None:
        looked = "\n".join(f"  {place.description}" for place in places())
        raise ToolError(
            f"{name} was not found; looked in\n{looked}\n"
            f"  install it with: pip install 'warpsmith[cuda]'   (the package is {PACKAGES[name]}), or set CUDA_HOME"
        )
    return tool


@cache
def _version(path: str, changed: int) -> str:
    """Ask the tool for its version; `changed` (its modification time) keeps the answer fresh."""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolError(f"{path} does not run: {error}") from error
    m = re.search(r"\bV(\d+(?:\.\d+)+)", done.stdout)
    if not m:
        raise ToolError(f"{path} --version says no version (exit status {done.returncode}): {done.stdout[:200].strip()!r}")
    return m[1]
