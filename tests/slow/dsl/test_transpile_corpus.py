"""Every PTX sample transpiles to Python that traces to the same machine code, sugared or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from elf_sections import code_of
from ptx_corpus import FILES as ALL_FILES
from ptx_corpus import text_of
from warpsmith import ptx
from warpsmith.assembly.ptx.printer import print_module
from warpsmith.assembly.ptx.tree import Function
from warpsmith.dsl.kernel import Kernel
from warpsmith.toolchain import compile_ptx

# ptxas wants debug sections for `.target debug`, and a transpiled kernel has none
LEFT_OUT = ("refused.sm_90.relocatable.ptx", "regions.sm_30.ptx", "regions.sm_53.ptx")
"""The first launches a kernel by the address of another; a kernel written in Python is a module of its own. ptxas does not
compile for the architectures of the others."""
FILES = [p for p in ALL_FILES if ".debug." not in p.name and p.name not in LEFT_OUT]


def alone(text: str, kernel: str) -> str:
    """Return the module without its other kernels, and `[a+0]` as Python writes it, `[a]`: ptxas schedules them otherwise."""
    module = ptx.parse(text)
    module.items = [i for i in module.items if not (isinstance(i, Function) and i.kind == "entry" and i.name != kernel)]
    return print_module(module, locations=False).replace("+0]", "]")


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_same_code(path: Path) -> None:
    text = text_of(path)
    options = ["-c"] if ".extern .func" in text.replace("vprintf", "") else []
    before = code_of(compile_ptx(print_module(ptx.parse(text), locations=False), options=options).cubin)
    for sugar in (False, True):
        space: dict[str, object] = {}
        exec(compile(ptx.to_python(text, sugar=sugar), str(path), "exec"), space)
        for k in [k for k in space.values() if isinstance(k, Kernel)]:
            after = code_of(compile_ptx(k.ptx(loc=False), options=options).cubin)
            section = f".text.{k.__name__}"
            if after[section] != before[section]:
                # numbers of functions whose address is taken, and schedules, depend on the module's other kernels
                assert after[section] == code_of(compile_ptx(alone(text, k.__name__), options=options).cubin)[section], (
                    k.__name__
                )
