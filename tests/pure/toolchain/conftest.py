from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from warpsmith.toolchain import nvdisasm, ptxas
from warpsmith.toolchain.find import Tool

FakeTool = Callable[[str], Path]


@pytest.fixture
def fake_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTool:
    """Make the toolchain find a shell script with the given body; it says `V1.2.3` when asked for its version."""
    calls = tmp_path / "calls"

    def install(body: str) -> Path:
        path = tmp_path / "ptxas"
        version = '[ "$1" = --version ] && { echo "release 1.2, V1.2.3"; exit 0; }'
        path.write_text(f'#!/bin/sh\n{version}\necho "$@" >> {calls}\n{body}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        for module in (ptxas, nvdisasm):
            monkeypatch.setattr(module, "require_tool", lambda name: Tool(name, path, "PATH"))
        return calls

    monkeypatch.setenv("WARPSMITH_CACHE_DIR", str(tmp_path / "cache"))
    return install
