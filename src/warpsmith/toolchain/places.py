"""Map lines of PTX text to the user's lines, by the `.file` and `.loc` directives above them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warpsmith.base.source import Place

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["place_lines"]

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)")
_FUNCTION = re.compile(r"\.(?:entry|func)\b")


def place_lines(text: str) -> Mapping[int, Place]:
    """Return PTX line (from 1) -> the place its `.loc` names; lines of a function before its first `.loc` are absent.

    `.file 1 "k.py"` … `.loc 1 7 0` on line 20 → {20: k.py:7, 21: k.py:7, …} up to the next `.loc` or function.
    """
    lines = text.split("\n")
    files = {m[1]: m[2] for line in lines if (m := _FILE.match(line))}
    out: dict[int, Place] = {}
    current: Place | None = None
    for number, line in enumerate(lines, 1):
        if _FUNCTION.search(line):
            current = None
        if m := _LOC.search(line):
            current = Place(files.get(m[1], f"<file {m[1]}>"), int(m[2]), int(m[3]))
        if current:
            out[number] = current
    return out
