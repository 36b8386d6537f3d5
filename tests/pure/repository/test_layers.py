"""The layers hold: import-linter's contracts, run as `make layers` runs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("config", ["pyproject.toml", "cycles.ini"])
def test_the_contracts_are_kept(root: Path, config: str) -> None:
    code = f"from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache', '{config}'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, env={"PYTHONPATH": "src"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken." in done.stdout


def test_the_lower_rooms_are_all_kept_from_numpy(root: Path, project: dict[str, Any]) -> None:
    contracts = project["tool"]["importlinter"]["contracts"]
    (forbidden,) = [c for c in contracts if c["type"] == "forbidden"]
    there = {f"warpsmith.{room}" for room in ("base", "cubin", "assembly", "ir") if (root / "src/warpsmith" / room).exists()}
    assert set(forbidden["source_modules"]) == there
    assert forbidden["forbidden_modules"] == ["numpy", "ml_dtypes"]
    assert forbidden["ignore_imports"] == ["warpsmith.assembly.sass.vector -> numpy"]
