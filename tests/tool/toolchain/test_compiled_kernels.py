"""Kernels written in Python through ptxas: its complaints stand at Python lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith import Tile, kernel, ptx, reg, smem
from warpsmith.base.errors import CompilationError
from warpsmith.toolchain import ptxas
from warpsmith.types import f32

HERE = "test_compiled_kernels.py"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPSMITH_CACHE_DIR", str(tmp_path))


@kernel(in_specs=(Tile(32, f32),), out_specs=(), grid=(1, 1, 1), block=(32, 1, 1))
def fill(x, *, value=1.0):
    (target,) = ptx.global_ptrs(x)
    ptx.inst.setmaxnreg.inc.sync.aligned.u32(160)
    ptx.inst.st.global_.f32(ptx.addr(target + ptx.special.tid.x() * 4), reg.scalar(f32, init=value))


def test_a_note_stands_at_the_python_line() -> None:
    (finding,) = fill.compile().findings
    line = fill.fn.__code__.co_firstlineno + 3
    assert finding.kind == "setmaxnreg-ignored"
    assert str(finding).startswith(f"{Path(finding.where.file).parent / HERE}:{line}: ")  # pyright: ignore[reportOptionalMemberAccess]


def test_each_way_to_compile_agrees_and_uses_the_cache() -> None:
    compilation = fill.compile(value=2.0)
    again = fill.compile(value=2.0)
    assert again.cached
    assert fill.cubin(value=2.0) == compilation.cubin == again.cubin
    assert fill.resources(value=2.0) == compilation.resources["fill"]
    assert "STG.E" in fill.sass(value=2.0)
    assert fill.cubin(value=3.0) != compilation.cubin


def test_a_rejection_stands_at_the_python_line(monkeypatch: pytest.MonkeyPatch) -> None:
    @kernel(in_specs=(Tile(32, f32),), out_specs=(), grid=(1, 1, 1), block=(32, 1, 1))
    def broken(x):
        smem.alloc(f32, (8,))
        ptx.ret()

    text = broken.ptx().replace("ret;", "bra NOWHERE;")
    with pytest.raises(CompilationError) as caught:
        ptxas.compile_ptx(text, name="broken")
    (finding,) = caught.value.findings
    assert finding.where is not None
    assert finding.where.line == broken.fn.__code__.co_firstlineno + 3
