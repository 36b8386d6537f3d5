"""Which forms of the captures in a folder the simulator gives other results for: `differences.txt`, written by a replay.

    scalar-sm_90a.capture 3f0c…: 6626 forms, 0 differ
    differential-sm_90a.capture 91be…: 10000 forms, 2 differ
        12
        77

A line names a capture, the SHA-256 of its file, how many forms were replayed and how many of them differ; these follow,
one a line. A replay counts only for the very file it read.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import final

from warpsmith.base.errors import InputError

__all__ = ["FILE", "Replay", "differing_forms", "digest", "read_replays", "write_replays"]

FILE = "differences.txt"
_HEAD = re.compile(r"(\S+) ([0-9a-f]{64}): (\d+) forms, (\d+) differ$")


@final
@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay of all forms of a capture found."""

    sha256: str
    """Of the capture's file."""
    forms: int
    """How many forms were replayed."""
    differing: tuple[str, ...]
    """The forms with at least one result that differs."""


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_replays(folder: Path, replays: dict[str, Replay]) -> None:
    """Write `folder/differences.txt`: replays by the name of the capture's file."""
    lines: list[str] = []
    for name, r in sorted(replays.items()):
        lines.append(f"{name} {r.sha256}: {r.forms} forms, {len(r.differing)} differ")
        lines += [f"    {form}" for form in r.differing]
    temporary = folder / f"{FILE}.part"
    temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    temporary.replace(folder / FILE)


def read_replays(folder: Path) -> dict[str, Replay]:
    """Read `folder/differences.txt` (none: no replay); raise `InputError` with the line at fault."""
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    found: dict[str, tuple[str, int, int, list[str]]] = {}
    forms: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("    ") and forms is not None:
            forms.append(line.strip())
        elif head := _HEAD.match(line):
            forms = []
            found[head[1]] = (head[2], int(head[3]), int(head[4]), forms)
        else:
            raise InputError(f"{path}:{number}: `{line}` is neither a capture nor a form; write it with `replay --record`")
    for name, (_, _, count, differing) in found.items():
        if count != len(differing):
            raise InputError(f"{path}: {name} has {count} forms that differ, {len(differing)} are listed")
    return {name: Replay(sha, total, tuple(differing)) for name, (sha, total, _, differing) in found.items()}


def differing_forms(path: Path) -> frozenset[str] | None:
    """Return the forms of a capture that differ; None if that very file was not replayed."""
    replay = read_replays(path.parent).get(path.name)
    return frozenset(replay.differing) if replay is not None and replay.sha256 == digest(path) else None
