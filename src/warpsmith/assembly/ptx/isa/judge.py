"""Ask ptxas about generated instructions, many in one run: it reports every line it refuses, and one syntax error at a time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.isa.sample_module import module
from warpsmith.toolchain import require_tool
from warpsmith.toolchain.run import run_tool, workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["verdicts"]

_REFUSAL = re.compile(r"line (\d+); (?:error|fatal)\s*: (.*)")


def verdicts(texts: Sequence[str], *, version: str, target: str, code: bool = False, timeout: float = 300.0) -> list[str]:
    """Return for each instruction what ptxas says against it in a module of that PTX version and target; '' for nothing.

    `code=False` stops after reading and checking (a `compute_…` target); `code=True` makes machine code as well. Targets below
    sm_75 are checked only. Raise `ToolError` without ptxas.
    """
    real = int(re.sub(r"\D", "", target)) >= 75
    arch = (target if code else target.replace("sm_", "compute_")) if real else "compute_75"
    says = [""] * len(texts)
    _judge(texts, list(range(len(texts))), says, (version, target, arch, timeout))
    return says


def _judge(texts: Sequence[str], alive: list[int], says: list[str], how: tuple[str, str, str, float]) -> None:
    """Fill in `says` for the instructions `alive`; halve a module that ptxas fails on without naming a line: it may crash."""
    while alive:
        status, refusals, log = _run([texts[n] for n in alive], *how)
        if status == 0:
            return
        if not refusals and len(alive) == 1:
            says[alive[0]] = f"status {status}: {log.strip()[-300:]}"
            return
        if not refusals:
            half = len(alive) // 2
            _judge(texts, alive[:half], says, how)
            _judge(texts, alive[half:], says, how)
            return
        for k, message in refusals.items():
            says[alive[k]] = message
        alive = [n for k, n in enumerate(alive) if k not in refusals]


def _run(texts: Sequence[str], version: str, target: str, arch: str, timeout: float) -> tuple[int, dict[int, str], str]:
    text, lines = module(texts, version=version, target=target, per_kernel=60 if arch.startswith("compute") else 15)
    with workspace() as folder:
        (folder / "samples.ptx").write_text(text, "utf-8")
        options = ["-arch", arch, "-O1", "samples.ptx", "-o", "samples.cubin"]
        done = run_tool(require_tool("ptxas"), options, folder, timeout=timeout)
    refusals: dict[int, str] = {}
    for m in _REFUSAL.finditer(done.err + done.out):
        index = lines.get(int(m[1]))
        if index is not None:
            refusals.setdefault(index, m[2])
    return done.status, refusals, done.err
