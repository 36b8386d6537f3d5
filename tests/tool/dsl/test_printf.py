"""ptxas builds what `ptx.printf` emits."""

from __future__ import annotations

from warpsmith import Tile, kernel, ptx
from warpsmith.types import f32


def test_printf_assembles() -> None:
    @kernel(in_specs=(Tile(32, f32),), block=(32, 1, 1), grid=(1, 1, 1))
    def loud(x):
        (source,) = ptx.global_ptrs(x)
        thread = ptx.special.tid.x()
        with ptx.if_(thread < 3):
            ptx.printf("%d at %p: %s %f\n", thread, source, "text", 0.5)
        ptx.printf("nothing\n")

    assert loud.cubin().startswith(b"\x7fELF")
