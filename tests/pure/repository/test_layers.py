"""The layers hold: import-linter's contracts, run as `make layers` runs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_contracts_are_kept(root: Path) -> None:
    code = "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, env={"PYTHONPATH": "src"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken." in done.stdout
