"""How much memory this computer can give to a simulated GPU."""

from __future__ import annotations

import os
from functools import cache

from warpsmith.base.errors import InputError

__all__ = ["fits", "require"]


@cache
def _most() -> int:
    """Return the bytes of this computer's memory; a large number where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 46


def require(what: str, size: int) -> None:
    """Raise `InputError` unless twice `size` bytes (data and their shadow) fit this computer's memory."""
    if 2 * size > _most():
        raise InputError(
            f"{what} memory of {size:,} bytes does not fit this computer: with its shadow it takes twice that, and there are "
            f"{_most():,}; declare or pass less, or launch fewer threads"
        )


def fits(size: int) -> bool:
    """Say whether `size` bytes are at most a quarter of this computer's memory."""
    return 4 * size <= _most()
