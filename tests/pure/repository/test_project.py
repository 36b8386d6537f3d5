"""The versions of Python that the project names agree with each other everywhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import warpsmith


def classified(project: dict[str, Any]) -> list[str]:
    return [c.rsplit(" ", 1)[1] for c in project["project"]["classifiers"] if re.search(r"Python :: 3\.\d", c)]


def test_the_lowest_python_is_the_same_everywhere(project: dict[str, Any], root: Path) -> None:
    lowest = classified(project)[0]
    assert project["project"]["requires-python"] == f">={lowest}"
    assert project["tool"]["ruff"]["target-version"] == "py" + lowest.replace(".", "")
    assert project["tool"]["basedpyright"]["pythonVersion"] == lowest
    assert f'"--python-version={lowest}"' in (root / "requirements/lock.py").read_text()


def test_the_makefile_looks_for_the_classified_pythons(project: dict[str, Any], root: Path) -> None:
    named = re.findall(r"python(3\.\d+)\b", (root / "Makefile").read_text().split("do \\")[0])
    assert sorted(named) == sorted(classified(project))


def test_this_python_is_classified(project: dict[str, Any]) -> None:
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in classified(project)


def test_the_version_is_stated_once_over(project: dict[str, Any]) -> None:
    assert project["project"]["version"] == warpsmith.__version__


def test_ci_runs_the_checks_and_the_tests(root: Path) -> None:
    script = root / ".ci/run"
    assert script.stat().st_mode & 0o111
    assert [line for line in script.read_text().splitlines() if line.startswith("make ")] == [
        "make lint types layers docs </dev/null",
        "make test </dev/null",
    ]


def test_the_changelog_has_an_open_section(root: Path) -> None:
    assert re.search(r"^## Unreleased\n", (root / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_every_room_has_a_page(root: Path) -> None:
    source = root / "src/warpsmith"
    rooms = {path.name for path in source.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    headings = [path.read_text().split("\n")[0].partition(":")[0] for path in (root / "docs/rooms").glob("*.md")]
    assert rooms - set(re.findall(r"\w+", " ".join(headings))) == set()
