"""Python's cyclic garbage collector, paused while a large structure without cycles grows."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["collector_paused"]


@contextmanager
def collector_paused() -> Generator[None]:
    """Keep the collector from walking what grows inside: it finds nothing there and takes a quarter to a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
