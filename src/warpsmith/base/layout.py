"""How a tensor lies in memory, and which swizzle its TMA descriptor has."""

from __future__ import annotations

from enum import Enum

__all__ = ["Layout"]


class Layout(Enum):
    """Memory layout of a tensor argument."""

    ROW = "row"
    """Row-major (C order). With a `tma_box` the descriptor has no swizzle."""
    COL = "col"
    """Column-major (Fortran order)."""
    TMA_128B = "128B"
    """Row-major, loaded by TMA with the 128-byte swizzle."""
    TMA_64B = "64B"
    TMA_32B = "32B"
    INTERLEAVED = "interleaved"
    """Interleaved by the caller; passed as a plain pointer."""

    @property
    def swizzle(self) -> str | None:
        """The TMA swizzle: `128B`, `64B`, `32B`, or None."""
        return self.value if self.name.startswith("TMA_") else None

    @property
    def span(self) -> int:
        """Bytes of a swizzled row: 128, 64 or 32; 0 without swizzle."""
        return int(self.value[:-1]) if self.name.startswith("TMA_") else 0
