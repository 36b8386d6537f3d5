"""ptxas and nvdisasm: found, run with a time limit, cached; their messages as findings at the user's line."""

from __future__ import annotations

from warpsmith.toolchain.cache import CubinCache, default_cache
from warpsmith.toolchain.find import Tool, find_tool, require_tool
from warpsmith.toolchain.log import Resources
from warpsmith.toolchain.nvdisasm import disassemble
from warpsmith.toolchain.ptxas import Compilation, compile_ptx, target_of

__all__ = [
    "Compilation",
    "CubinCache",
    "Resources",
    "Tool",
    "compile_ptx",
    "default_cache",
    "disassemble",
    "find_tool",
    "require_tool",
    "target_of",
]
