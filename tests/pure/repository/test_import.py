"""`import warpsmith` and `warpsmith --help` are quick and load nothing heavy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import warpsmith

HEAVY = ("numpy", "ml_dtypes", "click", "rich")


SOURCE = Path(warpsmith.__file__).parents[1]


def run(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment).stdout


def test_import_takes_thirty_milliseconds_at_most() -> None:
    code = "import time; t = time.process_time(); import warpsmith; print(time.process_time() - t)"
    assert min(float(run(code)) for _ in range(5)) <= 0.030


def test_import_loads_nothing_heavy() -> None:
    assert run(f"import sys, warpsmith; print([m for m in {HEAVY!r} if m in sys.modules])") == "[]\n"
