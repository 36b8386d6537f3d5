"""The lock files hold every dependency of pyproject.toml, pinned, with hashes, and agree with each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

NAMES = ("demo", "test", "dev", "docs", "lock")
GROUPS = {"demo": ["build"], "test": ["build", "test"], "dev": ["build", "test", "lint"], "docs": ["docs"], "lock": ["lock"]}


def pins(text: str) -> dict[str, list[str]]:
    """Return package -> its lines, `name==version ; marker` first and then the hashes."""
    out: dict[str, list[str]] = {}
    for entry in re.split(r"\n(?=\S)", text.strip()):
        head, *hashes = [line.strip(" \\") for line in entry.splitlines()]
        assert re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; .+)?", head), head
        assert hashes, f"{head} has no hash"
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", h) for h in hashes), head
        out.setdefault(head.partition("==")[0], []).append(head)
    return out


@pytest.fixture(scope="module")
def locks(root: Path) -> dict[str, dict[str, list[str]]]:
    return {name: pins((root / f"requirements/{name}.lock").read_text()) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_everything_declared_is_locked(name: str, locks: dict[str, dict[str, list[str]]], project: dict[str, Any]) -> None:
    declared = list(project["project"]["dependencies"])
    declared += [d for group in GROUPS[name] for d in project["dependency-groups"][group]]
    if name in ("test", "dev"):
        declared += project["project"]["optional-dependencies"]["cuda"]
    wanted = {re.match(r"[\w-]+", d)[0].replace("_", "-").lower() for d in declared}  # pyright: ignore[reportOptionalSubscript]
    assert wanted - locks[name].keys() == set()


def test_the_locks_agree(locks: dict[str, dict[str, list[str]]]) -> None:
    seen: dict[str, set[str]] = {}
    for lock in locks.values():
        for package, heads in lock.items():
            seen.setdefault(package, set()).add(re.sub(r" ; .*", "", " ".join(heads)) if len(heads) == 1 else "several")
    assert {package: versions for package, versions in seen.items() if len(versions) > 1} == {}


def test_the_demo_needs_no_compiler(locks: dict[str, dict[str, list[str]]]) -> None:
    assert [p for p in locks["demo"] if p.startswith(("nvidia", "cuda"))] == []
