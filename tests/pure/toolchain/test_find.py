from __future__ import annotations

import site
import sys
from pathlib import Path

import pytest

from warpsmith.base.errors import ToolError
from warpsmith.toolchain.find import Tool, find_tool, require_tool


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Take every place away in which a tool could be; give an empty folder."""
    (tmp_path / "site-packages").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site-packages")])
    monkeypatch.setattr(site, "getsitepackages", list[str])
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    return tmp_path


def put(folder: Path, says: str = "Cuda compilation tools, release 13.5, V13.5.37", name: str = "ptxas") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def test_the_package_comes_first_then_path_then_cuda_home(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = put(bare / "cuda" / "bin")
    monkeypatch.setenv("CUDA_HOME", str(bare / "cuda"))
    assert find_tool("ptxas") == Tool("ptxas", home, "CUDA_HOME")
    on_path = put(bare / "folder")
    monkeypatch.setenv("PATH", str(bare / "folder"))
    assert find_tool("ptxas") == Tool("ptxas", on_path, "PATH")
    older = put(bare / "site-packages/nvidia/cuda_nvcc/bin")
    assert find_tool("ptxas") == Tool("ptxas", older, "package")
    package = put(bare / "site-packages/nvidia/cu13/bin")
    assert find_tool("ptxas") == Tool("ptxas", package, "package")
    assert find_tool("nvdisasm") is None


def test_the_newest_package_wins(bare: Path) -> None:
    put(bare / "site-packages/nvidia/cu13/bin")
    newer = put(bare / "site-packages/nvidia/cu14/bin")
    found = find_tool("ptxas")
    assert found
    assert found.path == newer


def test_a_file_that_may_not_run_is_no_tool(bare: Path) -> None:
    put(bare / "site-packages/nvidia/cu13/bin").chmod(0o644)
    assert find_tool("ptxas") is None


def test_a_missing_tool_says_where_it_was_looked_for(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/one:/two")
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    with pytest.raises(ToolError) as caught:
        require_tool("ptxas")
    assert str(caught.value) == (
        "ptxas was not found; looked in\n"
        f"  the `cuda` extra's packages in {bare}/site-packages\n"
        "  PATH (2 folders)\n"
        "  CUDA_HOME (/nowhere)\n"
        "  install it with: pip install 'warpsmith[cuda]'   (the package is nvidia-cuda-nvcc), or set CUDA_HOME"
    )


def test_the_version_is_what_the_tool_says(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    path = put(bare / "cuda" / "bin")
    assert str(Tool("ptxas", path, "CUDA_HOME")) == f"ptxas 13.5.37 ({path}, from CUDA_HOME)"


def test_a_tool_without_a_version(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    path = put(bare / "cuda" / "bin", "hello")
    with pytest.raises(ToolError) as caught:
        Tool("ptxas", path, "PATH").version()
    assert str(caught.value) == f"{path} --version says no version (exit status 0): 'hello'"


def test_a_tool_that_does_not_run(bare: Path) -> None:
    path = bare / "ptxas"
    path.write_bytes(b"\x7fELFnonsense")
    path.chmod(0o755)
    with pytest.raises(ToolError) as caught:
        Tool("ptxas", path, "PATH").version()
    assert str(caught.value) == f"{path} does not run: [Errno 8] Exec format error: '{path}'"
