"""Assemble many traced kernels with one run of ptxas per architecture."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from warpsmith.assembly.ptx.module import Module
from warpsmith.assembly.ptx.tree import FileDirective, Function
from warpsmith.base.errors import WarpsmithError
from warpsmith.dsl.kernel import Kernel
from warpsmith.toolchain import compile_ptx


def together(kernels: list[Kernel], arch: str) -> str:
    items, version = [], (8, 0)
    for number, k in enumerate(kernels):
        module = k.module()
        version = max(version, module.version)
        for item in module.items:
            if isinstance(item, Function):
                items.append(
                    Function(item.kind, f"k{number}_{item.name}", item.parameters, [], item.directives, item.body, "visible")
                )
            elif not isinstance(item, FileDirective) and not any(i == item for i in items):
                items.append(item)
    files = next(i for k in kernels for i in k.module().items if isinstance(i, FileDirective))
    return str(Module(version, [arch], 64, [files, *items]))


@pytest.fixture
def assemble() -> Callable[[list[Kernel]], None]:
    """Assemble the kernels; on a rejection fail with ptxas's words."""

    def run(kernels: list[Kernel]) -> None:
        for arch in sorted({k.arch for k in kernels}):
            text = together([k for k in kernels if k.arch == arch], arch)
            try:
                compile_ptx(text)
            except WarpsmithError as e:
                pytest.fail(str(e))

    return run
