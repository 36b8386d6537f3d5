"""List machine code with nvdisasm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.base.errors import InputError, ToolError
from warpsmith.toolchain.find import require_tool
from warpsmith.toolchain.run import run_tool, workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["disassemble"]


def disassemble(cubin: bytes, options: Sequence[str] = ("--print-code",), *, timeout: float = 300.0) -> str:
    """Return nvdisasm's listing of a cubin.

    `options` are its arguments: `--print-code` (code sections only), `--print-line-info`, `--print-instruction-encoding`,
    `--life-range-mode`, … Raises `InputError` if it is no cubin, `ToolError` if nvdisasm is missing, hangs or fails.
    """
    if not cubin.startswith(b"\x7fELF"):
        raise InputError(f"not a cubin: {len(cubin)} bytes that start with {cubin[:4]!r} instead of b'\\x7fELF'")
    tool = require_tool("nvdisasm")
    with workspace() as folder:
        try:
            (folder / "kernel.cubin").write_bytes(cubin)
        except OSError as error:
            raise ToolError(f"the cubin cannot be written for nvdisasm: {error}; set TMPDIR to a folder with space") from error
        done = run_tool(tool, [*options, "kernel.cubin"], folder, timeout=timeout)
    if done.status != 0:
        raise ToolError(f"nvdisasm failed (exit status {done.status}): {done.err.strip()[:500]}")
    return done.out
