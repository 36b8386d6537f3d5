"""ptxas and nvdisasm: found, run with a time limit, cached; their messages as findings at the user's line."""

from __future__ import annotations

from warpsmith.toolchain.find import Tool, find_tool, require_tool

__all__ = ["Tool", "find_tool", "require_tool"]
