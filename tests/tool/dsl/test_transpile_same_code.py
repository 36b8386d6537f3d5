"""Transpiled PTX traces to the same machine code, sugared or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from elf_sections import code_of
from ptx_corpus import DATA, text_of
from warpsmith import ptx
from warpsmith.assembly.ptx.printer import print_module
from warpsmith.dsl.kernel import Kernel
from warpsmith.toolchain import compile_ptx

SAMPLES = (
    "cute/add.sm_90a.ptx", "cute/block_sum.sm_80.ptx", "cute/mma.sm_90a.ptx", "cute/softmax.sm_100a.ptx",
    "cute/vectors.sm_120a.ptx",
    "nvcc/control.sm_75.ptx", "nvcc/launchable.sm_90a.ptx", "nvcc/blackwell.sm_100a.ptx",
)  # fmt: skip


def same_code(path: Path, sugar: bool) -> None:
    text = text_of(path)
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
