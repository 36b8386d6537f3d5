"""nvdisasm accepts what was edited and what was built, and reads in it what it read before."""

from __future__ import annotations

import re
import subprocess
import warnings
from pathlib import Path

import pytest

from cubin_corpus import cubins
from warpsmith import cubin as ws_cubin
from warpsmith.cubin import CapsuleWarning, Cubin, shifted
from warpsmith.study.moved_code import NOP, rewritten
from warpsmith.toolchain import compile_ptx, find_tool


def listing(cubin: bytes, folder: Path) -> list[str]:
    """Instructions without addresses and NOPs; branch targets stand there as labels."""
    path = folder / "k.cubin"
    path.write_bytes(cubin)
    tool = find_tool("nvdisasm")
    assert tool
    done = subprocess.run([str(getattr(tool, "path", tool)), "-c", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [re.sub(r"/\*[0-9a-f]{4,}\*/", "", line).strip() for line in done.stdout.splitlines()]
    return [
        line
        for line in lines
        if line and not re.fullmatch(r"NOP ?;", line) and not line.startswith((".size", ".align", ".section", ".headerflags"))
    ]


def test_a_grown_kernel_reads_the_same(tmp_path: Path) -> None:
    """NOPs at several places, branches moved: the listing, whose targets are labels, differs in the NOPs alone."""
    data = cubins()["ptxas-13.5-sm_90a"]
    cubin = ws_cubin.open(data)
    code = cubin.functions["shares"].code
    places = {0x10: 16, 0x80: 48, 0x100: 32}
    moved = shifted(places)
    cubin.functions["shares"].replace(rewritten(code, moved, len(code) + 128), moved)
    assert len(cubin.write()) > len(data)
    assert listing(cubin.write(), tmp_path) == listing(data, tmp_path)


@pytest.mark.parametrize("name", ["ptxas-13.5-sm_75", "ptxas-13.5-sm_86", "ptxas-13.5-sm_100a", "ptxas-13.5-sm_120a"])
def test_edited_cubins_are_accepted(name: str, tmp_path: Path) -> None:
    cubin = ws_cubin.open(cubins()[name])
    for function in ("branches", "shares"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CapsuleWarning)
            code = cubin.functions[function].code
            cubin.functions[function].replace(NOP * 8 + code, shifted({0: 128}))
    assert len(listing(cubin.write(), tmp_path)) > 100


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_built_cubins_are_accepted(arch: str, tmp_path: Path) -> None:
    theirs = ws_cubin.open(cubins()[f"ptxas-13.5-{arch}"])
    kernel = theirs.functions["shares"]
    ours = Cubin.new(arch)
    ours.add_function("shares", kernel.code, params=[8, 8, 4], registers=kernel.registers, shared=1024, barriers=1)
    want = [line for line in listing(cubins()[f"ptxas-13.5-{arch}"], tmp_path) if "EXIT" in line or "BAR." in line]
    got = [line for line in listing(ours.write(), tmp_path) if "EXIT" in line or "BAR." in line]
    assert got
    assert len(got) <= len(want)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120a"])
def test_parameters_stand_where_ptxas_puts_them(arch: str) -> None:
    """Sizes and alignments of all kinds; a tensor map is 128 bytes aligned to 64."""
    sizes = [4, (128, 64), 1, 2, 8, (24, 8), (128, 64), (16, 16), 4]
    declared = ", ".join(
        f".param .align {item[1]} .b8 p{i}[{item[0]}]" if isinstance(item, tuple) else f".param .b{8 * item} p{i}"
        for i, item in enumerate(sizes)
    )
    text = f".version 8.8\n.target {arch}\n.address_size 64\n.visible .entry k({declared}) {{ ret; }}\n"
    theirs = ws_cubin.open(compile_ptx(text).cubin).functions["k"]
    ours = Cubin.new(arch).add_function("k", theirs.code, params=sizes, registers=theirs.registers)
    assert ours.params == theirs.params
    assert ours.info.get("CBANK_PARAM_SIZE").value == theirs.info.get("CBANK_PARAM_SIZE").value
    assert len(ours.constants[0]) == len(theirs.constants[0])
