"""What the verbs that look into libraries share: the entries of files and folders, and what cannot be read among them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, final

from warpsmith.base.arch import parse_arch
from warpsmith.base.errors import InputError, WarpsmithError
from warpsmith.cubin import find
from warpsmith.cubin.find import files_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from warpsmith.cubin import Found

__all__ = ["Faults", "chosen", "entries", "printable"]

BAD_INPUT = 2


@final
class Faults:
    """What could not be read. It is told at once on the standard error, and what can be read is still shown."""

    def __init__(self) -> None:
        self.count = 0
        self._told: set[str] = set()
        self._left_out: set[str] = set()

    def note(self, error: WarpsmithError | OSError) -> None:
        """Tell of something that could not be read; of what is said of many entries alike, once."""
        self.count += 1
        told = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
        if told not in self._told:
            self._told.add(told)
            print(f"warpsmith: error: {printable(told)}", file=sys.stderr)

    def leave_out(self, arch: str, path: str) -> None:
        """Tell, once for each architecture, that its code is left out for want of a table."""
        if arch not in self._left_out:
            self._left_out.add(arch)
            print(
                f"warpsmith: warning: {printable(path)}: code for {arch} is left out: there is no table for it", file=sys.stderr
            )

    def status(self, shown: int) -> int:
        """Return the exit status: bad input where something could not be read, or all code was left out."""
        return BAD_INPUT if self.count or (self._left_out and not shown) else 0


def entries(path: str, archs: tuple[str, ...], faults: Faults) -> Iterator[Found]:
    """Yield what is found in a file, or in the files of a folder, for these architectures (all, if none is named).

    A file that cannot be read, or what follows where one is damaged, is left out and told of.
    """
    for arch in archs:
        parse_arch(arch)
    if not path:
        raise InputError("the path is empty; name a file or a folder")
    try:
        files = files_below(Path(path))
    except OSError as error:
        faults.note(error)
        return
    for file in files:
        try:
            yield from chosen(find(file), archs)
        except (WarpsmithError, OSError) as error:
            faults.note(error)


def chosen(items: Iterable[Found], archs: tuple[str, ...]) -> Iterator[Found]:
    """Return the items of these architectures; of all, where none is named. A PTX file stands for its `.target`."""
    return (item for item in items if not archs or item.arch in archs)


def printable(text: str) -> str:
    """Return a name with what a terminal would obey written as an escape: names come from files that anyone may have made."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
