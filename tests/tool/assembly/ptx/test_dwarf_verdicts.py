"""ptxas reads `@@DWARF` before PTX 2.0 as this reader does, and makes the same code of what the printer writes."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path

import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.toolchain import find_tool

PURE = runpy.run_path(str(Path(__file__).parents[3] / "pure" / "assembly" / "ptx" / "test_dwarf.py"))
HEAD, KERNEL, DATA = PURE["HEAD"], PURE["KERNEL"], PURE["DATA"]


def assemble(text: str, folder: Path) -> bytes | None:
    tool = find_tool("ptxas")
    assert tool
    source, target = folder / "x.ptx", folder / "x.cubin"
    source.write_text(text, "utf-8")
    command = [str(tool.path), "-arch", "sm_75", str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    return target.read_bytes() if done.returncode == 0 else None


def test_the_printed_text_gives_the_same_cubin(tmp_path: Path):
    text = HEAD + KERNEL + DATA
    cubin = assemble(text, tmp_path)
    assert cubin is not None
    assert assemble(str(parse(text)), tmp_path) == cubin


WIDE = "does not fit"  # ptxas keeps the low bits


@pytest.mark.parametrize("text", [text for text, message in PURE["WRONG"] if WIDE not in message])
def test_what_the_reader_refuses_ptxas_refuses(text: str, tmp_path: Path):
    assert assemble(HEAD + KERNEL + text + "\n", tmp_path) is None
