"""What tasks in processes of their own may do, for the test of them: importable by a fresh interpreter."""

from __future__ import annotations

import os
import time

from warpsmith.base.errors import WarpsmithError

__all__ = ["broken_opening", "opening", "task"]

_OPENED: list[str] = []


def task(what: str) -> tuple[str, int]:
    """Return the text and the number of the process; or fail as it says."""
    if what == "hang":
        time.sleep(60)
    if what == "die":
        os._exit(9)
    if what == "fault":
        raise WarpsmithError("illegal instruction")
    if what == "bug":
        raise ZeroDivisionError("a bug")
    return _OPENED[0] if what == "pid" else what, os.getpid()


def opening() -> None:
    """Make `pid` answer that this ran."""
    _OPENED.append("opened")


def broken_opening() -> None:
    """Fail."""
    raise WarpsmithError("no GPU")
