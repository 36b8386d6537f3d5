"""Tracked text names no path of a machine and no registry host."""

from __future__ import annotations

import re
from pathlib import Path

FORBIDDEN = re.compile(
    r"(?<![\w.])/(?:work|root|home|opt|mnt|Users|farm)/\w"
    r"|(?:pypi|npmjs|registry|files\.pythonhosted)\.\w+\.?\w*/"
    r"|pythonhosted"
    r"|--(?:extra-)?index-url[ =]h"
)
ALLOWED = {"tests/pure/repository/test_hosts.py"}


def test_no_machine_paths_or_registry_hosts(root: Path, tracked: list[Path]) -> None:
    bad: list[str] = []
    for path in tracked:
        name = str(path.relative_to(root))
        data = path.read_bytes()
        if name in ALLOWED or b"\0" in data[:4096]:
            continue
        for number, line in enumerate(data.decode().splitlines(), 1):
            if FORBIDDEN.search(line):
                bad.append(f"{name}:{number}: {line.strip()[:120]}")
    assert bad == []
