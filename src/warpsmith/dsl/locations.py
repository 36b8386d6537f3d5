"""Line information: `.file` and `.loc` from the places noted on the instructions of a traced body.

A `.loc` is put before an instruction whose line differs from that of the instruction before it, so that every machine
instruction maps to a Python line. Paths are relative to the user's project, never absolute.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from warpsmith.assembly.ptx.tree import FileDirective, Instruction, Loc, Scope

if TYPE_CHECKING:
    from warpsmith.assembly.ptx.tree import Statement
    from warpsmith.base.source import Place

__all__ = ["project_path", "with_locations"]

_PROJECT_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git", ".hg")
_PACKAGE_PARENT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


@cache
def project_path(filename: str) -> str:
    """Return `filename` relative to its project (the nearest folder with a pyproject.toml, .git, …), else its last part."""
    if filename.startswith("<"):
        return filename
    path = os.path.abspath(filename)
    if path.startswith(_PACKAGE_PARENT):
        return path[len(_PACKAGE_PARENT) :].replace(os.sep, "/")
    folder = os.path.dirname(path)
    while True:
        if any(os.path.exists(os.path.join(folder, mark)) for mark in _PROJECT_MARKS):
            return os.path.relpath(path, folder).replace(os.sep, "/")
        parent = os.path.dirname(folder)
        if parent == folder:
            return os.path.basename(path)
        folder = parent


class _Inserter:
    def __init__(self, first: str) -> None:
        self.files: dict[str, int] = {project_path(first): 1} if first else {}
        self.last: tuple[int, int] | None = None
        self.place: Place | None = None
        """Places are one object a line, so that most instructions are dealt with by identity."""

    def statements(self, body: list[Statement]) -> list[Statement]:
        """Return `body` with `.loc` statements; instructions are the same objects."""
        out: list[Statement] = []
        for s in body:
            if type(s) is Instruction and s.place is not None and s.place is not self.place:
                self.place = s.place
                name = project_path(s.place.file)
                index = self.files.get(name)
                if index is None:
                    index = self.files[name] = len(self.files) + 1
                here = (index, s.place.line)
                if here != self.last:
                    out.append(Loc(index, here[1], 0))
                    self.last = here
            elif isinstance(s, Scope):
                out.append(Scope(self.statements(s.body), s.span))
                continue
            out.append(s)
        return out


def with_locations(body: list[Statement], first: str) -> tuple[list[Statement], list[FileDirective]]:
    """Return the body with `.loc` statements and the `.file` directives it needs; `first` is the kernel's own file."""
    inserter = _Inserter(first)
    located = inserter.statements(body)
    return located, [FileDirective(i, name) for name, i in inserter.files.items()]
