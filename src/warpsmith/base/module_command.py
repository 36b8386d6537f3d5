"""What the modules that are run as `python -m warpsmith.…` have in common: help, and errors in a line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from warpsmith.base.errors import WarpsmithError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["run_module"]


def run_module(main: Callable[[list[str]], int], description: str | None, arguments: Sequence[str]) -> int:
    """Return the exit status of `main(arguments)`, 2 after an error of ours; `-h` and `--help` print the description."""
    if {"-h", "--help"} & set(arguments):
        sys.stdout.write(f"{(description or '').strip()}\n")
        return 0
    try:
        return main(list(arguments))
    except WarpsmithError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
