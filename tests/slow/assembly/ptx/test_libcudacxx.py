"""Every inline assembly of libcu++'s `cuda::ptx` is legal PTX for the version and architecture that its comment names.

Needs the headers of a CUDA toolkit (`nvcc` on PATH) or of the package nvidia-cuda-cccl; which release is installed decides how
many instructions there are.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from warpsmith.assembly.ptx import parse
from warpsmith.assembly.ptx.check import check
from warpsmith.base.arch import ARCHITECTURES, first_ptx_version
from warpsmith.base.errors import PtxError

FOLDER = "cuda/__ptx/instructions/generated"
ASM = re.compile(r'asm\s*(?:volatile)?\s*\((?P<text>(?:\s*"(?:[^"\\]|\\.)*")+)(?P<rest>.*?)\);', re.DOTALL)
NOTE = re.compile(r"PTX\s+ISA\s+(\d+),\s+(?://\s*)?SM_(\w+)")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
REGISTERS = {"r": "b32", "l": "b64", "h": "b16", "f": "f32", "d": "f64", "q": "b128"}
CONSTANTS = {"fence_proxy_tensormap_generic.h": "128", "tensormap_cp_fenceproxy.h": "128", "setmaxnreg.h": "64"}
"""Constants of templates, where 0 is none."""
WRONG = {
    "tcgen05_mma.h": "needs PTX 8.7, the module is 8.6",  # kind::mxf4nvf4: ptxas says 8.7 as well
    "fabric_wait.h": "needs sm_100+",  # no architecture is named; ptxas refuses sm_90
}


def headers() -> Path | None:
    nvcc = shutil.which("nvcc")
    roots = [Path(nvcc).resolve().parents[1]] if nvcc else []
    roots += [Path(os.environ[n]) for n in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(n)]
    roots += [Path("/usr/local/cuda"), *(p / "nvidia" / "cu13" for p in map(Path, sys.path))]
    return next((r / "include" / "cccl" / FOLDER for r in roots if (r / "include" / "cccl" / FOLDER).is_dir()), None)


def statements(file: Path) -> Iterator[tuple[str, tuple[int, int], str]]:
    """Yield (body of a kernel, PTX version, architecture) for each assembly of a header."""
    text = file.read_text("utf-8")
    notes = list(NOTE.finditer(text))
    for m in ASM.finditer(text):
        body = "".join(STRING.findall(m["text"])).replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"')
        names, declared = list[str](), list[str]()
        for i, kind in enumerate(re.findall(r'"[=+]?&?([a-z])"\s*\(', m["rest"])):
            names.append(CONSTANTS.get(file.name, "0") if kind == "n" else f"%operand{i}")
            if kind != "n":
                declared.append(f".reg .{REGISTERS[kind]} %operand{i};")
        body = re.sub(r"%(\d+)", lambda d: names[int(d[1])], body).replace("%%", "%")  # noqa: B023 - used at once
        before = [n for n in notes if n.start() < m.start()]
        version, arch = ("93", "90") if not before else (before[-1][1], before[-1][2])
        target = f"sm_{arch.lower()}" if f"sm_{arch.lower()}" in ARCHITECTURES else "sm_70"
        wanted = (int(version[0]), int(version[1:]))
        yield f"{' '.join(declared)}\n{body}", max(wanted, first_ptx_version(target)), target


def complaint(body: str, version: tuple[int, int], target: str) -> str:
    text = f".version {version[0]}.{version[1]}\n.target {target}\n.address_size 64\n.entry k() {{ {body}\n}}\n"
    try:
        problems = check(parse(text))
    except PtxError as error:
        problems = error.problems
    return problems[0].message if problems else ""


@cache
def files() -> tuple[Path, ...]:
    folder = headers()
    return tuple(sorted(folder.glob("*.h"))) if folder else ()


@pytest.mark.skipif(not files(), reason="needs the headers of a CUDA toolkit")
def test_every_assembly_is_accepted() -> None:
    seen, wrong = 0, list[str]()
    for file in files():
        for body, version, target in statements(file):
            seen += 1
            message = complaint(body, version, target)
            if message and not (file.name in WRONG and WRONG[file.name] in message):
                wrong.append(f"{file.name}: {target}, PTX {version[0]}.{version[1]}: {message}\n{body}")
    assert seen > 1500
    assert not wrong, "\n".join(wrong[:20])
