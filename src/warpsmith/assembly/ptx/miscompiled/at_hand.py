"""Judge a module by the ptxas that is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.miscompiled.judge import miscompiled
from warpsmith.base.errors import ToolError
from warpsmith.toolchain.find import find_tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.assembly.ptx.module import Module
    from warpsmith.base.findings import Finding

__all__ = ["miscompiled_here"]


def miscompiled_here(module: Module, options: Sequence[str] = ()) -> list[Finding]:
    """Return what the installed ptxas makes wrong code of; where there is none, what any release did that was tried."""
    tool = find_tool("ptxas")
    try:
        version = None if tool is None else tool.version()
    except ToolError:
        version = None
    return miscompiled(module, version, options)
