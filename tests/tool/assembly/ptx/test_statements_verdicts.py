"""The verdicts in tests/data/ptx/statements.txt are what the installed ptxas says."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path

from warpsmith.toolchain import find_tool

PURE = Path(__file__).parents[3] / "pure" / "assembly" / "ptx" / "test_statements.py"


def assembles(text: str, folder: Path) -> bool:
    tool = find_tool("ptxas")
    assert tool
    source = folder / "x.ptx"
    source.write_text(text, "utf-8")
    command = [str(tool.path), "-arch", "sm_90a", "-O0", str(source), "-o", str(folder / "x.cubin")]
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


def test_recorded_verdicts(tmp_path: Path) -> None:
    names = runpy.run_path(str(PURE))
    statements, head = names["statements"](), names["HEAD"]
    assert len(statements) > 400
    inside = [text[len(head) :] for accepted, _, text in statements if accepted and text.startswith(head + names["KERNEL"])]
    kernels = [text.replace(".entry k(", f".entry k{n}(") for n, text in enumerate(inside)]
    assert assembles(head + "".join(kernels), tmp_path)
    wrong: list[str] = []
    for accepted, statement, text in statements:
        if not (accepted and text.startswith(head + names["KERNEL"])) and accepted != assembles(text, tmp_path):
            wrong.append(statement)
    assert wrong == []
