"""What must hold of any PTX file: it reads back, its checker is content, ptxas makes the same code of what is printed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from elf_sections import sections
from ptx_corpus import text_of
from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.check import check
from warpsmith.toolchain import find_tool

COMPARED = (".text", ".nv.info", ".nv.constant", ".nv.global", ".nv.shared", ".debug_info", ".debug_abbrev", ".debug_loc")
TRIES = 40  # where ptxas makes two codes equally often, a text misses the other's code once in 2^40


def reads_back(path: Path) -> None:
    """Assert that text → tree → text → tree ends with the same tree and text."""
    module = parse(text_of(path), path.name)
    printed = str(module)
    again = parse(printed)
    assert again.items == module.items
    assert (again.version, again.target, again.address_size) == (module.version, module.target, module.address_size)
    assert str(again) == printed


def checks(path: Path) -> None:
    """Assert that the checker has nothing to say."""
    assert [str(p) for p in check(parse(text_of(path), path.name))] == []


def assemble(text: str, folder: Path, name: str) -> dict[str, bytes]:
    here = folder / name
    here.mkdir()
    (here / "k.ptx").write_text(text, "utf-8")  # registers that ptxas allocates depend on the name of the file
    arch = re.search(r"^\.target\s+(sm_\w+)", text, re.MULTILINE)
    assert arch
    named = arch[1] if int(re.findall(r"\d+", arch[1])[0]) >= 75 else "sm_75"  # ptxas compiles for no older ones
    compile_only = ["-c"] if ".extern .func" in text.replace("vprintf", "") else []
    tool = find_tool("ptxas")
    assert tool
    command = [str(tool.path), "-arch", named, *compile_only, "k.ptx", "-o", "k.cubin"]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return sections((here / "k.cubin").read_bytes())


def same_code(path: Path, folder: Path) -> None:
    """Assert that ptxas makes the same code of a text and of what its tree prints; `folder` is empty."""
    text = text_of(path)
    before = assemble(text, folder, "before")
    after = assemble(str(parse(text, path.name)), folder, "after")
    assert any(name.startswith(".text.") for name in before)
    # the copy of the PTX text in debug builds is named by a hash of it
    assert {n for n in before if "ptx_txt" not in n} == {n for n in after if "ptx_txt" not in n}
    if differing(before, after):
        # of a few programs (cute/hopper) ptxas makes one of several codes, by the addresses its process happens to get
        again = (assemble(text, folder, f"before{n}") for n in range(TRIES))
        assert any(not differing(other, after) for other in again), differing(before, after)


def differing(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    return [name for name in before if name.startswith(COMPARED) and after.get(name) != before[name]]
