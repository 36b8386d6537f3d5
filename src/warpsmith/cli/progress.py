"""A bar of CTAs that have ended, while a launch runs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(what: str) -> Generator[Callable[[int, int], None]]:
    """Show a bar on the standard error, if that is a terminal; give what the simulator calls with (ended, total)."""
    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda ended, total: bar.update(task, completed=ended, total=total)
