"""Transpiled PTX traces to the same machine code, sugared or not."""

from __future__ import annotations

import lzma
import struct
from pathlib import Path

import pytest

from warpsmith import ptx
from warpsmith.assembly.ptx.printer import print_module
from warpsmith.dsl.kernel import Kernel
from warpsmith.toolchain import compile_ptx

DATA = Path(__file__).parents[2] / "data" / "ptx"
SAMPLES = (
    "cute/add.sm_90a.ptx", "cute/block_sum.sm_80.ptx", "cute/mma.sm_90a.ptx", "cute/softmax.sm_100a.ptx",
    "cute/vectors.sm_120a.ptx",
    "nvcc/control.sm_75.ptx", "nvcc/launchable.sm_90a.ptx", "nvcc/blackwell.sm_100a.ptx",
)  # fmt: skip


def code_of(elf: bytes) -> dict[str, bytes]:
    """The `.text.*` sections of a 64-bit ELF file."""
    (at,) = struct.unpack_from("<40xQ", elf)
    size, count, names = struct.unpack_from("<58xHHH", elf)
    headers = [struct.unpack_from("<IIQQQQ", elf, at + size * k) for k in range(count)]
    strings = headers[names][4]
    out = {}
    for name, _, _, _, offset, length in headers:
        text = elf[strings + name : elf.index(b"\0", strings + name)].decode()
        if text.startswith(".text."):
            out[text] = elf[offset : offset + length]
    return out


def same_code(path: Path, sugar: bool) -> None:
    text = lzma.decompress(path.read_bytes()).decode() if path.suffix == ".xz" else path.read_text()
    module = ptx.parse(text)
    options = ["-c"] if ".extern .func" in text.replace("vprintf", "") else []
    before = code_of(compile_ptx(print_module(module, locations=False), options=options).cubin)
    space: dict[str, object] = {}
    exec(compile(ptx.to_python(text, sugar=sugar), str(path), "exec"), space)
    kernels = [k for k in space.values() if isinstance(k, Kernel)]
    assert len(kernels) == sum(f.kind == "entry" for f in module.functions())
    for k in kernels:
        after = code_of(compile_ptx(k.ptx(loc=False), options=options).cubin)
        assert after[f".text.{k.__name__}"] == before[f".text.{k.__name__}"], k.__name__


@pytest.mark.parametrize("sugar", [False, True])
@pytest.mark.parametrize("name", SAMPLES)
def test_same_code(name, sugar):
    same_code(DATA / name, sugar)
